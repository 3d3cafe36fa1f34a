"""Names for files and page elements, made from any text."""

import re
from collections.abc import Iterable

_LONGEST = 80


def slug(text: str) -> str:
    """Letters, digits and single hyphens or underscores of the text, in lower case: a name without a path in it."""
    return re.sub(r"[^a-z0-9_]+", "-", text.lower())[:_LONGEST].strip("-") or "unnamed"


def unique(names: Iterable[str]) -> list[str]:
    """The names, with numbers added to repeated ones: different texts can have the same slug."""
    found: dict[str, None] = {}
    for name in names:
        number, candidate = 1, name
        while candidate in found:
            number += 1
            candidate = f"{name}-{number}"
        found[candidate] = None
    return list(found)
