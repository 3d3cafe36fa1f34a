import pytest
from ale_py import roms

from manicap.atari.games import GAMES, PAPER_GAMES, STDIM_GAMES, find_game
from manicap.core.errors import UserError


@pytest.mark.parametrize(
    "name",
    ["ms_pacman", "MsPacman", "mspacman", "Ms Pacman", "MsPacmanNoFrameskip-v4", "ALE/MsPacman-v5", "MsPacman-ram-v0"],
)
def test_every_spelling_of_a_name_finds_the_game(name):
    assert find_game(name).name == "ms_pacman"


def test_every_game_is_found_under_its_gymnasium_ids():
    for game in GAMES.values():
        name = game.title.replace(" ", "")
        for env_id in (f"ALE/{name}-v5", f"{name}NoFrameskip-v4", f"{name}Deterministic-v4"):
            assert find_game(env_id) is game


def test_every_game_has_a_rom():
    assert len(GAMES) == 24
    assert set(GAMES) <= set(roms.get_all_rom_ids())


def test_the_lists_are_the_papers():
    assert len(PAPER_GAMES) == 19
    assert len(STDIM_GAMES) == 22
    assert set(PAPER_GAMES) < set(STDIM_GAMES)
    # arXiv 1906.08226 has these three beyond the 19 of arXiv 2405.13848.
    assert set(STDIM_GAMES) - set(PAPER_GAMES) == {"berzerk", "riverraid", "yars_revenge"}


def test_an_unknown_game_suggests_the_nearest():
    with pytest.raises(UserError, match=r"unknown game 'pogn'; did you mean 'pong'.*\(24 games: asteroids, "):
        find_game("pogn")
