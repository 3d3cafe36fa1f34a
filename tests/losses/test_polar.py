"""The polynomials of the polar route: optimal by the theorem of Chebyshev, composed to 1, restarted in time."""

import math

import numpy as np
import pytest
import torch

from manicap.losses.polar import Quintic, best_quintic, polar_factor, polar_stages, product_rounding, quintics

FLOAT32, FLOAT64 = 2.0**-23, 2.0**-52


@pytest.mark.parametrize(("low", "high"), [(0.1, 1.0), (0.01, 1.0), (0.3, 1.7), (0.9, 1.1)])
def test_the_error_has_equal_size_and_alternating_sign_at_four_points(low: float, high: float) -> None:
    # x, x^3, x^5 satisfy Haar's condition on [low, high]: with three coefficients, four such points prove optimality.
    step, error = best_quintic(low, high)
    x = np.linspace(low, high, 100_001)
    off = 1 - step.a * x - step.b * x**3 - step.c * x**5
    assert np.abs(off).max() == pytest.approx(error, rel=1e-6)
    peaks = np.flatnonzero(np.abs(off) > (1 - 1e-6) * error)
    signs = np.sign(off[peaks])
    assert 1 + np.count_nonzero(np.diff(signs)) == 4
    assert off[0] == pytest.approx(error, rel=1e-9)
    assert off[-1] == pytest.approx(-error, rel=1e-9)


def test_near_one_the_best_error_is_that_of_a_chebyshev_polynomial() -> None:
    # Newton and Schulz: 1 - p = -2.5 (x - 1)^3. The best multiple of a cubic on [-d, d] is T3, a quarter as large.
    _, error = best_quintic(0.99, 1.01)
    assert error == pytest.approx(2.5 * 0.01**3 / 4, rel=0.02)
    step, error = best_quintic(1 - 1e-5, 1 + 1e-5)
    assert step == pytest.approx((1.875, -1.25, 0.375), rel=1e-12)
    assert error == pytest.approx(2.5e-15, rel=1e-9)
    # On another scale: p(x / 2).
    assert best_quintic(2 - 2e-5, 2 + 2e-5)[0] == pytest.approx((1.875 / 2, -1.25 / 8, 0.375 / 32), rel=1e-12)


def test_a_quintic_is_what_it_says() -> None:
    assert Quintic(2.0, -3.0, 0.5)(2.0) == 2 * 2 - 3 * 8 + 0.5 * 32


@pytest.mark.parametrize(("eps", "most"), [(FLOAT32, 14), (FLOAT64, 32)])
def test_the_composition_moves_every_value_to_one_in_fewer_steps_than_fixed_coefficients(eps: float, most: int) -> None:
    # Fixed coefficients took 17 and 35. Values 1 % too large, from rounding, must come home too.
    steps = quintics(eps, eps)
    assert len(steps) <= most
    x = np.concatenate([np.geomspace(eps, 1, 2001), [1.01]])
    for step in steps:
        x = x * (step.a + x**2 * (step.b + x**2 * step.c))
        assert x.max() < 2
        assert x.min() > 0
    np.testing.assert_allclose(x, 1, rtol=0, atol=4 * FLOAT64 + eps)


def test_a_restart_comes_before_the_noise_of_a_gram_matrix_counts() -> None:
    stages = polar_stages(FLOAT32, FLOAT32)
    assert [len(stage) for stage in stages] == [3, 3, 3, 3, 2]
    for stage in stages:
        assert FLOAT32 * math.prod(step.a for step in stage) ** 2 < 2e-3
    assert sum(stages, start=()) == tuple(quintics(FLOAT32, FLOAT32))
    # Coarser products: a restart after every step that amplifies.
    assert [len(stage) for stage in polar_stages(FLOAT32, 2.0**-10)] == [1] * 12 + [2]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-11)])
def test_the_factor_has_the_singular_vectors_of_the_matrix(dtype: torch.dtype, tolerance: float) -> None:
    # Nearly equal rows, as of heads at the start of training: one large singular value, the others a hundredth.
    generator = torch.Generator().manual_seed(0)
    matrix = torch.ones(8, 1, dtype=dtype) + 0.01 * torch.randn(8, 20, generator=generator, dtype=dtype)
    U, _, Vh = torch.linalg.svd(matrix.double(), full_matrices=False)
    torch.testing.assert_close(polar_factor(matrix).double(), U @ Vh, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("precision", "bits"), [("highest", 23), ("high", 10), ("medium", 7)])
def test_products_of_lower_precision_get_their_restarts(precision: str, bits: int) -> None:
    # float32 has 23 bits behind the point, TF32 10 and bfloat16 7; float64 is multiplied as it is.
    matrix = torch.randn(6, 9, generator=torch.Generator().manual_seed(0))
    U, _, Vh = torch.linalg.svd(matrix, full_matrices=False)
    torch.set_float32_matmul_precision(precision)
    try:
        found, rounding = polar_factor(matrix), [product_rounding(dtype) for dtype in (torch.float32, torch.float64)]
    finally:
        torch.set_float32_matmul_precision("highest")
    assert rounding == [2.0**-bits, FLOAT64]
    torch.testing.assert_close(found, U @ Vh, rtol=0, atol=10 * 2.0**-bits)
