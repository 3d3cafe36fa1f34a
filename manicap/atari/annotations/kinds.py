"""What the value of a variable is: a place, a number or a name.

Places (of the agent and of objects) and numbers (scores, clocks, lives, meters, counts) are ordinal: 80 is nearly 81.
Most are bytes as the game keeps them. Scores are binary-coded decimals, 09 followed by 16, which keeps their order.
A name is a label: room 4 is no nearer to room 5 than to room 9. The tables below say which variables are names, and why
where it is not obvious; everything else in the localization categories is a place, everything displayed a number.
"""

from typing import Literal

from manicap.atari.annotations.variables import DISPLAY, MISC, Variable

Kind = Literal["place", "number", "class"]

DIRECTION = "a direction"
CIRCULAR = "a direction: the last value is next to the first"
ROOM = "a room: neighbours in number are not neighbours on the map"
LEVEL = "a level: another picture each, not more of something"
BITS = "a bit for each object: 7 is no nearer to 8 than to 1"

NAMES: dict[str, dict[str, str]] = {
    "asteroids": {
        "num_lives_direction": "packs lives and direction into one byte",
        "player_direction": CIRCULAR,
        "player_missile1_direction": CIRCULAR,
        "player_missile2_direction": CIRCULAR,
    },
    "battle_zone": {
        "blue_tank_facing_direction": CIRCULAR,
        "blue_tank2_facing_direction": CIRCULAR,
        "compass_needles_angle": CIRCULAR,
        "angle_of_tank": CIRCULAR,
        "left_tread_position": "a phase of an animation",
        "right_tread_position": "a phase of an animation",
        "crosshairs_color": "a colour",
    },
    "berzerk": {
        "player_direction": DIRECTION,
        "player_missile_direction": DIRECTION,
        "robot_missile_direction": DIRECTION,
        "game_level": LEVEL,
    },
    "bowling": {"pin_existence": "a pin stands or not"},
    "breakout": {"block_bit_map": BITS},
    "demon_attack": {"level": LEVEL},
    "frostbite": {"player_direction": DIRECTION},
    "hero": {"room_number": ROOM, "level_number": LEVEL},
    "montezuma_revenge": {
        "room_number": ROOM,
        "player_direction": DIRECTION,
        "level": LEVEL,
        "items_in_inventory": BITS,
        "room_state": "a code of what is left in the room",
    },
    "ms_pacman": {"player_direction": DIRECTION},
    "private_eye": {"room_number": ROOM, "player_direction": DIRECTION},
    "qbert": {
        "num_lives": "counts modulo 256: after 1 and 0 comes 255",
        "tile_color": "a colour",
    },
    "seaquest": {
        "player_direction": DIRECTION,
        "player_missile_direction": DIRECTION,
        "missile_direction": DIRECTION,
        "enemy_formation": BITS,
    },
    "venture": {"current_room": ROOM},
}
"""By game and by name, without the number of a slot: `block_bit_map` stands for block_bit_map_0 to block_bit_map_35."""

COUNTS: dict[str, tuple[str, ...]] = {
    "berzerk": ("robots_killed_count",),
    "breakout": ("blocks_hit_count",),
    "frostbite": ("igloo_blocks_count",),
    "hero": ("dynamite_count",),
    "montezuma_revenge": ("items_in_inventory_count",),
    "ms_pacman": ("ghosts_count", "dots_eaten_count"),
    "seaquest": ("divers_collected_count",),
    "space_invaders": ("invaders_left_count",),
}
"""Numbers in the category misc, which holds names too; a test requires each of its variables to be here or above."""


def kind_of(game: str, variable: Variable) -> Kind:
    if why_name(game, variable.name):
        return "class"
    is_number = DISPLAY in variable.categories or MISC in variable.categories
    return "number" if is_number or variable.name in COUNTS.get(game, ()) else "place"


def why_name(game: str, variable: str) -> str:
    """Why a variable is a name; empty if it is not."""
    names = NAMES.get(game, {})
    stem, _, last = variable.rpartition("_")
    return names.get(variable) or (names.get(stem, "") if last.isdigit() else "")
