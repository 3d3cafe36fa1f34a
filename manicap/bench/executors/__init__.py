"""Where the cells of a grid are computed: in this process, in several, or on a Ray cluster. One interface."""

import os
from typing import Literal

from manicap.bench.executors.base import Executor, Summary, run_grid
from manicap.bench.executors.processes import ProcessExecutor
from manicap.bench.executors.ray_cluster import RayExecutor
from manicap.bench.executors.serial import SerialExecutor

ExecutorName = Literal["serial", "processes", "ray"]

__all__ = ["Executor", "ExecutorName", "Summary", "make_executor", "run_grid"]


def make_executor(
    name: ExecutorName, workers: int | None = None, address: str | None = None, gpus: float = 0.0
) -> Executor:
    """`workers` is for processes (one per core if omitted), `address` and `gpus` are for Ray."""
    if name == "serial":
        return SerialExecutor()
    if name == "processes":
        return ProcessExecutor(workers if workers is not None else len(os.sched_getaffinity(0)))
    return RayExecutor(address, gpus)
