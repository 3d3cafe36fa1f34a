"""The annotation set `corrected`, as differences from `ari-2020`: what was measured to be wrong there, corrected.

Each change was measured in ale-py 0.12.1, and tests/atari/test_annotation_differences.py measures it again: by writing
bytes and comparing screens, and against ALE's own count of lives and points.

Examined and left as in `ari-2020`:
- asteroids: OCAtari also lists rocks at RAM 10, 11 (y) and 28, 29 (x). These bytes stayed 0 in 3,000 random steps, and
  rocks written into them were not drawn, so the question stays open.
- berzerk: RAM 73 is not the x of a ninth robot, and is not added (see below).
- demon_attack: RAM 17-19 place the right halves of the demons (RAM 13-15 the left ones), 8 pixels from the left halves
  while a demon is whole. That is still a position of the demon.
- freeway: the score stays 0 under random play. The byte is right.
- pong: RAM 45 and 46 do move the paddles sideways; the game just never does.
- qbert: RAM 69 and 105 have no effect on the next frame, but no better byte was found: OCAtari derives the balls'
  positions from RAM 75-79 and earlier frames.
- seaquest: RAM 71-74 hold a diver or a missile, as their name says; RAM 30-33 anchor each lane's formation.
- skiing: OCAtari's eighth object, RAM 86, has left the top of the screen: no value written there changes a pixel.
"""

from manicap.atari.annotations.variables import (
    AGENT,
    DISPLAY,
    MISC,
    OTHER,
    Below,
    Bits,
    Change,
    SlotOf,
    Switch,
    Variable,
    agent,
    decoded,
    display,
    misc,
    other,
    slots,
    small,
)


def _tennis(category: str, name: str, when_zero: int, otherwise: int) -> Variable:
    return decoded(category, name, (when_zero, otherwise, 80), Switch(80, when_zero, otherwise))


# Private Eye's two object slots: types, x, y. Types 14 and 15 are the two pictures of the dove.
_EYE_TYPES, _EYE_X, _EYE_Y = (41, 42), (47, 48), (38, 39)
_DOVE = (14, 15)

