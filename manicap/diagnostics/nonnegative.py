"""Many non-negative quadratic programs that share one matrix, solved together and exactly."""

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.samples import Floats

MAX_ROUNDS = 500
RIDGE = 1e-10
TOLERANCE = 1e-8
WARM_UP_STEPS = 100


def solve_nonnegative(gram: Floats, targets: Floats) -> Floats:
    """For every column b of `targets` the x >= 0 that minimises x^T G x / 2 - b^T x: [m, n] from [m, m] and [m, n].

    Block principal pivoting (Kim and Park 2011, SIAM J. Sci. Comput. 33): guess which entries are positive, solve for
    them, and exchange all that came out with the wrong sign, or only one when that stops helping. The first guess comes
    from projected gradients. Columns are solved in one batch and leave it once they satisfy the optimality conditions

        x >= 0,   y = G x - b >= 0,   x y = 0

    to 1e-8 of the column's scale. A ridge of 1e-10 of the largest diagonal entry makes up for a rank-deficient G.
    Raises ArithmeticError if a column does not converge.
    """
    m, n = targets.shape
    matrix = gram + RIDGE * gram.diagonal().max() * np.eye(m)
    # With a unit diagonal, one tolerance serves all entries.
    scale = 1 / np.sqrt(matrix.diagonal())
    matrix = matrix * np.outer(scale, scale)
    right = (targets * scale[:, None]).T
    right_scale = np.maximum(np.abs(right).max(1), np.finfo(np.float64).tiny)

    solution = np.zeros((n, m))
    positive = _approximate(matrix, right) > 0
    chances, fewest = np.full(n, 3), np.full(n, m + 1)
    left = np.arange(n)
    for _ in range(MAX_ROUNDS):
        solution[left] = _solve_on(matrix, right[left], positive[left])
        slack = solution[left] @ matrix - right[left]
        value = np.where(positive[left], solution[left], slack)
        wrong = value < -TOLERANCE * right_scale[left, None]
        count = wrong.sum(1)
        left, wrong, count = left[count > 0], wrong[count > 0], count[count > 0]
        if not len(left):
            return np.maximum(solution, 0).T * scale[:, None]
        better = count < fewest[left]
        fewest[left] = np.where(better, count, fewest[left])
        chances[left] = np.where(better, 3, chances[left] - 1)
        # No attempts left: exchange only the last wrong entry, which cannot cycle (Murty 1974).
        stuck = np.flatnonzero(chances[left] < 0)
        last = m - 1 - wrong[stuck][:, ::-1].argmax(1)
        wrong[stuck] = False
        wrong[stuck, last] = True
        positive[left] ^= wrong
    raise ArithmeticError(f"{len(left)} of {n} quadratic programs did not converge in {MAX_ROUNDS} rounds")


def _approximate(matrix: Floats, right: Floats) -> Floats:
    """An approximate solution by accelerated projected gradients: a good guess of the positive entries."""
    step = 1 / np.linalg.eigvalsh(matrix)[-1]
    x = ahead = np.zeros_like(right)
    for k in range(WARM_UP_STEPS):
        before, x = x, np.maximum(ahead - step * (ahead @ matrix - right), 0)
        ahead = x + k / (k + 3) * (x - before)
    return x


def _solve_on(matrix: Floats, right: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Solve G x = b on each row's positive entries, the others zero: [n, m]."""
    # Only as many unknowns as the row with the most positive entries has; shorter rows are padded with x = 0.
    size = max(int(positive.sum(1).max()), 1)
    order = np.argsort(~positive, axis=1, kind="stable")[:, :size]
    taken = np.take_along_axis(positive, order, 1)
    systems = np.where(taken[:, :, None] & taken[:, None, :], matrix[order[:, :, None], order[:, None, :]], 0.0)
    filled, entry = np.nonzero(~taken)
    systems[filled, entry, entry] = 1.0
    known = np.where(taken, np.take_along_axis(right, order, 1), 0.0)
    solution = np.zeros_like(right)
    np.put_along_axis(solution, order, np.linalg.solve(systems, known[..., None])[..., 0], 1)
    return solution
