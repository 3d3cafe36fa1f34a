"""Printing on terminals that cannot show every character: the nearest plain ones are used instead."""

import codecs
import sys
import unicodedata
from io import TextIOWrapper

PLAIN = str.maketrans("─━│┃×·–—", "--||x*--") | str.maketrans({"±": "+-", "≥": ">=", "≤": "<="})


def never_fail_to_print() -> None:
    """Replace characters that stdout or stderr cannot encode, instead of failing."""
    codecs.register_error("manicap", _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not the substitute of a notebook or a test
            stream.reconfigure(errors="manicap")


def plain(text: str) -> str:
    """The text in ASCII: box drawing as lines, letters without accents, and ? for the rest."""
    return "".join(map(_plain, text.translate(PLAIN)))


def _plain(character: str) -> str:
    if unicodedata.name(character, "").startswith("BOX DRAWINGS"):
        return "+"
    letters = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return letters or "?"


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return plain(error.object[error.start : error.end]), error.end
