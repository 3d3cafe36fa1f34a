"""The 24 annotated games, by their command-line names."""

import re
from dataclasses import dataclass

from manicap.core.errors import unknown_choice


@dataclass(frozen=True)
class Game:
    """One game. `name` is ALE's own (`ms_pacman`), which is also the ROM's."""

    name: str
    in_paper: bool
    """One of the 19 games of arXiv 2405.13848."""
    in_stdim: bool
    """One of the 22 games of arXiv 1906.08226."""

    @property
    def title(self) -> str:
        """`Ms Pacman`"""
        return self.name.replace("_", " ").title()


GAMES: dict[str, Game] = {
    name: Game(name, in_paper, in_stdim)
    for name, in_paper, in_stdim in [
        ("asteroids", True, True),
        ("battle_zone", False, False),
        ("berzerk", False, True),
        ("bowling", True, True),
        ("boxing", True, True),
        ("breakout", True, True),
        ("demon_attack", True, True),
        ("freeway", True, True),
        ("frostbite", True, True),
        ("hero", True, True),
        ("montezuma_revenge", True, True),
        ("ms_pacman", True, True),
        ("pitfall", True, True),
        ("pong", True, True),
        ("private_eye", True, True),
        ("qbert", True, True),
        ("riverraid", False, True),
        ("seaquest", True, True),
        ("skiing", False, False),
        ("space_invaders", True, True),
        ("tennis", True, True),
        ("venture", True, True),
        ("video_pinball", True, True),
        ("yars_revenge", False, True),
    ]
}


PAPER_GAMES: tuple[str, ...] = tuple(game.name for game in GAMES.values() if game.in_paper)
STDIM_GAMES: tuple[str, ...] = tuple(game.name for game in GAMES.values() if game.in_stdim)
GAME_LISTS: dict[str, tuple[str, ...]] = {"all": tuple(GAMES), "paper": PAPER_GAMES, "stdim": STDIM_GAMES}

_BY_KEY = {name.replace("_", ""): game for name, game in GAMES.items()}
# What gymnasium and gym put around the game's name: ALE/X-v5, X-ram-v0, XNoFrameskip-v4, XDeterministic-v4.
_ENV_ID = re.compile(r"^(?:ale/)?(.*?)(?:-?ram)?(?:-?(?:noframeskip|deterministic))?(?:-v\d+)?$")


def find_game(name: str) -> Game:
    """`ms_pacman`, `MsPacman`, `Ms Pacman`, `MsPacmanNoFrameskip-v4` and `ALE/MsPacman-v5` all find the same game."""
    match = _ENV_ID.match(name.strip().lower())
    key = re.sub(r"[\s_\-']", "", match.group(1)) if match else ""
    if key not in _BY_KEY:
        raise unknown_choice("game", name, GAMES)
    return _BY_KEY[key]
