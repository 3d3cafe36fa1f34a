"""The errors that reach a user as one sentence instead of a traceback."""

import difflib
import errno
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake by the user: the command line prints only the message and exits with code 2."""


class Failure(Exception):
    """Something outside the program failed (a killed worker, a lost process): one sentence, exit code 1."""


class Interruption(Exception):
    """A signal asked the program to stop, and it shut down cleanly; the exit code names the signal, as in shells."""

    def __init__(self, signal_number: int, sentence: str) -> None:
        super().__init__(sentence)
        self.exit_code = 128 + signal_number


def refused_by_system(what: str, error: OSError) -> UserError | Failure:
    """`cannot write to runs/a: No space left on device`: a failure of the disk, or a path to change.

    NumPy has no number for a write that ends in the middle: `240 requested and 122 written`.
    """
    if error.errno is None:
        return Failure(f"{what}: {error}; is the disk full?")
    kind = Failure if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO) else UserError
    return kind(f"{what}: {error.strerror or error}")


def unknown_choice(kind: str, given: str, choices: Iterable[str]) -> UserError:
    """`unknown game 'pogn'; did you mean 'pong'? (24 games: asteroids, ...)`."""
    names = sorted(choices)
    plural = kind[:-1] + "ies" if kind.endswith("y") and kind[-2:] != "ey" else kind.removesuffix("s") + "s"
    counted = f"1 {kind}" if len(names) == 1 else f"{len(names)} {plural}"
    nearest = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return UserError(f"unknown {kind} {given!r}{hint} ({counted}: {', '.join(names)})")
