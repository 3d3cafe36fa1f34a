"""The annotation set `ari-2019`, as differences from `ari-2020`.

It is the table behind the published ST-DIM results: mila-iqia/atari-representation-learning at commit 9a31785
(27 October 2019). Battle Zone and Skiing were annotated later.
"""

from manicap.atari.annotations.variables import OTHER, Change, display, slots

MISSING_IN_2019: frozenset[str] = frozenset({"battle_zone", "skiing"})

_LATER = "annotated after October 2019"
_RENAMED = "the same byte under its name of October 2019"

CHANGES_2019: dict[str, tuple[Change, ...]] = {
    "pitfall": (Change(_LATER, drop=("clock_sec", "clock_min")),),
    "pong": (Change(_LATER, drop=("player_x", "enemy_x")),),
    "private_eye": (Change(_RENAMED, rename={"player_x": "agent_x", "player_y": "agent_y"}),),
    "qbert": (Change(_LATER, drop=(*slots("score", range(3)), *slots("tile_color", range(21)))),),
    "seaquest": (
        Change(_RENAMED, rename={"player_missile_x": "missile_x", "player_missile_direction": "missile_direction"}),
        Change(
            "the same bytes named after the divers alone, and so counted among the other objects",
            rename={f"diver_or_enemy_missile_x_{lane}": f"diver_x_{lane}" for lane in range(4)},
            recategorize={f"diver_x_{lane}": OTHER for lane in range(4)},
        ),
    ),
    "space_invaders": (Change("a wrong byte, corrected in commit 87805e5", put=display(num_lives=125)),),
    "yars_revenge": (
        Change(
            _RENAMED,
            rename={
                "player_x": "player_yar_x",
                "player_y": "player_yar_y",
                "player_missile_x": "yar_missile_x",
                "player_missile_y": "yar_missile_y",
                "enemy_x": "enemy_qotile_x",
                "enemy_y": "enemy_qotile_y",
                "enemy_missile_x": "qotile_missile_x",
                "enemy_missile_y": "qotile_missile_y",
            },
        ),
    ),
}
