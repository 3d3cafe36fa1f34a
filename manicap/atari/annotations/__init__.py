"""RAM annotations of AtariARI: which byte of a game's memory holds what.

    annotations(find_game("pong"), "corrected")           # the variables
    labels(ram, find_game("pong"), "corrected")["ball_x"]  # uint8 [...] from RAMs uint8 [..., 128]

Three sets: `ari-2019` (behind the published ST-DIM results), `ari-2020` (the table as it was left) and `corrected`
(`ari-2020` with its measured mistakes corrected; each change says why).
"""

from manicap.atari.annotations.kinds import Kind, kind_of, why_name
from manicap.atari.annotations.sets import ANNOTATION_SETS, annotations, categories, changes, labels, sets_with
from manicap.atari.annotations.variables import Change, Variable
from manicap.play.categories import AGENT, CATEGORIES, DISPLAY, MISC, OTHER, SMALL

__all__ = [
    "AGENT",
    "ANNOTATION_SETS",
    "CATEGORIES",
    "DISPLAY",
    "MISC",
    "OTHER",
    "SMALL",
    "Change",
    "Kind",
    "Variable",
    "annotations",
    "categories",
    "changes",
    "kind_of",
    "labels",
    "sets_with",
    "why_name",
]
