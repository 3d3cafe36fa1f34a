"""The quantity that C+ maximises, with its upper bound."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.samples import as_samples, unit_rows


@dataclass(frozen=True)
class CentroidNorm:
    norm: float
    """||C||_*, the sum of the singular values of the centroid matrix."""
    bound: float
    """sqrt(P min(P, D)) for P samples of D units."""

    @property
    def percent_error(self) -> float:
        """How far the norm stays below its bound: 0 at the bound."""
        return 100 * (self.bound - self.norm) / self.bound


def centroid_norm(heads: NDArray[Any]) -> CentroidNorm:
    """Nuclear norm of the centroid matrix (arXiv 2405.13848, Eq 4) with its bound (arXiv 2406.09366).

        C_p = mean over heads of o_pn / |o_pn|
        ||C||_* <= sqrt(min(P, D)) ||C||_F <= sqrt(P min(P, D))

    `heads` is [P, heads, D]; features [P, D] count as one head. The bound is reached when the heads of a sample agree
    and all singular values are equal. It grows with P, so compare norms only at the same P.
    """
    x = np.asarray(heads)
    x = as_samples(x[:, None] if x.ndim == 2 else x, "heads", ndim=3)
    centroids = unit_rows(x).mean(1)
    P, D = centroids.shape
    norm = np.linalg.svd(centroids, compute_uv=False).sum()
    return CentroidNorm(float(norm), float(np.sqrt(P * min(P, D))))