CORRECTIONS: dict[str, tuple[Change, ...]] = {
    "asteroids": (
        Change(
            "RAM 60 packs two quantities: its high nibble always equals ALE's lives, and its low nibble the 16 "
            "headings (OCAtari). ari-2020 counts the whole byte in two categories.",
            drop=("num_lives_direction",),
            put=(
                decoded(DISPLAY, "num_lives", (60,), Bits(60, mask=0x0F, shift=4)),
                decoded(MISC, "player_direction", (60,), Bits(60, mask=0x0F)),
            ),
        ),
    ),
    "berzerk": (
        Change(
            "There are 8 robots (OCAtari draws as many): RAM 64 is the end mark, 127, after the eighth y. It never "
            "changed in play, and with all eight rows of robots filled RAM 72 moves the last, RAM 73 nothing.",
            drop=("enemy_robots_y_8",),
        ),
    ),
    "bowling": (
        Change(
            "RAM 57-66 are x positions of the pins, 255 once a pin is down (OCAtari). The pins drawn are those below "
            "250, so existence is that comparison.",
            put=tuple(
                decoded(MISC, f"pin_existence_{pin}", (57 + pin,), Below(57 + pin, bound=250)) for pin in range(10)
            ),
        ),
        Change(
            "RAM 33 has the last two digits. RAM 38 is drawn as the hundreds, and ALE's points count it (OCAtari).",
            put=display(score_hundreds=38),
        ),
    ),
    "breakout": (
        Change(
            "RAM 77 does not count blocks: it is the last two digits of the score, in BCD, and with RAM 76 as the "
            "hundreds equals ALE's points (OCAtari). RAM 84 is 5 times the last digit and selects its picture.",
            drop=("blocks_hit_count",),
            put=display(score=77, score_hundreds=76),
        ),
        Change("RAM 57 always equals ALE's lives (OCAtari).", put=display(num_lives=57)),
        Change(
            "The wall has 36 bytes (OCAtari): RAM 30-35 draw its leftmost column of blocks.",
            put=misc(**slots("block_bit_map", range(30, 36), first=30)),
        ),
    ),
    "demon_attack": (
        Change(
            "RAM 22 moves only the player's missile; RAM 16 moves the ship (OCAtari).",
            put=(*agent(player_x=16), *small(missile_x=22)),
        ),
    ),
    "hero": (
        Change("RAM 51 always equals ALE's lives.", put=display(num_lives=51)),
        Change(
            "RAM 56 and 57 lack the two highest digits. RAM 55 is drawn as them, and ALE's points count it.",
            put=display(score_ten_thousands=55),
        ),
    ),
    "montezuma_revenge": (
        Change(
            "RAM 61 changes the skull's picture. The items drawn at the top are the bits of RAM 65 (OCAtari; "
            "atari-representation-learning, room_conditional_ram.py).",
            drop=("items_in_inventory_count",),
            put=misc(items_in_inventory=65),
        ),
    ),
    "ms_pacman": (
        Change(
            "The low bits of RAM 123 are the spare lives, drawn modulo 4 (OCAtari); the bits from 16 up choose the "
            "fruit.",
            put=(decoded(DISPLAY, "num_lives", (123,), Bits(123, mask=0x03)),),
        ),
        Change(
            "RAM 120 has only the last two digits. With RAM 121 and 122 above it, it equals ALE's points (OCAtari).",
            put=display(player_score_hundreds=121, player_score_ten_thousands=122),
        ),
    ),
    "private_eye": (
        Change(
            "RAM 86 changes nothing on the screen; RAM 97 is the height at which the detective is drawn (OCAtari).",
            put=agent(player_y=97),
        ),
        Change(
            "RAM 48 and 39 place whatever is in the second object slot. It is a dove while its type, RAM 42, is 14 or "
            "15; the first slot (RAM 41, 47, 38) draws the same pictures (OCAtari). 0 while there is no dove.",
            put=(
                decoded(OTHER, "dove_x", (*_EYE_X, *_EYE_TYPES), SlotOf(_DOVE, _EYE_TYPES, _EYE_X)),
                decoded(OTHER, "dove_y", (*_EYE_Y, *_EYE_TYPES), SlotOf(_DOVE, _EYE_TYPES, _EYE_Y)),
            ),
        ),
    ),
    "qbert": (
        Change("RAM 8 is ALE's lives less 2, modulo 256, and is drawn (OCAtari).", put=display(num_lives=8)),
        Change(
            "Each byte colours one cube's top, so it is state like Breakout's wall; ari-2020 left the tiles without a "
            "category.",
            recategorize={f"tile_color_{tile}": MISC for tile in range(21)},
        ),
    ),
    "seaquest": (
        Change(
            "A lane's x is one anchor; the low bits of RAM 36-39 say which of its three places hold an enemy "
            "(atari-representation-learning issue #59; OCAtari).",
            put=misc(**slots("enemy_formation", range(36, 40))),
        ),
        Change(
            "RAM 57 and 58 lack the two highest digits. RAM 56 is drawn as them, and ALE's points count it.",
            put=display(score_ten_thousands=56),
        ),
        Change(
            "The submarine that patrols the surface is placed by RAM 118 (OCAtari).",
            put=other(surface_submarine_x=118),
        ),
    ),
    "space_invaders": (
        Change(
            "RAM 24 changes the ground below the player; RAM 16 moves the invaders up and down (OCAtari).",
            put=other(enemies_y=16),
        ),
        Change(
            "RAM 9 changes nothing on the screen; RAM 85 moves the player's missile up and down (OCAtari).",
            put=small(missiles_y=85),
        ),
        Change(
            "The invaders' two missiles are RAM 81, 82 (y) and 83, 84 (x) (OCAtari).",
            put=small(**slots("enemy_missile_y", range(81, 83)), **slots("enemy_missile_x", range(83, 85))),
        ),
    ),
    "tennis": (
        Change(
            "The players change ends. The joystick moves RAM 26, 24 while RAM 80 is 0, and RAM 27, 25 otherwise "
            "(OCAtari).",
            put=(
                _tennis(AGENT, "player_x", 26, 27),
                _tennis(AGENT, "player_y", 24, 25),
                _tennis(OTHER, "enemy_x", 27, 26),
                _tennis(OTHER, "enemy_y", 25, 24),
            ),
        ),
        Change(
            "RAM 17 is the height above the shadow (RAM 54 less 55, within 2). The ball is drawn in row 189 or 190 "
            "less RAM 54 (OCAtari).",
            put=small(ball_y=54),
        ),
    ),
}
