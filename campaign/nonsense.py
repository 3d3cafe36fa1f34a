"""Values that nobody should pass, by kind; some of them may be sound by chance, which is for the judge to see."""

import random
from typing import Any

INTEGERS = ["-1", "0", "-9223372036854775809", "1" + "0" * 21, "9" * 5000, "1.5", "1e3", "nan", "", " ", "x", "0x10",
            "１", "1_0", "--", "²", "٣", "1,000", "None", "True", "-0", "1" + "0" * 12]  # fmt: skip
FLOATS = ["nan", "-nan", "inf", "-inf", "1e400", "-1", "0", "-0.0", "1e-400", "", "x", "1e", "0x1p3", "1,5", "1e308",
          "infinity", "NaN", "-1e-9", "None"]  # fmt: skip
STRINGS = ["", " ", "x", "../../x", "../../../etc/x", "a/b", ".", "..", "-", "--", "\n", "a\nb", "\x1b[31mred", "\x07",
           "[/x]", "[bold]", "$\\frac{$", "%s%n", "{x}", "<img src=x onerror=alert(1)>", "\"><script>", "'; --", "é",
           "日本語", "🦊", "\u202e", "\ufeff", "x" * 300, "x" * 100_000, "\udcff", "null", "true", "0", "con",
           "pong\n", "PONG ", "st-dim\u200b", "~", "$HOME", "*", "&amp;"]  # fmt: skip
CHOICES = ["", "x", "nan", "0", "\n", "[/x]", "x" * 300, "é", "AUTO", "quick "]
PATHS = ["", ".", "missing", "missing/deep", "a-file", "a-directory", "a-loop", "a-dangling-link", "/dev/null/x",
         "/proc/self/nothing", "x" * 300, "é/日本", "a\nb", "[/x]", "\udcff", "-", "--", "a-file/x", "not-a-store",
         "empty.toml", "deep.toml", "latin1.toml", "digits.toml", "zeros.npy", "object.npy"]  # fmt: skip
BOOLEANS = ["maybe", "1", "", "True", "no"]
JSON_VALUES: list[Any] = [None, True, -1, 0, 1.5, float("nan"), float("inf"), float("-inf"), 10**21, 10**400, -(10**6),
                          "", "x", "[/x]", "../../x", "\x1b[31m", "x" * 10_000, [], [[]], {}, {"x": 1}, [None], "nan",
                          1e308, "<img src=x>", "\ud800", [1, 2, 3], "日本語"]  # fmt: skip

_WORDS = {"int": INTEGERS, "float": FLOATS, "str": STRINGS, "choice": CHOICES, "path": PATHS, "bool": BOOLEANS}


def word(rng: random.Random, kind: str) -> str:
    """A word for a flag of this kind, now and then one meant for another."""
    if rng.random() < 0.1:
        kind = rng.choice(sorted(_WORDS))
    return rng.choice(_WORDS[kind])


def json_value(rng: random.Random, old: Any) -> Any:
    """Something else than what was there."""
    if isinstance(old, int | float) and not isinstance(old, bool) and rng.random() < 0.3:
        return rng.choice([-old - 1, old * 1e6 + 1, 0, str(old), [old]])
    if isinstance(old, str) and rng.random() < 0.3:
        return rng.choice([old[::-1] + "x", old + "\n", old.upper() + " ", 0])
    return rng.choice(JSON_VALUES)
