"""Every difference between the annotation sets is measured in the emulator.

A test names the differences that it measures with `measures`; the last test fails if a difference exists that no test
names, or one is named that does not exist.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from ale_py import Action, ALEInterface, ALEState

from manicap.atari.annotations import ANNOTATION_SETS, MISC, OTHER, SMALL, annotations, labels, sets_with
from manicap.atari.emulator import Bytes, Lane, open_ale
from manicap.atari.games import GAMES
from manicap.core.errors import UserError

Difference = tuple[str, str, str]  # set, game, variable

MEASURED: set[Difference] = set()


def measures(set_name: str, game: str, *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    MEASURED.update((set_name, game, name) for name in names)
    return lambda test: test


def numbered(stem: str, count: int, first: int = 0) -> list[str]:
    return [f"{stem}_{index}" for index in range(first, first + count)]


@dataclass
class Play:
    """Random steps of a game: the RAM and ALE's lives after each, and 20 states to return to."""

    ale: ALEInterface
    ram: Bytes
    lives: list[int]
    states: list[ALEState]

    def screen(self, state: ALEState, writes: Mapping[int, int], frames: int = 1) -> Bytes:
        """The screen some frames after bytes were written into a state."""
        self.ale.restoreState(state)
        for address, value in writes.items():
            self.ale.setRAM(address, value)
        for _ in range(frames):
            self.ale.act(Action.NOOP)
        return self.ale.getScreenGrayscale()

    def changed(self, state: ALEState, writes: Mapping[int, int], instead: Mapping[int, int] | None = None) -> Bytes:
        """The (row, column) of every pixel of the next frame that the writes change."""
        return np.argwhere(self.screen(state, writes) != self.screen(state, instead or {}))

    def points_for(self, writes: Mapping[int, int]) -> list[int]:
        """What ALE rewards when bytes of the score are written, less the reward without that."""
        gains = []
        for state in self.states:
            self.ale.restoreState(state)
            plain = self.ale.act(Action.NOOP)
            self.ale.restoreState(state)
            for address, value in writes.items():
                self.ale.setRAM(address, value)
            gains.append(self.ale.act(Action.NOOP) - plain)
        return gains


