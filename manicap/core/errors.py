"""The one form of error for a mistake the user can mend."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake of the user's: the command line prints the sentence alone and exits with 2."""


def unknown_choice(kind: str, given: str, choices: Iterable[str]) -> UserError:
    """`unknown game 'pogn'; did you mean 'pong'? (24 games: asteroids, ...)`."""
    names = sorted(choices)
    plural = kind[:-1] + "ies" if kind.endswith("y") else kind + "s"
    nearest = difflib.get_close_matches(given, names, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(repr(name) for name in nearest)}?" if nearest else ";"
    return UserError(f"unknown {kind} {given!r}{hint} ({len(names)} {plural}: {', '.join(names)})")
