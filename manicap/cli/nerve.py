"""`manicap nerve`: an atlas and its Čech nerve, of a shape, of points in a file, or of a trained run."""

import hashlib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.table import Table

from manicap.core.arrays import NOT_AN_ARRAY
from manicap.core.errors import UserError, unknown_choice
from manicap.core.files import atomic_write
from manicap.core.paths import DATA_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import Fraction, HeadCount, PlaySteps, Range, Seed, Threads
from manicap.core.reading import reason
from manicap.core.results import has_result, write_result
from manicap.core.seeding import numpy_generator
from manicap.jobs.nerve import run_membership
from manicap.report.nerve_figure import nerve_svg
from manicap.report.pages import write_page
from manicap.topology.fit import FitConfig, fit_atlas
from manicap.topology.nerve import DEFAULT_THRESHOLD, Nerve, build_nerve, sweep_thresholds
from manicap.topology.shapes import SHAPES
from manicap.train.device import set_threads
from manicap.train.finished import require_runs

OptionalRun = Annotated[
    Path | None, tyro.conf.Positional, tyro.conf.arg(help="Directory of a run of dim-ua, dim-ua-weighted or dim-uac+.")
]


def nerve(
    run: OptionalRun = None,
    shape: Annotated[str | None, tyro.conf.arg(metavar="circle|sphere|torus|FILE.npy")] = None,
    charts: HeadCount | None = None,
    dimension: Annotated[int, Range(1, 64)] | None = None,
    threshold: Fraction = DEFAULT_THRESHOLD,
    seed: Seed = 0,
    points: Annotated[int, Range(1, 10**7)] = 4000,
    fit: FitConfig = FitConfig(),  # noqa: B008 - frozen
    output: Path | None = None,
    probe_steps: PlaySteps = 12_000,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Draw an atlas and its Čech nerve, and count holes: components, loops, cavities.

    An atlas autoencoder learns charts that cover a shape; charts that share a point are joined. For a trained run, its
    own charts are used and the points are the test frames of its game.

    The circle of the paper's Figure 1: manicap nerve --shape circle

    A trained atlas: manicap nerve runs/pong-dim-ua-s0-1a2b3c4d

    Args:
        run: Directory of a run of dim-ua, dim-ua-weighted or dim-uac+.
        shape: circle, sphere, torus, or a NumPy file with points [n, C].
        charts: Number of charts; if omitted, the shape's own number, or 12 for a file.
        dimension: Dimension of the charts; if omitted, the shape's own, or one less than the space for a file.
        threshold: Membership above which a point belongs to a chart.
        seed: Seed of the points, the initial weights and the batches.
        points: Number of points drawn from a shape.
        fit: How the atlas is fitted.
        output: File of the drawing; if omitted, nerve.svg in the run's directory, or SHAPE-nerve.svg here.
        probe_steps: Steps of play; their test frames are the points of a run.
        threads: CPU threads; OMP_NUM_THREADS or all cores if omitted.
        data_dir: Where stores are kept.
    """
    if (run is None) == (shape is None):
        raise UserError("give either a run or --shape circle|sphere|torus|FILE.npy")
    set_threads(threads)
    cloud: NDArray[np.floating]
    membership: NDArray[np.floating]
    facts: dict[str, Any]
    if run is not None:
        require_runs((run,))
        cloud, membership = run_membership(run, probe_steps, data_dir)
        subject, path = run.name, output or run / "nerve.svg"
        facts, highest = {"probe_steps": probe_steps, "frames": len(cloud)}, 2
    else:
        assert shape is not None
        cloud, charts, dimension = _cloud(shape, points, charts, dimension, seed)
        atlas = fit_atlas(cloud, charts, dimension, seed, fit)
        membership, subject = atlas.membership, Path(shape).stem
        path = output or Path(f"{subject}-nerve.svg")
        facts = {"seed": seed, "points": len(cloud), "charts": charts, "dimension": dimension}
        facts["reconstruction_error"] = round(atlas.error, 4)
        highest = min(dimension, 2)  # a surface has no holes of a higher dimension than its own
    chosen = build_nerve(membership, threshold, highest)
    sweep = sweep_thresholds(membership, max_dimension=highest)
    said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts.items())
    plain_console().print(_table(f"{subject}: {said}", sweep))
    betti = ", ".join(map(str, chosen.betti_numbers))
    print(f"Betti numbers {betti} at threshold {threshold:g} ({said})")
    drawing = nerve_svg(cloud, membership, chosen.simplices, f"{subject}: Betti numbers {betti}").encode()
    atomic_write(path, drawing)
    print(f"drawing: {path}")
    if run is not None and path == run / "nerve.svg":
        facts["drawing_sha256"] = hashlib.sha256(drawing).hexdigest()
        write_result(run / "nerve.json", {**facts, "nerve": _plain(chosen), "sweep": [_plain(x) for x in sweep]})
        if has_result(run / "result.json"):
            print(f"page: {write_page(run, data_dir)}")


def _cloud(
    shape: str, count: int, charts: int | None, dimension: int | None, seed: int
) -> tuple[NDArray[np.floating], int, int]:
    """Points, with the number of charts and their dimension."""
    if shape in SHAPES:
        known = SHAPES[shape]
        return (
            known.sample(count, numpy_generator(seed, "shape")),
            charts or known.num_charts,
            dimension or known.dimension,
        )
    if not shape.endswith(".npy"):
        raise unknown_choice("shape", shape, SHAPES)
    try:
        points = np.load(shape, allow_pickle=False)
    except (OSError, *NOT_AN_ARRAY) as error:
        raise UserError(f"cannot read points from {shape}: {reason(error)}") from None
    if not isinstance(points, np.ndarray) or points.ndim != 2:
        raise UserError(f"{shape} must contain one array of points [n, C], got {getattr(points, 'shape', 'several')}")
    return points, charts or 12, dimension or max(points.shape[1] - 1, 1)


def _table(title: str, sweep: list[Nerve]) -> Table:
    table = Table(title=title, caption="a hole that persists over many thresholds is unlikely to be an artifact of one")
    for name in ("threshold", "Betti numbers", "charts", "edges", "triangles"):
        table.add_column(name, justify="right")
    for found in sweep:
        counts = [str(len(found.of_dimension(dimension))) for dimension in range(3)]
        table.add_row(f"{found.threshold:g}", ", ".join(map(str, found.betti_numbers)), *counts)
    return table


def _plain(found: Nerve) -> dict[str, Any]:
    counts = [len(found.of_dimension(dimension)) for dimension in range(3)]
    return {"threshold": found.threshold, "betti_numbers": list(found.betti_numbers), "simplices": counts}
