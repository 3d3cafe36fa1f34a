"""The annotation tables: their size, their form, and the labels that they give."""

import subprocess
import sys

import numpy as np
import pytest

from manicap.atari.annotations import (
    AGENT,
    ANNOTATION_SETS,
    CATEGORIES,
    DISPLAY,
    MISC,
    OTHER,
    SMALL,
    annotations,
    categories,
    changes,
    labels,
    sets_with,
)
from manicap.atari.annotations.table import ARI_2020
from manicap.atari.games import GAMES, PAPER_GAMES, STDIM_GAMES, Game
from manicap.core.errors import UserError

# Variables by game, counted in the source tables: ari-2019, ari-2020.
COUNTS = {
    "asteroids": (41, 41),
    "battle_zone": (None, 14),
    "berzerk": (34, 34),
    "bowling": (16, 16),
    "boxing": (7, 7),
    "breakout": (35, 35),
    "demon_attack": (10, 10),
    "freeway": (12, 12),
    "frostbite": (17, 17),
    "hero": (8, 8),
    "montezuma_revenge": (15, 15),
    "ms_pacman": (17, 17),
    "pitfall": (5, 7),
    "pong": (6, 8),
    "private_eye": (10, 10),
    "qbert": (5, 29),
    "riverraid": (5, 5),
    "seaquest": (18, 18),
    "skiing": (None, 12),
    "space_invaders": (7, 7),
    "tennis": (8, 8),
    "venture": (18, 18),
    "video_pinball": (6, 6),
    "yars_revenge": (8, 8),
}
EVERY_TABLE = [(game, name) for game in GAMES.values() for name in sets_with(game)]


def test_each_game_has_as_many_variables_as_the_source_tables() -> None:
    counts = {
        name: tuple(len(annotations(game, s)) if s in sets_with(game) else None for s in ("ari-2019", "ari-2020"))
        for name, game in GAMES.items()
    }
    assert counts == COUNTS


def test_the_sets_have_308_and_362_and_386_variables() -> None:
    # ari-2020 lists 26 in no category (21 of Q*bert's tiles, 5 of Battle Zone). `corrected` adds 1 net in asteroids,
    # -1 berzerk, 1 bowling, 7 breakout, 1 demon attack, 2 hero, 2 ms pacman, 1 q*bert, 6 seaquest, 4 space invaders:
    # 362 + 24; and it gives the 21 tiles a category.
    totals, counted = dict.fromkeys(ANNOTATION_SETS, 0), dict.fromkeys(ANNOTATION_SETS, 0)
    for game, set_name in EVERY_TABLE:
        totals[set_name] += len(annotations(game, set_name))
        counted[set_name] += sum(len(variable.categories) > 0 for variable in annotations(game, set_name))
    assert totals == {"ari-2019": 308, "ari-2020": 362, "corrected": 386}
    assert counted == {"ari-2019": 308, "ari-2020": 336, "corrected": 381}


def test_the_19_and_22_games_are_in_every_set() -> None:
    assert set(ARI_2020) == set(GAMES)
    assert (len(PAPER_GAMES), len(STDIM_GAMES)) == (19, 22)
    assert {name for name, game in GAMES.items() if sets_with(game) == ANNOTATION_SETS} == set(STDIM_GAMES)
    assert set(PAPER_GAMES) < set(STDIM_GAMES)


@pytest.mark.parametrize(("game", "set_name"), EVERY_TABLE)
def test_a_table_has_unique_names_and_valid_addresses_and_categories(game: Game, set_name: str) -> None:
    variables = annotations(game, set_name)
    assert len({variable.name for variable in variables}) == len(variables)
    for variable in variables:
        assert len(variable.addresses) == 1 or variable.decode is not None
        assert all(0 <= address < 128 for address in variable.addresses)
        assert set(variable.categories) <= set(CATEGORIES)
        assert len(set(variable.categories)) == len(variable.categories)


@pytest.mark.parametrize(("game", "set_name"), EVERY_TABLE)
def test_a_decoded_label_depends_on_its_addresses_alone(game: Game, set_name: str) -> None:
    rng = np.random.default_rng(0)
    ram = rng.integers(0, 256, (50, 128), np.uint8)
    for variable in annotations(game, set_name):
        scrambled = rng.integers(0, 256, (50, 128), np.uint8)
        scrambled[:, variable.addresses] = ram[:, variable.addresses]
        assert (variable.labels(scrambled) == variable.labels(ram)).all()


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: game.name)
def test_every_change_in_corrected_says_why(game: Game) -> None:
    base = {v.name: (v.addresses, v.categories, v.decode) for v in annotations(game, "ari-2020")}
    for variable in annotations(game, "corrected"):
        same = base.get(variable.name) == (variable.addresses, variable.categories, variable.decode)
        assert same == (variable.why == "")
    assert all(len(change.why) > 20 for change in changes(game, "corrected"))
    dropped = base.keys() - {variable.name for variable in annotations(game, "corrected")}
    assert dropped == {name for change in changes(game, "corrected") for name in change.drop}


