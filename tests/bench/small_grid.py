"""A grid that takes seconds, and works for its cells that go wrong on purpose. Importable by worker processes."""

import os
import signal
import time
from pathlib import Path

from manicap.bench.cell import Job, Outcome, measured, run_cell
from manicap.bench.grid import build_grid
from manicap.train.loop import Run

VALUES = {
    "title": "Small grid",
    "datasets": ["pong"],
    "methods": ["random-cnn", "st-dim"],
    "seeds": [0],
    "run": {"collect_steps": 640, "batch_size": 6, "max_steps": 6, "units": 8},
    "probe": {"probe_steps": 640, "probe": "knn"},
    "execution": {"threads": 1, "checkpoint_seconds": 0.0, "retries": 1},
}
"""A checkpoint after every step."""


def small_grid(**changes):
    return build_grid(VALUES | changes, "small")


def log_run(run_dir: Path, data_dir: Path) -> None:
    """Called by `run_cell` only for cells that were not done: a line each."""
    with (run_dir.parent / "log.txt").open("a") as file:
        file.write(f"{run_dir.name}\n")


def logged(job: Job) -> Outcome:
    return run_cell(job, show=log_run)


def failing_for_st_dim(job: Job) -> Outcome:
    """Fails on every attempt, and counts them."""
    if job.cell.config.method == "st-dim":
        with (job.runs_dir / f"{job.cell.name}.attempts").open("a") as file:
            file.write("x")
        return Outcome(job.cell.name, "failed", "out of luck", "traceback")
    return run_cell(job)


def talkative(job: Job) -> Outcome:
    """Answers with more than a pipe holds (64 KiB)."""
    return Outcome(job.cell.name, "failed", "out of luck", "x" * 300_000, is_final=True)


def killed_at_step_3(job: Job) -> Outcome:
    """The first attempt is killed in its fourth step; the next notes where it goes on."""
    marker = job.runs_dir / "killed"
    with at_steps(lambda step: interfere(step, marker)):
        return run_cell(job)


def interfere(step: int, marker: Path) -> None:
    if not marker.exists() and step == 3:
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    resumed = marker.with_name("resumed-at")
    if marker.exists() and not resumed.exists():
        resumed.write_text(str(step))


def held_on_doomed_node(job: Job) -> Outcome:
    """On the node named in `doomed`: in the fourth step, tell so and wait for the end of the node."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    marker = job.runs_dir / "held"

    def hold(step: int) -> None:
        if node == (job.runs_dir / "doomed").read_text() and step == 3 and not marker.exists():
            marker.write_text(job.cell.name)
            time.sleep(60)
        if marker.exists() and marker.read_text() == job.cell.name and not (job.runs_dir / "resumed-at").exists():
            (job.runs_dir / "resumed-at").write_text(f"{step} {node}")

    with at_steps(hold):
        return run_cell(job)


class at_steps:
    """Call a function with the step number before every training step of this process."""

    def __init__(self, call) -> None:
        self.call = call

    def __enter__(self) -> None:
        self.step = step = Run.step
        call = self.call

        def wrapped(run, rows):
            call(run.progress.step)
            return step(run, rows)

        Run.step = wrapped

    def __exit__(self, *_) -> None:
        Run.step = self.step


def result_files(grid, runs_dir):
    """What must not depend on the executor: weights, metrics, scores."""
    found = {}
    for cell in grid.cells:
        run_dir = runs_dir / cell.name
        for name in ("encoder.safetensors", "encoder.json", "config.toml"):
            found[cell.name, name] = (run_dir / name).read_bytes()
        for number, each in enumerate(cell.evaluations):
            evaluation = measured(run_dir, each).evaluation
            found[cell.name, number] = (evaluation.scores, evaluation.floors, evaluation.width)
    return found