@cache
def play(game: str, steps: int = 1500) -> Play:
    lane = Lane(GAMES[game], seed=0, lane=0)
    lane.reset()
    ram, lives, states = [], [], []
    for step in range(steps):
        lane.step(lane.random_action())
        ram.append(lane.ram.copy())
        lives.append(lane.ale.lives())
        if step % (steps // 20) == steps // 20 - 1:
            states.append(lane.ale.cloneState())
    assert len(states) == 20, "tests go through them"
    return Play(lane.ale, np.stack(ram), lives, states)


def ram_of(one: Play, state: ALEState) -> list[int]:
    one.ale.restoreState(state)
    return [int(byte) for byte in one.ale.getRAM()]


def decimal(*digit_pairs: int) -> int:
    """BCD bytes, highest first: two decimal digits each."""
    value = 0
    for pair in digit_pairs:
        value = value * 100 + (pair >> 4) * 10 + (pair & 15)
    return value


def written_points(game: str, *addresses: int, steps: int = 400) -> tuple[list[int], list[int]]:
    """The number in BCD bytes, highest first, and ALE's points, after each of some random steps of one game."""
    ale = open_ale(GAMES[game], seed=1)
    rng = np.random.default_rng(0)
    actions = ale.getMinimalActionSet()
    total, written, points = 0, [], []
    for _ in range(steps):
        action = actions[rng.integers(len(actions))]
        total += sum(ale.act(action) for _ in range(4))
        if ale.game_over():
            break
        ram = ale.getRAM()
        written.append(decimal(*(int(ram[address]) for address in addresses)))
        points.append(total)
    return written, points


# ari-2019 against ari-2020


@pytest.mark.parametrize("game", ["battle_zone", "skiing"])
def test_two_games_are_missing_in_2019_and_said_to_be(game: str) -> None:
    with pytest.raises(UserError, match=f"{game} is not annotated in 'ari-2019'.* ari-2020, corrected"):
        annotations(GAMES[game], "ari-2019")


RENAMED = [
    ("private_eye", "agent_x", "player_x"),
    ("private_eye", "agent_y", "player_y"),
    ("seaquest", "missile_x", "player_missile_x"),
    ("seaquest", "missile_direction", "player_missile_direction"),
    ("yars_revenge", "player_yar_x", "player_x"),
    ("yars_revenge", "player_yar_y", "player_y"),
    ("yars_revenge", "yar_missile_x", "player_missile_x"),
    ("yars_revenge", "yar_missile_y", "player_missile_y"),
    ("yars_revenge", "enemy_qotile_x", "enemy_x"),
    ("yars_revenge", "enemy_qotile_y", "enemy_y"),
    ("yars_revenge", "qotile_missile_x", "enemy_missile_x"),
    ("yars_revenge", "qotile_missile_y", "enemy_missile_y"),
]
for _game, _old, _new in RENAMED:
    measures("ari-2019", _game, _old, _new)


@pytest.mark.parametrize(("game", "old", "new"), RENAMED)
def test_a_renamed_variable_is_the_same_moving_byte(game: str, old: str, new: str) -> None:
    ram = play(game).ram
    before = labels(ram, GAMES[game], "ari-2019", [old])[old]
    after = labels(ram, GAMES[game], "ari-2020", [new])[new]
    assert (before == after).all()
    assert len(np.unique(after)) > 1


@measures("ari-2019", "pitfall", "clock_min", "clock_sec")
def test_pitfalls_clock_bytes_are_drawn_and_lose_a_second_in_sixty_frames() -> None:
    one = play("pitfall")
    for address, columns in ((88, range(31, 44)), (89, range(54, 68))):  # minutes left of seconds
        changed = one.changed(one.states[0], {address: 0x12}, {address: 0x05})
        assert len(changed) > 0
        assert set(changed[:, 0]) <= set(range(22, 30))
        assert set(changed[:, 1]) <= set(columns)
    one.ale.restoreState(one.states[0])
    seconds = []
    for _ in range(601):
        one.ale.act(Action.NOOP)
        ram = one.ale.getRAM()
        seconds.append(60 * decimal(int(ram[88])) + decimal(int(ram[89])))
    assert seconds[0] - seconds[600] == 10
    assert set(np.diff(np.flatnonzero(np.diff(seconds)))) == {60}


@measures("ari-2019", "pong", "player_x", "enemy_x")
def test_pongs_paddles_have_an_x_that_never_changes_in_play() -> None:
    one = play("pong")
    # The agent's paddle is the right one, its columns 140-143; the enemy's the left one, 16-19.
    for address, paddle in ((46, set(range(136, 148))), (45, set(range(12, 24)))):
        assert len(np.unique(one.ram[:, address])) == 1
        here = int(one.ram[0, address])
        moved = [one.changed(state, {address: here + 4}) for state in one.states]
        assert sum(len(changed) > 0 for changed in moved) > len(one.states) / 2
        assert all(set(changed[:, 1]) <= paddle for changed in moved)


@measures("ari-2019", "qbert", *numbered("score", 3))
def test_qberts_score_bytes_are_ales_points() -> None:
    written, points = written_points("qbert", 89, 90, 91)
    assert written == points
    assert max(points) > 0


@measures("ari-2019", "qbert", *numbered("tile_color", 21))
@measures("corrected", "qbert", *numbered("tile_color", 21))
def test_qberts_tile_colors_each_color_one_cube_of_the_pyramid() -> None:
    one = play("qbert")
    tiles = [variable.addresses[0] for variable in annotations(GAMES["qbert"], "ari-2020") if "tile" in variable.name]
    state = one.states[0]
    boxes = []
    for address in tiles:
        changed = one.changed(state, {address: 0x1E}, {address: 0x86})
        boxes.append((changed[:, 0].min(), changed[:, 0].max(), changed[:, 1].min(), changed[:, 1].max()))
    tile = 0
    for row in range(6):
        of_row = boxes[tile : tile + row + 1]
        tile += row + 1
        tops = {top for top, *_ in of_row}
        assert max(tops) - min(tops) <= 2  # a row is level
        assert all(bottom - top < 6 and right - left < 20 for top, bottom, left, right in of_row)
        assert all(a[3] < b[2] for a, b in pairwise(of_row))  # left to right, apart
    assert [min(box[0] for box in boxes[n * (n + 1) // 2 :]) for n in range(6)] == [34, 62, 91, 120, 149, 178]
    assert {v.categories for v in annotations(GAMES["qbert"], "corrected") if "tile" in v.name} == {(MISC,)}


@measures("ari-2019", "seaquest", *numbered("diver_x", 4), *numbered("diver_or_enemy_missile_x", 4))
def test_seaquests_divers_and_enemy_missiles_share_their_bytes() -> None:
    one = play("seaquest")
    for lane in range(4):
        names = f"diver_x_{lane}", f"diver_or_enemy_missile_x_{lane}"
        (old,), (new,) = (
            [v for v in annotations(GAMES["seaquest"], set_name) if v.name == name]
            for set_name, name in zip(("ari-2019", "ari-2020"), names, strict=True)
        )
        assert old.addresses == new.addresses == (71 + lane,)
        assert (old.categories, new.categories) == ((OTHER,), (SMALL,))
        # Bit 2 of RAM 89 + lane says that a submarine swims in the lane; then the byte places a flat missile.
        heights = []
        for kind in (0, 4):
            changed = one.changed(one.states[0], {71 + lane: 80, 89 + lane: kind}, {71 + lane: 0, 89 + lane: kind})
            assert set(changed[:, 1]) <= set(range(80, 90))
            heights.append(np.ptp(changed[:, 0]) + 1)
        assert heights[0] > 2 * heights[1]


@measures("ari-2019", "space_invaders", "num_lives")
def test_space_invaders_lives_are_ram_73_and_not_125() -> None:
    one = play("space_invaders")
    assert one.ram[:, 73].tolist() == one.lives
    assert len(set(one.lives)) == 3
    # RAM 125 determines no number of lives: one value of it goes with several.
    assert len(set(zip(one.ram[:, 125].tolist(), one.lives, strict=True))) > len(np.unique(one.ram[:, 125]))


# corrected against ari-2020


@measures("corrected", "asteroids", "num_lives_direction", "num_lives")
@measures("corrected", "hero", "num_lives")
@measures("corrected", "breakout", "num_lives")
@pytest.mark.parametrize("game", ["asteroids", "hero", "breakout"])
def test_a_new_number_of_lives_is_ales(game: str) -> None:
    one = play(game)
    assert labels(one.ram, GAMES[game], "corrected")["num_lives"].tolist() == one.lives
    assert len(set(one.lives)) > 1


@measures("corrected", "qbert", "num_lives")
def test_qberts_lives_are_ales_less_two_and_drawn() -> None:
    one = play("qbert")
    assert labels(one.ram, GAMES["qbert"], "corrected")["num_lives"].tolist() == [(n - 2) % 256 for n in one.lives]
    assert len(set(one.lives)) > 1
    assert set(one.changed(one.states[0], {8: 2}, {8: 0})[:, 0]) <= set(range(16, 28))  # the row of little Q*berts


@measures("corrected", "asteroids", "player_direction")
def test_asteroids_heading_turns_with_the_joystick_and_leaves_the_lives() -> None:
    one = play("asteroids")
    turned = []
    for state in one.states:
        ends = []
        for action in (Action.LEFT, Action.RIGHT):
            one.ale.restoreState(state)
            start = one.ale.getRAM()
            for _ in range(16):
                one.ale.act(action)
            end = one.ale.getRAM()
            heading = [labels(ram, GAMES["asteroids"], "corrected")["player_direction"] for ram in (start, end)]
            ends.append(int(heading[1]) - int(heading[0]))
        assert sum(ends) % 16 == 0  # as far to the left as to the right
        turned.append(ends[0] % 16)
    # One of 16 headings in 4 frames, and none while the ship is exploding.
    assert max(turned) == 4


@measures("corrected", "berzerk", "enemy_robots_y_8")
def test_berzerk_has_eight_robots_and_an_end_mark() -> None:
    one = play("berzerk")
    assert set(one.ram[:, 64]) == {127}
    assert set(one.ram[:, 73]) == {0}
    # The rows that new robots stand in are 5, 15, ... 75: fill all eight, or add a ninth.
    eight = {56 + robot: 5 + 10 * robot for robot in range(8)} | {65 + robot: 40 for robot in range(9)} | {64: 127}
    last = [one.changed(state, {**eight, 72: 80}, eight) for state in one.states]
    assert sum(len(changed) > 0 for changed in last) > len(one.states) / 2
    for y in range(76, 90):
        nine = {**eight, 64: y}
        assert len(one.changed(one.states[1], {**nine, 73: 80}, nine)) == 0


@measures("corrected", "bowling", *numbered("pin_existence", 10))
def test_bowlings_pins_are_drawn_while_their_x_is_below_250() -> None:
    ale = open_ale(GAMES["bowling"], seed=0)
    pin_color, counts = np.array([45, 50, 184]), {}
    for direction in (Action.UP, Action.DOWN):
        ale.reset_game()
        for _ in range(20):
            ale.act(direction)
        for _throw in range(2):
            ale.act(Action.FIRE)
            for _ in range(900):  # 15 s: roll, return, stand
                ale.act(Action.NOOP)
            pixels = int((ale.getScreenRGB()[100:185, 100:] == pin_color).all(-1).sum())
            found = labels(ale.getRAM(), GAMES["bowling"], "corrected", numbered("pin_existence", 10))
            assert set(map(int, found.values())) <= {0, 1}
            counts[sum(map(int, found.values()))] = pixels
    assert len(counts) > 1
    # A pin is 2 x 4 pixels, and everything else in the picture stands still.
    assert {pixels - 8 * pins for pins, pixels in counts.items()} == {240}


@measures("corrected", "bowling", "score_hundreds")
@measures("corrected", "seaquest", "score_ten_thousands")
@measures("corrected", "hero", "score_ten_thousands")
@pytest.mark.parametrize(
    ("game", "address", "worth", "rows"),
    [("bowling", 38, 100, (19, 34)), ("seaquest", 56, 10_000, (9, 17)), ("hero", 55, 10_000, (179, 187))],
)
def test_a_score_has_a_higher_byte_that_is_drawn_and_counted(
    game: str, address: int, worth: int, rows: tuple[int, int]
) -> None:
    one = play(game)
    assert set(one.ram[:, address]) == {0}  # random play never gets there
    assert set(one.points_for({address: 1})) == {worth}
    changed = one.changed(one.states[0], {address: 1})
    assert len(changed) > 0
    assert set(changed[:, 0]) <= set(range(*rows))


@measures("corrected", "breakout", "score", "score_hundreds", "blocks_hit_count")
def test_breakouts_score_is_ram_77_and_76_and_ram_84_only_its_last_digit() -> None:
    ale = open_ale(GAMES["breakout"], seed=0)
    points, scores, digits = [0], [], []
    for frame in range(4000):
        ram = ale.getRAM()
        ball, paddle = int(ram[99]), int(ram[72]) + 9  # the paddle's middle, in the ball's coordinate
        following = Action.RIGHT if ball > paddle + 2 else Action.LEFT if ball < paddle - 2 else Action.NOOP
        points.append(points[-1] + ale.act(Action.FIRE if frame % 40 == 0 else following))
        ram = ale.getRAM()
        scores.append(decimal(int(ram[76]), int(ram[77])))
        digits.append(int(ram[84]))
        if points[-1] >= 30 or ale.game_over():
            break
    assert max(points) >= 30
    assert scores == points[1:]
    # RAM 84 is set when the digits are drawn, a frame or so later, so compare where the score stands still.
    shown = zip(scores, scores[1:], digits[1:], strict=False)
    assert {digit - 5 * (score % 10) for before, score, digit in shown if score == before} == {0}
    assert set(play("breakout").points_for({76: 1})) == {100}


@measures("corrected", "breakout", *numbered("block_bit_map", 6, first=30))
def test_breakouts_last_six_map_bytes_draw_the_leftmost_blocks() -> None:
    one = play("breakout")
    for row in range(6):
        changed = one.changed(one.states[0], {30 + row: 0xC0}, {30 + row: 0})
        assert (len(changed), *changed.min(0), *changed.max(0)) == (48, 87 - 6 * row, 8, 92 - 6 * row, 15)


@measures("corrected", "demon_attack", "player_x", "missile_x")
def test_demon_attacks_ram_16_moves_the_ship_and_22_the_missile() -> None:
    one = play("demon_attack")
    ship_rows = set(range(174, 186))
    ships, missiles = 0, 0
    for state in one.states:
        ram = ram_of(one, state)
        # The low nibble counts coarse steps of 15 pixels.
        ship = one.changed(state, {16: ram[16] ^ 1})
        missile = one.changed(state, {22: ram[22] ^ 1})
        ships += len(ship) == 88 and set(ship[:, 0]) == ship_rows
        missiles += len(missile) > 0
        assert len(missile) <= 20  # 1 x 8 to 10 pixels, here and there
    # Not while the ship is exploding.
    assert min(ships, missiles) > len(one.states) / 2


@measures("corrected", "montezuma_revenge", "items_in_inventory_count", "items_in_inventory")
def test_montezumas_inventory_is_ram_65_and_ram_61_the_skulls_picture() -> None:
    one = play("montezuma_revenge")
    skulls = 0
    for state in one.states:
        for bit in range(8):
            items = one.changed(state, {65: 1 << bit}, {65: 0})
            assert len(items) > 0
            assert set(items[:, 0]) <= set(range(28, 43))  # under the score
        skull = one.changed(state, {61: 0}, {61: 8})
        skulls += len(skull) > 0
        assert set(skull[:, 0]) <= set(range(166, 180))  # on the floor
    assert skulls > 0


@measures("corrected", "ms_pacman", "num_lives")
def test_ms_pacmans_lives_are_drawn_from_the_low_bits_of_ram_123() -> None:
    one = play("ms_pacman")
    game = GAMES["ms_pacman"]
    assert (labels(one.ram, game, "corrected")["num_lives"] + 1).tolist() == one.lives
    for byte in (0, 1, 2, 3, 16, 17, 18, 19, 34, 51):
        bottom = one.screen(one.states[0], {123: byte})[173:183, :100]
        inked = np.flatnonzero((bottom != bottom[0, 0]).any(axis=0))
        icons = 0 if len(inked) == 0 else 1 + int((np.diff(inked) > 2).sum())
        ram = np.zeros(128, np.uint8)
        ram[123] = byte
        assert labels(ram, game, "corrected")["num_lives"] == icons
    # The bits above change the fruit, which is not a number of lives.
    fruit = one.changed(one.states[0], {123: 18}, {123: 2})
    assert len(fruit) > 0
    assert fruit[:, 1].min() > 100


@measures("corrected", "ms_pacman", "player_score_hundreds", "player_score_ten_thousands")
def test_ms_pacmans_score_has_three_bytes() -> None:
    written, points = written_points("ms_pacman", 122, 121, 120)
    assert written == points
    assert max(points) >= 100
    one = play("ms_pacman")
    assert set(one.points_for({122: 1})) == {10_000}


@measures("corrected", "private_eye", "player_y")
def test_private_eyes_ram_97_lifts_the_detective_and_ram_86_nothing() -> None:
    one = play("private_eye")
    for state in one.states:
        ram = ram_of(one, state)
        tops = []
        for height in (40, 60, 80):
            changed = one.changed(state, {97: height}, {97: 0})
            assert np.ptp(changed[:, 1]) < 8  # one sprite
            tops.append(int(changed[:, 0].min()))
        assert tops[0] - tops[1] == tops[1] - tops[2] == 20
        assert len(one.changed(state, {86: ram[86] ^ 1})) == len(one.changed(state, {86: ram[86] ^ 16})) == 0


@measures("corrected", "private_eye", "dove_x", "dove_y")
def test_private_eyes_dove_is_where_a_slot_of_its_type_is() -> None:
    one = play("private_eye")
    # In random play no slot holds a dove, though RAM 48 and 39 vary.
    assert not np.isin(one.ram[:, 41:43], (14, 15)).any()
    assert len(np.unique(one.ram[:, 48])) > 1
    found = labels(one.ram, GAMES["private_eye"], "corrected", ["dove_x", "dove_y"])
    assert set(found["dove_x"]) == set(found["dove_y"]) == {0}
    # Both slots draw the same dove, 15 columns right of its x, and not while the type is another.
    pictures = []
    single = next(state for state in one.states if ram_of(one, state)[45] == 0)  # else the slot is drawn twice
    for types, x, y in ((41, 47, 38), (42, 48, 39)):
        place = {41: 0, 42: 0, x: 60, y: 60}
        pictures.append(one.changed(single, {**place, types: 14}, place))
        ram = np.zeros(128, np.uint8)
        ram[types], ram[x], ram[y] = 14, 60, 61
        found = labels(ram, GAMES["private_eye"], "corrected", ["dove_x", "dove_y"])
        assert (int(found["dove_x"]), int(found["dove_y"])) == (60, 61)
    assert (pictures[0] == pictures[1]).all()
    assert set(pictures[0][:, 1]) <= set(range(75, 83))


@measures("corrected", "seaquest", *numbered("enemy_formation", 4))
def test_seaquests_formations_say_which_of_three_places_hold_an_enemy() -> None:
    one = play("seaquest")
    for lane in range(4):
        spots = []
        for bit in range(3):
            writes = {30 + lane: 60, 71 + lane: 0}
            changed = one.changed(one.states[0], {**writes, 36 + lane: 1 << bit}, {**writes, 36 + lane: 0})
            assert np.ptp(changed[:, 1]) < 16
            spots.append(int(changed[:, 1].min()))
        assert spots[0] - spots[1] == spots[1] - spots[2] == 16


@measures("corrected", "seaquest", "surface_submarine_x")
def test_seaquests_ram_118_moves_the_submarine_at_the_surface() -> None:
    one = play("seaquest")
    changed = one.changed(one.states[0], {118: 40}, {118: 80})
    assert len(changed) > 0
    assert set(changed[:, 0]) <= set(range(45, 57))
    assert set(changed[:, 1]) <= {*range(40, 48), *range(80, 88)}


@measures("corrected", "space_invaders", "enemies_y")
def test_space_invaders_ram_16_moves_the_invaders_and_24_the_ground() -> None:
    one = play("space_invaders")
    for state in one.states:
        ram = ram_of(one, state)
        invaders = one.changed(state, {16: ram[16] + 1})
        assert len(invaders) > 500
        assert invaders[:, 0].min() < 100
        ground = one.changed(state, {24: ram[24] ^ 1})
        assert set(ground[:, 0]) <= set(range(180, 210))


@measures("corrected", "space_invaders", "missiles_y", *numbered("enemy_missile_y", 2), *numbered("enemy_missile_x", 2))
def test_space_invaders_missiles_are_moved_by_their_bytes_and_not_by_ram_9() -> None:
    one = play("space_invaders")
    # y of a missile, and its x: a y moves it within a column, an x within its 10 rows.
    for y, x in ((85, 87), (81, 83), (82, 84)):
        moved = 0
        for state in one.states:
            ram = ram_of(one, state)
            up_down, sideways = one.changed(state, {y: ram[y] ^ 4}), one.changed(state, {x: ram[x] ^ 2})
            if len(up_down) and len(sideways):
                moved += 1
                assert len(up_down) <= 20
                assert np.ptp(up_down[:, 1]) == 0
                assert np.ptp(sideways[:, 1]) == 2
        assert moved > 0, f"no missile of RAM {y} was in flight"
    for state in one.states:
        ram = ram_of(one, state)
        assert all(len(one.changed(state, {9: ram[9] ^ bit})) == 0 for bit in (1, 16, 128))


@measures("corrected", "tennis", "player_x", "player_y", "enemy_x", "enemy_y")
def test_the_joystick_moves_the_corrected_tennis_player_at_both_ends() -> None:
    one = play("tennis", steps=3000)
    game = GAMES["tennis"]
    steps: dict[tuple[int, str], set[int]] = {}
    for state in one.states:
        end = ram_of(one, state)[80]
        for axis, actions in (("x", (Action.LEFT, Action.RIGHT)), ("y", (Action.UP, Action.DOWN))):
            after = []
            for action in actions:
                one.ale.restoreState(state)
                one.ale.act(action)
                after.append(labels(one.ale.getRAM(), game, "corrected", [f"player_{axis}", f"enemy_{axis}"]))
            for name in after[0]:
                steps.setdefault((end, name), set()).add(abs(int(after[0][name]) - int(after[1][name])))
    # A step a frame to either side is 2 apart, and at the edge of the court 1. The opponent's y does not answer at
    # once; its x may, by 1.
    for end in (0, 1):
        assert steps[end, "player_x"] == {0, 2}
        assert 2 in steps[end, "player_y"]
        assert steps[end, "enemy_x"] <= {0, 1}
        assert steps[end, "enemy_y"] == {0}


@measures("corrected", "tennis", "ball_y")
def test_tennis_ball_is_drawn_at_ram_54_and_17_is_its_height() -> None:
    lane = Lane(GAMES["tennis"], seed=0, lane=0)
    lane.reset()
    sums, heights = [], []
    for _ in range(600):
        lane.step(lane.random_action())
        white = np.argwhere((lane.ale.getScreenRGB()[20:190, 9:152] == 236).all(-1))
        if len(white) == 4 and np.ptp(white[:, 0]) == np.ptp(white[:, 1]) == 1:  # the ball alone is 2 x 2 and white
            sums.append(int(white[:, 0].min()) + 20 + int(lane.ram[54]))
            heights.append(int(lane.ram[54]) - int(lane.ram[55]) - int(lane.ram[17]))
    assert len(sums) > 100
    assert set(sums) == {189, 190}  # the far half of the court is a row lower
    assert max(map(abs, heights)) <= 2


def differences(set_name: str) -> set[Difference]:
    """Where a set's tables differ from those of `ari-2020`, in the games that both have."""
    found = set()
    for game in GAMES.values():
        if set_name not in sets_with(game):
            continue
        here, base = (
            {v.name: (v.addresses, v.categories, v.decode) for v in annotations(game, name)}
            for name in (set_name, "ari-2020")
        )
        found |= {(set_name, game.name, name) for name in here.keys() | base.keys() if here.get(name) != base.get(name)}
    return found


def test_every_difference_between_the_sets_is_measured_above() -> None:
    existing = set().union(*(differences(name) for name in ANNOTATION_SETS))
    assert existing == MEASURED
