"""Joins the files of all lanes into those of a store. The lanes' files are kept."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.environments.labels import MAX_CLASSES, Column, too_many_classes
from manicap.environments.lane_worker import finished_path
from manicap.environments.layout import Layout
from manicap.environments.store import EPISODE, STEP


def join_lanes(num_lanes: int, layout: Layout, directory: Path) -> tuple[Layout, int]:
    """Write the files; return the layout with the names of all classes, and the number of episodes."""
    lanes = range(num_lanes)
    sizes = [(directory / f"frames-{lane}").stat().st_size for lane in lanes]

    def parts(name: str, dtype: Any) -> list[NDArray[Any]]:
        return [np.fromfile(directory / f"{name}-{lane}", dtype) for lane in lanes]

    steps, episodes = parts("steps", STEP), parts("episodes", EPISODE)
    for lane in lanes:
        steps[lane]["offset"] += sum(sizes[:lane])
    np.save(directory / "steps.npy", np.concatenate(steps))
    np.save(directory / "episodes.npy", np.concatenate(episodes))
    if layout.action_type is not None:
        actions = np.concatenate(parts("actions", layout.action_type))
        np.save(directory / "actions.npy", actions.reshape(-1, *layout.action_shape))
    if layout.columns:
        classes = [json.loads(finished_path(directory, lane).read_bytes())["classes"] for lane in lanes]
        tables = parts("labels", layout.label_dtype)
        layout = replace(layout, columns=tuple(_joined(column, tables, classes) for column in layout.columns))
        np.save(directory / "labels.npy", np.concatenate(tables))
    with (directory / "frames.zst").open("wb") as joined:
        for lane in lanes:
            with (directory / f"frames-{lane}").open("rb") as part:
                shutil.copyfileobj(part, joined, 1 << 20)
    return layout, sum(map(len, episodes))


def _joined(column: Column, tables: list[NDArray[Any]], classes: list[dict[str, list[str]]]) -> Column:
    """The column with the sorted names of its classes. Indices, which lanes gave in their own order, are adapted."""
    if column.kind != "class":
        return column
    if column.type != "str":
        distinct = {value for table in tables for value in np.unique(table[column.name]).tolist()}
        if len(distinct) > MAX_CLASSES:
            raise too_many_classes(column)
        return column
    names = sorted({name for known in classes for name in known[column.name]})
    if len(names) > MAX_CLASSES:
        raise too_many_classes(column)
    place = {name: index for index, name in enumerate(names)}
    for table, known in zip(tables, classes, strict=True):
        table[column.name] = np.array([place[name] for name in known[column.name]])[table[column.name]]
    return replace(column, names=tuple(names))
