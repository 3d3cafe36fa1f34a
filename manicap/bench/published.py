"""Published numbers, carried as data in `published.json` with their sources."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

SOURCE = "arXiv 2405.13848, Tables 1 and 6 (VAE, CPC and ST-DIM there from arXiv 1906.08226, DIM-UA from 2305.10267)"

IMAGE_SOURCE = "arXiv 2405.13848, Table 2 (ResNet-50, 1000 epochs; SimCLR-UA there from arXiv 2305.10267)"
_IMAGE_METHODS = {
    "simclr": "simclr",
    "simclr-c+": "simclr-c+",
    "bt": "barlow-twins",
    "bt-c+": "barlow-twins-c+",
    "simclr-ua (arXiv 2305.10267)": "simclr-ua",
}


class Published(NamedTuple):
    """Mean over five seeds, and their standard deviation where it was published."""

    method: str
    f1: float
    f1_std: float | None
    accuracy: float
    accuracy_std: float | None


def published_scores(game: str) -> list[Published]:
    """The paper's numbers for a game, averaged over categories; empty for games it does not have."""
    f1, accuracy = _tables()["table1_f1"].get(game, {}), _tables()["table6_accuracy"].get(game, {})
    return [
        Published(method, entry["mean"], entry.get("std"), accuracy[method]["mean"], accuracy[method].get("std"))
        for method, entry in f1.items()
    ]


def published_image_accuracy(dataset: str) -> dict[str, float]:
    """Accuracy of the linear probe by method, under our names; empty for datasets that the paper does not have."""
    printed = _tables()["table2_image_accuracy"].get(dataset, {})
    return {_IMAGE_METHODS[name]: accuracy for name, accuracy in printed.items()}


def published_score(dataset: str, method: str, metric: str) -> tuple[float, float | None] | None:
    """Mean and deviation that the paper prints for a method as it is; None where it has none."""
    table = {"f1": "table1_f1", "accuracy": "table6_accuracy"}[metric]
    entry = _tables()[table].get(dataset, {}).get(method)
    if entry is not None:
        return entry["mean"], entry.get("std")
    accuracy = published_image_accuracy(dataset).get(method) if metric == "accuracy" else None
    return None if accuracy is None else (accuracy, None)


def published_sweep(dataset: str, sweep: str, point: tuple[Any, ...]) -> float | None:
    """F1 that the paper's text states for a point of Figures 2a and 2b (Video Pinball, DIM-C+)."""
    if dataset != "video_pinball" or len(point) != 1:
        return None
    figures = {"epsilon": ("figure_epsilon_video_pinball_f1", f"{point[0]:g}")}
    figures["units"] = ("figure_units_video_pinball_f1", f"4x{point[0]}")
    name, key = figures.get(sweep, ("", ""))
    value = _tables().get(name, {}).get(key)
    return None if value is None else float(value)


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(files("manicap.bench").joinpath("published.json").read_text())
    return tables
