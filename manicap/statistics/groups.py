"""Which results belong together: their configs are equal in everything but the seed and the subject.

name_groups(results)     ["st-dim (max steps 20)", "st-dim (max steps 80)", "dim-c+", ...], one name per result
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

NOT_COMPARED = ("domain", "seed", "game", "dataset", "method")
"""The runs of a group differ in seed and subject; the method is in its name."""
OWN_OF_STL10 = {"recipe": "stl10-tsai2021", "stem": "stl10"}
OWN_OF_OTHERS = {"recipe": "cifar10-tsai2021", "stem": "cifar10"}
"""Settings that a preset chooses by the dataset: a method that uses each dataset's own counts as one method."""


class Trained(Protocol):
    """What a result must have."""

    @property
    def method(self) -> str: ...

    @property
    def config(self) -> Mapping[str, Any] | None: ...


def name_groups(results: Sequence[Trained]) -> list[str]:
    """The method of each result, with the settings that distinguish it if the method was trained in several ways."""
    trainings = [_training(result) for result in results]
    names = []
    for result, training in zip(results, trainings, strict=True):
        rivals = [t for r, t in zip(results, trainings, strict=True) if r.method == result.method]
        keys = dict.fromkeys(key for each in rivals for key in each)
        apart = [key for key in keys if len({json.dumps(each.get(key), sort_keys=True) for each in rivals}) > 1]
        told = ", ".join(f"{_words(key)} {_shown(training.get(key))}" for key in apart)
        names.append(f"{result.method} ({told})" if told else result.method)
    return names


def _training(result: Trained) -> dict[str, Any]:
    """The run's config, flattened; empty for a result without one."""
    config = result.config or {}
    flat = {key: value for key, value in config.items() if key not in (*NOT_COMPARED, "settings")}
    flat |= {f"settings.{key}": value for key, value in config.get("settings", {}).items()}
    own = OWN_OF_STL10 if config.get("dataset") == "stl10" else OWN_OF_OTHERS
    for key in flat:
        if flat[key] == own.get(key.removeprefix("settings.")):
            flat[key] = "the dataset's own"
    return flat


def _words(key: str) -> str:
    return key.removeprefix("settings.").replace("_", " ")


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
