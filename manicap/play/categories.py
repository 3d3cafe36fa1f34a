"""Categories of state variables: scores are means over them."""

from collections.abc import Iterable

AGENT = "agent_localization"
SMALL = "small_object_localization"
OTHER = "other_localization"
DISPLAY = "score_clock_lives_display"
MISC = "misc_keys"
CATEGORIES: tuple[str, ...] = (AGENT, SMALL, OTHER, DISPLAY, MISC)
"""In the order of AtariARI's tables."""


def in_order(categories: Iterable[str]) -> list[str]:
    """AtariARI's in the order of its tables, then others by name."""
    known = {name: place for place, name in enumerate(CATEGORIES)}
    return sorted(categories, key=lambda name: (known.get(name, len(known)), name))
