"""Training curves of a run, from the lines of `metrics.jsonl`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from manicap.report.contents import Chart, Series

Lines = Sequence[Mapping[str, Any]]
PERCENTAGE_ERROR = "capacity_pretraining_percentage_error"
_PLACE = ("split", "epoch", "step", "loss")


def training_charts(lines: Lines) -> tuple[Chart, ...]:
    """The loss, its parts if there are several, how far the capacity stays below its bound, and the checks."""
    train, val, checks = ([line for line in lines if line["split"] == split] for split in ("train", "val", "check"))
    charts = [_chart("Loss", "loss", train, val)] if train else []
    parts = loss_parts(train)
    charts += [_chart(f"Part of the loss: {name}", name, train, val) for name in parts if len(parts) > 1]
    if train and PERCENTAGE_ERROR in train[0]:
        title = "Pretraining percentage error: what the nuclear norm lacks of its bound"
        charts.append(_chart(title, PERCENTAGE_ERROR, train))
    if checks:
        found = (_series("nearest neighbours", checks, "knn"), _series("short linear probe", checks, "linear"))
        charts.append(Chart("Accuracy of the checks", found))
    return tuple(charts)


def loss_parts(lines: Lines) -> list[str]:
    """The parts that add up to the loss: they come first in a line, before the other measures of the batch."""
    names = [name for name in lines[0] if name not in _PLACE] if lines else []
    for count in range(1, len(names) + 1):
        if all(_adds_up(line, names[:count]) for line in lines):
            return names[:count]
    return []


def _adds_up(line: Mapping[str, Any], names: Sequence[str]) -> bool:
    values = [line[name] for name in names]
    scale = max(map(abs, values))
    return math.isclose(sum(values), line["loss"], rel_tol=1e-4, abs_tol=1e-4 * scale)


def _chart(title: str, key: str, train: Lines, val: Lines = ()) -> Chart:
    validated = (_series("validation", val, key),) if val and key in val[0] else ()
    return Chart(title, (_series("training", train, key), *validated))


def _series(name: str, lines: Lines, key: str) -> Series:
    return Series(name, tuple(line["step"] for line in lines), tuple(line[key] for line in lines))
