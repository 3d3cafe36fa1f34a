"""One life of a game as a film, or as arrays:

    frames          uint8 [n, 210, 160], in colour [n, 210, 160, 3]
    ram             uint8 [n, 128]
    action          uint8 [n]      played from the frame; an index into action_names, 255: the recording ends here
    reward          int32 [n]      what the action brought
    lives           uint8 [n]      lives left
    ended           uint8 [n]      1: the action ended the life; 2: it ended the game
    action_names    text
    label_...       uint8 [n]      each state variable of the annotation set `corrected`

A store that was converted from gray frames has no actions: the five arrays about them are then absent.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.atari.annotations import labels, sets_with
from manicap.atari.emulator import open_ale
from manicap.atari.games import find_game
from manicap.atari.store import Store
from manicap.play.export import Exportable
from manicap.play.store import Rows

PIXEL_WIDTH = 2
"""The console's pixels are wide: 160 of them fill a line of a 4:3 screen, on which a pixel is 12/7 as wide as high."""
PLAYED_FPS = 15.0
"""A step is 4 of the console's 60 frames per second."""


def exportable_lives(store: Store) -> Exportable:
    remedy = "collect it again for colour"
    return Exportable(store, lambda rows: _arrays(store, rows), "life", "lives", remedy, PIXEL_WIDTH, PLAYED_FPS)


def _arrays(store: Store, rows: Rows) -> dict[str, NDArray[Any]]:
    game, ram = find_game(store.config.game), np.asarray(store.ram[rows])
    found: dict[str, NDArray[Any]] = {"ram": ram}
    if store.has_colour:  # recorded by the same versions as actions
        found |= {name: store.steps[name][rows] for name in ("action", "reward", "lives", "ended")}
        found["action_names"] = np.array([action.name for action in open_ale(game, 0).getMinimalActionSet()])
    if "corrected" in sets_with(game):
        found |= {f"label_{name}": values for name, values in labels(ram, game, "corrected").items()}
    return found
