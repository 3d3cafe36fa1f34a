"""What a number or a name may be, said once more and apart from the product's own checks.

A count is at least 1 and a float is finite and not negative, unless a line here says otherwise.
"""

import math
from typing import Any

MAY_BE_ZERO = {
    "seed": "a seed",
    "seeds": "seeds",
    "episode": "lives are counted from 0",
    "retries": "a failed cell need not be tried again",
    "only": "numbers of trials",
}
"""Whole numbers that may be 0."""
MAY_BE_NEGATIVE = {
    "best_epoch": "-1 is none",
    "target_ratio": "",
}
POSITIVE = ("learning_rate", "temperature", "neighbor_temperature", "clip_gradient_norm", "std", "fps")
"""Floats that must not be 0."""
GAMES = ("pong",)
"""Of the games there are, those that nonsense may hit upon."""
NAMES = (
    "game", "method", "methods", "annotation_set", "dataset", "datasets", "recipe", "encoder", "stem", "policy",
    "baseline", "shape", "protocol", "probe", "probe_input", "preset", "device", "precision", "weights", "purpose",
    "executor", "metric", "sinks", "probe_features", "format",
)  # fmt: skip
"""Words that must be one of a known few."""


def problem(name: str, value: Any) -> str:
    """Why the value cannot be what the field `name` means; empty if it can, or if that is not for us to say."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name} is {value}"
    if isinstance(value, int | float) and value < 0 and name not in MAY_BE_NEGATIVE:
        return f"{name} is negative"
    if isinstance(value, int) and value == 0 and name not in MAY_BE_ZERO:
        return f"{name} is 0"
    if isinstance(value, float) and value == 0 and name in POSITIVE:
        return f"{name} is 0"
    return ""