def test_the_base_table_has_no_changes_and_no_whys() -> None:
    for game in GAMES.values():
        assert changes(game, "ari-2020") == ()
        assert all(variable.why == "" and variable.decode is None for variable in annotations(game, "ari-2020"))


def test_categories_list_names_in_the_order_of_the_tables() -> None:
    assert CATEGORIES == (AGENT, SMALL, OTHER, DISPLAY, MISC)
    assert categories(GAMES["boxing"], "ari-2020") == {
        AGENT: ("player_x", "player_y"),
        OTHER: ("enemy_x", "enemy_y"),
        DISPLAY: ("enemy_score", "clock", "player_score"),
    }
    # One byte in two categories counts in both.
    asteroids = categories(GAMES["asteroids"], "ari-2020")
    assert "num_lives_direction" in asteroids[DISPLAY]
    assert "num_lives_direction" in asteroids[MISC]


def test_labels_are_the_bytes_at_the_addresses_for_any_leading_shape() -> None:
    ram = np.arange(2 * 3 * 128, dtype=np.uint32).astype(np.uint8).reshape(2, 3, 128)
    found = labels(ram, GAMES["pong"], "ari-2020")
    assert list(found) == [variable.name for variable in annotations(GAMES["pong"], "ari-2020")]
    assert (found["ball_x"] == ram[..., 49]).all()
    assert labels(ram[0, 0], GAMES["pong"], "ari-2020")["ball_y"] == 54
    assert list(labels(ram, GAMES["pong"], "ari-2020", ["enemy_y", "ball_x"])) == ["enemy_y", "ball_x"]


@pytest.mark.parametrize(
    ("game", "bytes_", "expected"),
    [
        ("asteroids", {60: 0x4D}, {"num_lives": 4, "player_direction": 13}),
        ("ms_pacman", {123: 0x12}, {"num_lives": 2}),
        ("bowling", {57: 249, 58: 250, 59: 255}, {"pin_existence_0": 1, "pin_existence_1": 0, "pin_existence_2": 0}),
        ("tennis", {80: 0, 26: 1, 27: 2, 24: 3, 25: 4}, {"player_x": 1, "enemy_x": 2, "player_y": 3, "enemy_y": 4}),
        ("tennis", {80: 1, 26: 1, 27: 2, 24: 3, 25: 4}, {"player_x": 2, "enemy_x": 1, "player_y": 4, "enemy_y": 3}),
        ("private_eye", {41: 6, 42: 15, 47: 1, 48: 2, 38: 3, 39: 4}, {"dove_x": 2, "dove_y": 4}),
        ("private_eye", {41: 14, 42: 15, 47: 1, 48: 2, 38: 3, 39: 4}, {"dove_x": 1, "dove_y": 3}),
        ("private_eye", {41: 6, 42: 8, 47: 1, 48: 2, 38: 3, 39: 4}, {"dove_x": 0, "dove_y": 0}),
    ],
)
def test_packed_and_conditional_bytes_are_decoded(game: str, bytes_: dict[int, int], expected: dict[str, int]) -> None:
    ram = np.zeros((2, 128), np.uint8)
    for address, value in bytes_.items():
        ram[1, address] = value
    found = labels(ram, GAMES[game], "corrected", expected)
    assert all(array.dtype == np.uint8 and array.shape == (2,) for array in found.values())
    assert {name: int(array[1]) for name, array in found.items()} == expected


def test_an_unknown_set_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown annotation set 'corected'; did you mean 'corrected'"):
        annotations(GAMES["pong"], "corected")


def test_an_unknown_variable_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown pong variable 'bal_x'; did you mean 'ball_x'"):
        labels(np.zeros(128, np.uint8), GAMES["pong"], "corrected", ["bal_x"])


@pytest.mark.parametrize("ram", [np.zeros(127, np.uint8), np.zeros(128, np.int64)])
def test_labels_refuse_what_is_not_ram(ram: np.ndarray) -> None:
    with pytest.raises(ValueError, match="labels needs RAMs uint8"):
        labels(ram, GAMES["pong"], "corrected")


def test_annotations_do_not_import_torch() -> None:
    code = "import sys, manicap.atari.annotations; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
