"""What a representation looks like, with or without labels: pure functions of features, one subject per file.

    from manicap.diagnostics import glue, manifold_capacity, simulated_capacity

    groups = [features[labels == k] for k in classes]              # one array [samples, D] per class
    glue(groups, np.random.default_rng(0)).capacity                # with dimension, radius, utility and alignments

    information          InfoNCE bound on mutual information, with its ceiling
    geometry             alignment, uniformity, spread on the sphere
    spectrum             effective rank, participation ratio, LiDAR, decay of the eigenvalues
    centroids            nuclear norm of the centroid matrix, its bound, the percent error
    units                dead units
    heads                similarity of heads: linear CKA and cosine
    membership           usage of charts, entropy of the membership
    effective_geometry   GLUE: capacity of groups of points under given or random labels, and its geometry
    mean_field           capacity, radius and dimension of each group, by mean-field theory
    simulation           capacity by simulation
    trend                capacity by number of points, and its limit
    collapse             neural collapse, NC1
    alarm                collapse, in words

All take NumPy arrays with one row per sample and compute in float64. docs/diagnostics.md explains how to read each.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manicap.diagnostics.collapse import neural_collapse
    from manicap.diagnostics.effective_geometry import Glue, glue
    from manicap.diagnostics.geometry import alignment, spread, uniformity
    from manicap.diagnostics.mean_field import ManifoldCapacity, manifold_capacity
    from manicap.diagnostics.simulation import SimulatedCapacity, simulated_capacity
    from manicap.diagnostics.spectrum import effective_rank, lidar, participation_ratio
    from manicap.diagnostics.trend import CapacityTrend, capacity_trend

_LAZY = {
    "CapacityTrend": "manicap.diagnostics.trend",
    "Glue": "manicap.diagnostics.effective_geometry",
    "ManifoldCapacity": "manicap.diagnostics.mean_field",
    "SimulatedCapacity": "manicap.diagnostics.simulation",
    "alignment": "manicap.diagnostics.geometry",
    "capacity_trend": "manicap.diagnostics.trend",
    "effective_rank": "manicap.diagnostics.spectrum",
    "glue": "manicap.diagnostics.effective_geometry",
    "lidar": "manicap.diagnostics.spectrum",
    "manifold_capacity": "manicap.diagnostics.mean_field",
    "neural_collapse": "manicap.diagnostics.collapse",
    "participation_ratio": "manicap.diagnostics.spectrum",
    "simulated_capacity": "manicap.diagnostics.simulation",
    "spread": "manicap.diagnostics.geometry",
    "uniformity": "manicap.diagnostics.geometry",
}
__all__ = [
    "CapacityTrend",
    "Glue",
    "ManifoldCapacity",
    "SimulatedCapacity",
    "alignment",
    "capacity_trend",
    "effective_rank",
    "glue",
    "lidar",
    "manifold_capacity",
    "neural_collapse",
    "participation_ratio",
    "simulated_capacity",
    "spread",
    "uniformity",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        found = getattr(import_module(_LAZY[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'manicap.diagnostics' has no attribute {name!r}")
