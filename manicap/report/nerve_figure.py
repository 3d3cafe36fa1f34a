"""Figure 1 of arXiv 2405.13848, computed from data: an atlas on the left, its Čech nerve on the right, as SVG."""

import io
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

MAX_POINTS = 600
"""More points would show nothing new, and each costs bytes."""
_SIDE_VIEW = np.array([[0.94, -0.12], [0.34, 0.34], [0.0, 0.93]])
"""Viewpoint of a shape in space: slightly from the side and from above."""

Floats = NDArray[np.floating]
Simplices = Sequence[Sequence[int]]


def nerve_svg(points: Floats, membership: Floats, simplices: Simplices, title: str) -> str:
    """The figure as text; equal values give equal text.

    Points [n, C] are drawn in their plane, from the side, or, beyond three dimensions, along their two main directions.
    A vertex of the nerve lies at the centre of its chart.
    """
    flat = flatten(points)
    colors = matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, membership.shape[1]))
    text = io.StringIO()
    # Without a salt, element names are random; a date would change daily. A title is not a formula.
    style: dict[Any, Any] = {"svg.hashsalt": "manicap", "svg.fonttype": "none", "text.parse_math": False}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(9, 4.4), layout="constrained")
        canvas = FigureCanvasSVG(figure)
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        shown = np.linspace(0, len(flat) - 1, min(len(flat), MAX_POINTS)).astype(int)
        draw_atlas(left, flat[shown], membership[shown], colors)
        draw_nerve(right, chart_middles(flat, membership), simplices, colors)
        figure.suptitle(title, fontsize=10)
        canvas.print_svg(text, metadata={"Date": None})
    return text.getvalue()


def flatten(points: Floats) -> Floats:
    """Two coordinates per point."""
    n, dimension = points.shape
    if dimension <= 2:
        return np.column_stack([points, np.zeros((n, 2 - dimension))])
    if dimension == 3:
        return points @ _SIDE_VIEW
    centred = points - points.mean(0)
    some = centred[np.linspace(0, n - 1, min(n, 500)).astype(int)]  # enough to find the main directions
    main = np.linalg.svd(some, full_matrices=False)[2][:2].T
    # The sign of a singular vector is arbitrary: the largest entry is made positive.
    main = main * np.sign(main[np.abs(main).argmax(0), [0, 1]])
    projected: Floats = centred @ main
    return projected


def chart_middles(flat: Floats, membership: Floats) -> Floats:
    """Mean of the points, weighted by the membership: [N, 2]."""
    weight = membership / np.maximum(membership.sum(0), 1e-12)
    middles: Floats = weight.T @ flat
    return middles


def draw_atlas(axes: Axes, flat: Floats, membership: Floats, colors: Floats) -> Axes:
    """Every point in the mixture of its charts' colours."""
    axes.scatter(flat[:, 0], flat[:, 1], s=9, c=np.clip(membership @ colors[:, :3], 0, 1), linewidths=0)
    return _bare(axes, "atlas")


def draw_nerve(axes: Axes, positions: Floats, simplices: Simplices, colors: Floats) -> Axes:
    """A vertex per chart, an edge where two meet, a shaded triangle where three do."""
    triangles = [positions[list(simplex)] for simplex in simplices if len(simplex) == 3]
    edges = [positions[list(simplex)] for simplex in simplices if len(simplex) == 2]
    vertices = [simplex[0] for simplex in simplices if len(simplex) == 1]
    axes.add_collection(PolyCollection(triangles, facecolors="tab:blue", alpha=0.08, linewidths=0))
    axes.add_collection(LineCollection(edges, colors="0.35", linewidths=0.8))
    x, y = positions[vertices].T
    axes.scatter(x, y, s=60, c=colors[vertices], edgecolors="0.2", linewidths=0.6, zorder=3)
    counts = f"{len(vertices)} charts, {len(edges)} edges, {len(triangles)} triangles"
    return _bare(axes, f"nerve: {counts}")


def _bare(axes: Axes, title: str) -> Axes:
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=9)
    return axes
