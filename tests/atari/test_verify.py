"""`verify_game` measures what the emulator does, and leaves play as it was."""

import numpy as np
import pytest

from manicap.atari.annotations import annotations
from manicap.atari.emulator import Lane
from manicap.atari.games import GAMES
from manicap.atari.verify import VariableReport, count_changed_pixels, verify_game
from manicap.core.errors import UserError


@pytest.fixture(scope="module")
def pong() -> dict[str, VariableReport]:
    reports = verify_game(GAMES["pong"], "ari-2020", steps=300, num_points=5)
    return {report.variable.name: report for report in reports}


def test_there_is_a_report_for_every_variable_in_order(pong: dict[str, VariableReport]) -> None:
    assert list(pong) == [variable.name for variable in annotations(GAMES["pong"], "ari-2020")]
    # 5 points, 3 values written at each.
    assert {report.num_writes for report in pong.values()} == {15}


def test_pongs_paddle_x_does_not_vary_but_reaches_the_screen(pong: dict[str, VariableReport]) -> None:
    assert not pong["player_x"].varies
    assert pong["player_x"].entropy == 0.0
    assert pong["player_x"].changed_fraction > 0.5
    assert pong["ball_x"].varies


def test_a_byte_that_is_not_drawn_changes_no_pixel() -> None:
    # RAM 9 of Space Invaders is not drawn; RAM 28 is the player's x.
    reports = {r.variable.name: r for r in verify_game(GAMES["space_invaders"], "ari-2020", steps=200, num_points=4)}
    assert (reports["missiles_y"].changed_fraction, reports["missiles_y"].changed_pixels) == (0.0, 0.0)
    assert reports["player_x"].changed_fraction > 0.5


def test_probing_leaves_the_play_unchanged() -> None:
    def play(probing: bool) -> np.ndarray:
        lane = Lane(GAMES["breakout"], seed=3, lane=0)
        lane.reset()
        ram = []
        for _ in range(60):
            lane.step(lane.random_action())
            ram.append(lane.ram.copy())
            if probing:
                count_changed_pixels(lane.ale, [72, 99, 101])
        return np.stack(ram)

    assert (play(probing=True) == play(probing=False)).all()


def test_the_same_seed_gives_the_same_reports(pong: dict[str, VariableReport]) -> None:
    assert verify_game(GAMES["pong"], "ari-2020", steps=300, num_points=5) == list(pong.values())


def test_fewer_steps_than_points_are_all_probed() -> None:
    report = verify_game(GAMES["pong"], "ari-2020", steps=5, num_points=10)[0]
    # Five points, three values written into each of the variable's bytes.
    assert report.num_writes == 15 * len(report.variable.addresses)


@pytest.mark.parametrize(("steps", "seed"), [(0, 0), (-3, 0), (10**21, 0), (10, -1)])
def test_impossible_steps_and_seeds_are_one_sentence(steps: int, seed: int) -> None:
    with pytest.raises(UserError, match="steps must be between 1 and 1,000,000"):
        verify_game(GAMES["pong"], "ari-2020", steps=steps, seed=seed)
