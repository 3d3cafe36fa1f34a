"""Where unit vectors lie on the sphere: pairs close together, all samples spread out (Wang and Isola 2020)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.samples import as_samples, require_pairs, unit_rows


def alignment(first: NDArray[Any], second: NDArray[Any], power: float = 2) -> float:
    """Mean distance of positive pairs on the sphere (arXiv 2005.10242, section 4.1): 0 if equal, 4 if opposite.

    align = E |f(x) - f(y)|^power        f of unit length
    """
    a, b = (unit_rows(as_samples(x, name, at_least=1)) for x, name in ((first, "first"), (second, "second")))
    require_pairs(a, b)
    return float((np.linalg.norm(a - b, axis=1) ** power).mean())


def uniformity(features: NDArray[Any], scale: float = 2) -> float:
    """Log of the mean Gaussian potential of all pairs (arXiv 2005.10242, section 4.1).

        uniform = log E exp(-scale |f(x) - f(y)|^2)        over pairs of different samples

    0 if all are equal; in high dimensions about -2 scale if they are spread evenly. Lower is more uniform.
    """
    unit = unit_rows(as_samples(features, "features"))
    first, second = np.triu_indices(len(unit), 1)
    lengths = (unit**2).sum(1)  # 1, or 0 of zero vectors
    squared = np.maximum(lengths[first] + lengths[second] - 2 * (unit @ unit.T)[first, second], 0)
    return float(np.log(np.exp(-scale * squared).mean()))


def spread(features: NDArray[Any]) -> float:
    """Root of the total variance of the unit vectors: 0 if all point the same way, 1 if they balance out.

        spread = sqrt(1 - |E f(x)|^2)        f of unit length

    The collapse measure of SimSiam (arXiv 2011.10566, section 4.1), over all units together: a standard deviation of
    1/sqrt(D) in each of D units is a spread of 1.
    """
    unit = unit_rows(as_samples(features, "features"))
    return float(np.sqrt(((unit - unit.mean(0)) ** 2).sum(1).mean()))
