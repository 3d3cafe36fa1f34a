"""Published numbers, stored in `published.json` with their sources."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from manicap.domains.base import Published

ATARI_SOURCE = (
    "arXiv 2405.13848, Tables 1 and 6 (VAE, CPC and ST-DIM there from arXiv 1906.08226, DIM-UA from 2305.10267)"
)

IMAGE_SOURCE = "arXiv 2405.13848, Table 2 (ResNet-50, 1000 epochs; SimCLR-UA there from arXiv 2305.10267)"
_IMAGE_METHODS = {
    "simclr": "simclr",
    "simclr-c+": "simclr-c+",
    "bt": "barlow-twins",
    "bt-c+": "barlow-twins-c+",
    "simclr-ua (arXiv 2305.10267)": "simclr-ua",
}


def published_scores(game: str) -> list[Published]:
    """The paper's numbers for a game, averaged over categories; empty for games it does not include."""
    f1, accuracy = _tables()["table1_f1"].get(game, {}), _tables()["table6_accuracy"].get(game, {})
    return [
        Published(method, {"f1": _with_deviation(f1[method]), "accuracy": _with_deviation(accuracy[method])})
        for method in f1
    ]


def published_image_scores(dataset: str) -> list[Published]:
    """Accuracy of the linear probe by method, under our names; empty for datasets the paper does not include."""
    printed = _tables()["table2_image_accuracy"].get(dataset, {})
    return [Published(_IMAGE_METHODS[name], {"accuracy": (accuracy, None)}) for name, accuracy in printed.items()]


def _with_deviation(entry: Mapping[str, float]) -> tuple[float, float | None]:
    return entry["mean"], entry.get("std")


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
    tables: dict[str, Any] = json.loads(files("manicap.domains").joinpath("published.json").read_text())
    return tables
