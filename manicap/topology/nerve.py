"""The Čech nerve of an atlas, with one vertex per chart and a simplex wherever charts meet, and its Betti numbers.

nerve = build_nerve(membership, threshold=0.05)
nerve.betti_numbers        (1, 0, 1) for a sphere
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError

DEFAULT_THRESHOLD = 0.05
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
Simplex = tuple[int, ...]


@dataclass(frozen=True)
class Nerve:
    threshold: float
    num_charts: int
    simplices: tuple[Simplex, ...]
    """All of them, by dimension: vertices, edges, triangles, tetrahedra."""
    betti_numbers: tuple[int, ...]
    """Components, loops, cavities."""

    def of_dimension(self, dimension: int) -> list[Simplex]:
        return [simplex for simplex in self.simplices if len(simplex) == dimension + 1]


def build_nerve(membership: NDArray[Any], threshold: float = DEFAULT_THRESHOLD, max_dimension: int = 2) -> Nerve:
    """The nerve of the charts U_i = {x : q_i(x) > threshold} over the samples [n, N] (arXiv 2405.13848, section 3.1).

        {i, j, ...} is a simplex  iff  some sample x lies in all of U_i, U_j, ...

    If every intersection is contractible, the nerve has the homotopy type of the union of the charts. Betti numbers
    are given up to `max_dimension` and need simplices of one dimension more; none higher are built. Every sample lies
    in some chart if the threshold is below 1 / N; above, samples may lie in none.
    """
    q = np.asarray(membership)
    if q.ndim != 2 or not q.size:
        raise ValueError(f"build_nerve needs membership [n, N], got shape {list(q.shape)}")
    if not 0 <= threshold < 1:
        raise UserError(f"the threshold must lie in [0, 1), got {threshold}")
    found: set[Simplex] = set()
    for row in np.unique(q > threshold, axis=0):
        charts = np.flatnonzero(row).tolist()
        for size in range(1, min(len(charts), max_dimension + 2) + 1):
            found.update(combinations(charts, size))
    simplices = tuple(sorted(found, key=lambda simplex: (len(simplex), simplex)))
    return Nerve(threshold, q.shape[1], simplices, betti_numbers(simplices, max_dimension))


def sweep_thresholds(
    membership: NDArray[Any], thresholds: Sequence[float] = THRESHOLDS, max_dimension: int = 2
) -> list[Nerve]:
    """The nerve at each threshold: a hole that persists over a wide range is no accident of one threshold."""
    return [build_nerve(membership, threshold, max_dimension) for threshold in thresholds]


def betti_numbers(simplices: Sequence[Simplex], max_dimension: int = 2) -> tuple[int, ...]:
    """Ranks of the homology groups 0 .. max_dimension of a simplicial complex, over the field Z / 11, by gudhi."""
    try:
        import gudhi
    except ImportError:
        raise UserError("Betti numbers need gudhi: pip install 'manicap[topology]'") from None
    tree = gudhi.SimplexTree()
    for simplex in simplices:
        tree.insert(list(simplex))
    tree.compute_persistence(persistence_dim_max=True)
    found = [*tree.betti_numbers(), *[0] * (max_dimension + 1)]
    return tuple(found[: max_dimension + 1])
