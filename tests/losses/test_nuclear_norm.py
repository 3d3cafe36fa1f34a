"""The nuclear norm by three routes: values by hand, agreement, gradients, and what happens at rank deficiency."""

import math

import pytest
import torch
from torch import Tensor

from manicap.losses.nuclear_norm import NuclearNormMethod, nuclear_norm

ROUTES: list[NuclearNormMethod] = ["svd", "gram", "polar"]


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def orthonormal(rows: int, columns: int, seed: int = 0) -> Tensor:
    q, _ = torch.linalg.qr(randn(columns, rows, seed=seed))
    return q.T.contiguous()


def spectrum(singular_values: list[float], rows: int, columns: int) -> Tensor:
    """A matrix with these singular values and otherwise zero."""
    k = len(singular_values)
    values = torch.tensor(singular_values, dtype=torch.float64)
    return orthonormal(k, rows).T @ (values[:, None] * orthonormal(k, columns, seed=1))


def value_and_gradient(matrix: Tensor, method: NuclearNormMethod) -> tuple[Tensor, Tensor]:
    leaf = matrix.detach().clone().requires_grad_()
    value = nuclear_norm(leaf, method)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


@pytest.mark.parametrize("method", ROUTES)
def test_orthonormal_rows_have_nuclear_norm_B(method: NuclearNormMethod) -> None:
    # B orthonormal rows: every singular value is 1. The polar factor of such a matrix is itself.
    matrix = orthonormal(6, 20)
    value, gradient = value_and_gradient(matrix, method)
    assert value.item() == pytest.approx(6, rel=1e-13)
    torch.testing.assert_close(gradient, matrix, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", ["svd", "gram"])
def test_equal_unit_rows_have_nuclear_norm_sqrt_B_and_themselves_as_gradient(method: NuclearNormMethod) -> None:
    # Rank one, u v^T with u = 1 of length sqrt(B): one singular value sqrt(B); smallest subgradient u v^T / sqrt(B).
    row = torch.nn.functional.normalize(randn(1, 20), dim=1)
    value, gradient = value_and_gradient(row.repeat(9, 1), method)
    assert value.item() == pytest.approx(3, rel=1e-12)
    torch.testing.assert_close(gradient, row.repeat(9, 1) / 3, rtol=0, atol=1e-13)


def test_polar_gives_a_subgradient_at_rank_one() -> None:
    # G is a subgradient at A when <G, A> is the norm, here 3, and no singular value of G exceeds 1.
    matrix = torch.nn.functional.normalize(randn(1, 20), dim=1).repeat(9, 1)
    value, gradient = value_and_gradient(matrix, "polar")
    assert value.item() == pytest.approx(3, rel=1e-13)
    assert (gradient * matrix).sum().item() == pytest.approx(3, rel=1e-13)
    assert torch.linalg.matrix_norm(gradient, 2).item() <= 1 + 1e-13


@pytest.mark.parametrize("method", ROUTES)
def test_diagonal_matrix_by_hand(method: NuclearNormMethod) -> None:
    # Singular values 3, 4, 5; the polar factor has the signs.
    value, gradient = value_and_gradient(torch.diag(torch.tensor([3.0, -4.0, 5.0]).double()), method)
    assert value.item() == pytest.approx(12, rel=1e-13)
    torch.testing.assert_close(gradient, torch.diag(torch.tensor([1.0, -1.0, 1.0]).double()), rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (5, 30), (30, 5), (8, 8), (64, 300)])
@pytest.mark.parametrize("method", ["gram", "polar"])
def test_routes_agree_with_svd_at_full_rank(method: NuclearNormMethod, shape: tuple[int, int]) -> None:
    matrix = randn(*shape)
    expected, expected_gradient = value_and_gradient(matrix, "svd")
    value, gradient = value_and_gradient(matrix, method)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", ROUTES)
