"""No loss is computed in half precision: with bfloat16 inputs, and under autocast, it is what float32 gives.

bfloat16 has 8 bits. Sums over pixels or units lose whole percents in it, and differences of nearly equal terms more:
the VAE's divergence came out 10 % too small.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manicap import losses

B, N, D, P, T = 12, 3, 16, 5, 6


def randn(*shape: int, seed: int = 0) -> Tensor:
    """Values that bfloat16 holds exactly, so that only the arithmetic can differ."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16().float()


def membership(seed: int = 0) -> Tensor:
    return torch.softmax(2 * randn(B, N, seed=seed), 1).bfloat16().float()


Loss = Callable[..., Tensor]
HEADS = (randn(B, N, D), randn(B, N, D, seed=1))
LOCAL = randn(B, P, D, seed=2)
IMAGES = (randn(B, 1, 20, 20), randn(B, 1, 20, 20, seed=1))
COVARIANCE = randn(N, D, D, seed=3)
LOSSES: dict[str, tuple[Loss, tuple[Tensor, ...]]] = {
    "unbalance": (losses.unbalance, (membership(),)),
    "chart_error": (losses.chart_error, (randn(B, D), randn(B, N, D), membership())),
    "certainty": (losses.certainty, (membership(),)),
    "imbalance": (losses.imbalance, (membership(),)),
    "nuclear_norm": (losses.nuclear_norm, (randn(B, D),)),
    **{
        losses.REGULARIZERS[name].__name__: (
            lambda *heads, name=name: losses.REGULARIZERS[name](0.1)(heads[0], None, heads[1])[0],
            HEADS,
        )
        for name in losses.REGULARIZERS
        if name != "none"
    },
    "epps_pulley": (losses.epps_pulley, (HEADS[0],)),
    "uniformity": (losses.uniformity, (HEADS[0],)),
    "nt_xent": (losses.nt_xent, HEADS),
    "infonce": (losses.infonce, (randn(B, D), randn(B, D, seed=1))),
    "global_local_infonce": (losses.global_local_infonce, (HEADS[0], LOCAL)),
    "local_local_infonce": (losses.local_local_infonce, (randn(B, P, D), LOCAL)),
    "cpc_infonce": (
        lambda one, two, targets: losses.cpc_infonce({1: one, 3: two}, targets),
        (randn(B, T - 1, D), randn(B, T - 3, D, seed=1), randn(B, T, D, seed=2)),
    ),
    "global_local_jsd": (losses.global_local_jsd, (HEADS[0], LOCAL)),
    "local_local_jsd": (losses.local_local_jsd, (randn(B, P, D), LOCAL)),
    "mmcr": (losses.mmcr, (HEADS[0],)),
    "squared_error": (losses.squared_error, IMAGES),
    "gaussian_kl": (losses.gaussian_kl, (0.05 * randn(B, 256), 0.05 * randn(B, 256, seed=1))),
    "pixel_prediction": (losses.pixel_prediction, IMAGES),
    "unexplained": (losses.unexplained, (randn(B, 400), randn(B, 400, seed=1))),
    "barlow_twins": (lambda z, other: losses.barlow_twins(z, other, normalize=True), HEADS),
    "negative_cosine": (losses.negative_cosine, HEADS),
    "normalized_regression": (losses.normalized_regression, HEADS),
    "covariance_contrast": (lambda *x: losses.covariance_contrast(*x)[0], (HEADS[0], COVARIANCE)),
    "invariance": (losses.invariance, HEADS),
    "variance_hinge": (losses.variance_hinge, (HEADS[0],)),
    "covariance_penalty": (losses.covariance_penalty, (HEADS[0],)),
}
PARTS_OF_LOSSES = {"centroids", "standardize", "Regularizer", "NoRegularizer"}
MODULES_OF_PARTS = {"pairs", "gather", "polar"}
"""Called by losses, which have left autocast and half precision before."""


def test_no_loss_is_missing_here() -> None:
    found = set()
    for module in pkgutil.iter_modules(losses.__path__):
        members = vars(importlib.import_module(f"manicap.losses.{module.name}")).items()
        for name, member in members:
            is_own = getattr(member, "__module__", "") == f"manicap.losses.{module.name}" and not name.startswith("_")
            if (
                is_own
                and (inspect.isfunction(member) or isinstance(member, type))
                and module.name not in MODULES_OF_PARTS
            ):
                found.add(name)
    assert found - PARTS_OF_LOSSES == set(LOSSES)


@pytest.mark.parametrize("name", LOSSES)
def test_half_precision_inputs_are_computed_in_float32(name: str) -> None:
    loss, inputs = LOSSES[name]
    inputs = tuple(x.bfloat16().float() for x in inputs)
    expected = loss(*inputs)
    found = loss(*(x.bfloat16() for x in inputs))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_autocast_does_not_reach_the_loss(name: str) -> None:
    loss, inputs = LOSSES[name]
    exact = [x.double().requires_grad_() for x in inputs]  # which no autocast touches
    expected = loss(*exact)
    expected_gradient = torch.autograd.grad(expected, exact[0])[0]
    leaves = [x.clone().requires_grad_() for x in inputs]
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(*leaves)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-6)
    gradient = torch.autograd.grad(found, leaves[0])[0]
    torch.testing.assert_close(gradient, expected_gradient.float(), rtol=1e-4, atol=1e-6)


def test_the_divergence_of_a_nearly_standard_posterior_is_right_from_bfloat16() -> None:
    # Mean 0, log variance v = 0.0625 exactly: 256 units of -(1 + v - e^v) / 2.
    log_variance = torch.full((4, 256), 0.0625).bfloat16()
    expected = -0.5 * 256 * (1 + 0.0625 - 2.718281828459045**0.0625)
    found = losses.gaussian_kl(torch.zeros(4, 256).bfloat16(), log_variance)
    assert found.item() == pytest.approx(expected, rel=1e-4)
