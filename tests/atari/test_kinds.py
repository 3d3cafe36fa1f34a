"""What each variable is: a place, a number or a name."""

import numpy as np
import pytest

from manicap.atari.annotations import ANNOTATION_SETS, MISC, annotations, kind_of, sets_with, why_name
from manicap.atari.annotations.kinds import COUNTS, NAMES
from manicap.atari.games import GAMES, find_game

EVERYTHING = [
    (game, variable)
    for game in GAMES
    for name in sets_with(find_game(game))
    for variable in annotations(find_game(game), name)
]


def test_every_variable_of_misc_is_marked_as_a_name_or_a_count():
    for game, variable in EVERYTHING:
        if MISC in variable.categories or not variable.categories:
            is_count = variable.name in COUNTS.get(game, ())
            assert bool(why_name(game, variable.name)) != is_count, (game, variable.name)


def test_every_mark_is_about_a_variable():
    for table in (NAMES, COUNTS):
        for game, marked in table.items():
            known = {variable.name for other, variable in EVERYTHING if other == game}
            stems = {name.rpartition("_")[0] for name in known if name.rpartition("_")[2].isdigit()}
            assert set(marked) <= known | stems, game


@pytest.mark.parametrize(
    ("game", "variable", "kind"),
    [
        ("pong", "ball_x", "place"),
        ("pong", "player_score", "number"),
        ("montezuma_revenge", "room_number", "class"),
        ("breakout", "block_bit_map_7", "class"),
        ("space_invaders", "invaders_left_count", "number"),
        ("asteroids", "player_direction", "class"),
        ("venture", "sprite3_x", "place"),
    ],
)
def test_kinds_of_some(game, variable, kind):
    table = {each.name: each for each in annotations(find_game(game), "corrected")}
    assert kind_of(game, table[variable]) == kind


def test_names_and_numbers_of_all_sets():
    kinds = {kind_of(game, variable) for game, variable in EVERYTHING}
    assert kinds == {"place", "number", "class"}
    assert len(ANNOTATION_SETS) == 3


def test_names_have_few_values_in_play(pong_store, breakout_store):
    """A name with as many values as a place would be a mistake of the table."""
    for store in (pong_store, breakout_store):
        game = find_game(store.config.game)
        for variable in annotations(game, "corrected"):
            if kind_of(game.name, variable) == "class":
                assert len(np.unique(variable.labels(np.asarray(store.ram)))) <= 64