@pytest.mark.parametrize("shape", [(64, 400), (300, 700)])
def test_float32_routes_keep_six_digits(method: NuclearNormMethod, shape: tuple[int, int]) -> None:
    # 300 rows exceed the size up to which `gram` is float64 throughout; the matrix is well conditioned.
    matrix = randn(*shape, dtype=torch.float32)
    expected = torch.linalg.svdvals(matrix.double()).sum()
    value, gradient = value_and_gradient(matrix, method)
    assert value.dtype == gradient.dtype == torch.float32
    assert value.item() == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(gradient @ gradient.T, torch.eye(shape[0]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", ROUTES)
@pytest.mark.parametrize("rows", [40, 300])
def test_float32_ill_conditioned_matrix_keeps_its_small_singular_values(method: NuclearNormMethod, rows: int) -> None:
    # Singular values 1, 1e-1, ..., 1e-5 in turn: a Gram matrix in float32 would lose those below 3e-4. Float32 input
    # moves each by 1e-7 of the largest at most.
    values = [10.0 ** -(i % 6) for i in range(rows)]
    value, gradient = value_and_gradient(spectrum(values, rows, 400).float(), method)
    assert value.item() == pytest.approx(sum(values), rel=1e-6)
    # All directions count: the gradient's squared length is the rank. Rounding of the input turns the direction of
    # 1e-5 by 1e-2 at most, which leaves its length.
    assert gradient.square().sum().item() == pytest.approx(rows, rel=1e-2)


@pytest.mark.parametrize("method", ["svd", "polar"])
def test_float64_resolves_singular_values_down_to_1e_minus_11(method: NuclearNormMethod) -> None:
    # The gradient is U V^T whatever the singular values: the smallest direction counts as much as the largest.
    value, gradient = value_and_gradient(spectrum([1.0, 1e-4, 1e-11], 3, 5), method)
    torch.testing.assert_close(value, torch.tensor(1 + 1e-4 + 1e-11, dtype=torch.float64), rtol=1e-14, atol=0)
    polar = orthonormal(3, 3).T @ orthonormal(3, 5, seed=1)
    torch.testing.assert_close(gradient, polar, rtol=0, atol=1e-4)  # eps over the smallest value: 2e-5


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_precision_of_a_large_gram_matrix_does_not_depend_on_its_scale(scale: float) -> None:
    # 300 rows: above the size that is always computed in float64. In float32, eigenvalues of A A^T carry an error of
    # 1e-7 of the largest, 1: as much as the smallest ones, 1e-6. Only float64 gives their roots, 1e-3, to six digits.
    values = [1.0] * 20 + [1e-3] * 280
    found = nuclear_norm((scale * spectrum(values, 300, 400)).float(), "gram")
    torch.testing.assert_close(float(found), scale * sum(values), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("method", ROUTES)
def test_rank_deficient_matrices_have_finite_value_and_bounded_gradient(
    method: NuclearNormMethod, dtype: torch.dtype
) -> None:
    base = randn(4, 12)
    for matrix in (
        torch.zeros(4, 12),
        torch.cat([base[:2], base[:2]]),
        torch.cat([base[:3], torch.zeros(1, 12)]),
        torch.outer(base[:, 0], base[0]),
    ):
        value, gradient = value_and_gradient(matrix.to(dtype), method)
        expected = torch.linalg.svdvals(matrix.double()).sum().item()
        assert value.item() == pytest.approx(expected, rel=1e-6, abs=1e-12)
        assert torch.isfinite(gradient).all()
        # A subgradient of the norm has no singular value above 1.
        assert torch.linalg.matrix_norm(gradient, 2).item() <= 1 + 1e-5


@pytest.mark.parametrize("method", ROUTES)
@pytest.mark.parametrize("factor", [1e-20, 1e20])
def test_the_norm_scales_with_the_matrix_and_its_gradient_does_not(method: NuclearNormMethod, factor: float) -> None:
    matrix = randn(5, 9)
    (value, gradient), (scaled, same) = (value_and_gradient(each, method) for each in (matrix, factor * matrix))
    assert scaled.item() == pytest.approx(factor * value.item(), rel=1e-12)
    torch.testing.assert_close(same, gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ROUTES)
def test_zero_matrix_has_value_and_gradient_zero(method: NuclearNormMethod) -> None:
    value, gradient = value_and_gradient(torch.zeros(3, 5), method)
    assert value.item() == 0
    assert torch.equal(gradient, torch.zeros(3, 5))


@pytest.mark.parametrize("method", ["svd", "gram"])
def test_gradient_at_rank_deficiency_is_the_smallest_subgradient(method: NuclearNormMethod) -> None:
    # Two singular values in a 5 x 9 matrix: U V^T over these two alone.
    matrix = spectrum([3.0, 1.0], 5, 9)
    expected = spectrum([1.0, 1.0], 5, 9)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        _, gradient = value_and_gradient(matrix.to(dtype), method)
        torch.testing.assert_close(gradient, expected.to(dtype), rtol=0, atol=tolerance)


@pytest.mark.parametrize("method", ROUTES)
def test_gradients_are_right(method: NuclearNormMethod) -> None:
    for shape in ((3, 5), (5, 3)):
        assert torch.autograd.gradcheck(lambda m: nuclear_norm(m, method), (randn(*shape).requires_grad_(),))


def test_auto_is_gram_on_a_cpu() -> None:
    # Of a matrix of rank 2 the two have other gradients: polar adds to the missing directions.
    matrix, smallest = spectrum([3.0, 1.0], 5, 9).float(), spectrum([1.0, 1.0], 5, 9).float()
    (_, found), (_, other) = (value_and_gradient(matrix, method) for method in ("auto", "polar"))
    torch.testing.assert_close(found, smallest, rtol=0, atol=1e-6)
    assert (other - smallest).abs().max() > 0.01


def test_autocast_and_half_precision_are_computed_in_float32() -> None:
    matrix = randn(6, 9, dtype=torch.float32).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = nuclear_norm(matrix, "polar")
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(torch.linalg.svdvals(matrix.float()).sum().item(), rel=1e-6)


def test_input_errors() -> None:
    with pytest.raises(ValueError, match=r"unknown nuclear norm method 'qr' \(one of auto, svd, gram, polar\)"):
        nuclear_norm(torch.eye(2), "qr")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"2 axes, got \[2, 3, 4\]"):
        nuclear_norm(torch.zeros(2, 3, 4))
    with pytest.raises(ValueError, match="non-empty"):
        nuclear_norm(torch.zeros(0, 4))
    for method in ("svd", "gram"):
        with pytest.raises(ValueError, match="finite entries"):
            nuclear_norm(torch.tensor([[1.0, math.nan]]), method)
