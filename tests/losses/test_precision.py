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

import manicap.losses
from manicap.losses import (
    atlas,
    capacity,
    contrastive,
    infonce,
    jsd,
    mmcr,
    reconstruction,
    redundancy,
    regression,
    tico,
    variance,
)

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
    "atlas.unbalance": (atlas.unbalance, (membership(),)),
    "atlas.chart_error": (atlas.chart_error, (randn(B, D), randn(B, N, D), membership())),
    "atlas.certainty": (atlas.certainty, (membership(),)),
    "atlas.imbalance": (atlas.imbalance, (membership(),)),
    "capacity.nuclear_norm": (capacity.nuclear_norm, (randn(B, D),)),
    "capacity.CapacityRegularizer": (
        lambda *heads: capacity.CapacityRegularizer(0.1)(heads[0], None, heads[1])[0],
        HEADS,
    ),
    "contrastive.nt_xent": (contrastive.nt_xent, HEADS),
    "infonce.infonce": (infonce.infonce, (randn(B, D), randn(B, D, seed=1))),
    "infonce.global_local_infonce": (infonce.global_local_infonce, (HEADS[0], LOCAL)),
    "infonce.local_local_infonce": (infonce.local_local_infonce, (randn(B, P, D), LOCAL)),
    "infonce.cpc_infonce": (
        lambda one, two, targets: infonce.cpc_infonce({1: one, 3: two}, targets),
        (randn(B, T - 1, D), randn(B, T - 3, D, seed=1), randn(B, T, D, seed=2)),
    ),
    "jsd.global_local_jsd": (jsd.global_local_jsd, (HEADS[0], LOCAL)),
    "jsd.local_local_jsd": (jsd.local_local_jsd, (randn(B, P, D), LOCAL)),
    "mmcr.mmcr": (mmcr.mmcr, (HEADS[0],)),
    "reconstruction.squared_error": (reconstruction.squared_error, IMAGES),
    "reconstruction.gaussian_kl": (reconstruction.gaussian_kl, (0.05 * randn(B, 256), 0.05 * randn(B, 256, seed=1))),
    "reconstruction.pixel_prediction": (reconstruction.pixel_prediction, IMAGES),
    "redundancy.barlow_twins": (lambda z, other: redundancy.barlow_twins(z, other, normalize=True), HEADS),
    "regression.negative_cosine": (regression.negative_cosine, HEADS),
    "regression.normalized_regression": (regression.normalized_regression, HEADS),
    "tico.covariance_contrast": (lambda *x: tico.covariance_contrast(*x)[0], (HEADS[0], COVARIANCE)),
    "variance.invariance": (variance.invariance, HEADS),
    "variance.variance_hinge": (variance.variance_hinge, (HEADS[0],)),
    "variance.covariance_penalty": (variance.covariance_penalty, (HEADS[0],)),
}
PARTS_OF_LOSSES = {"capacity.centroids", "redundancy.standardize", "pairs", "gather"}
"""Called by losses, which have left autocast and half precision before."""


def test_no_loss_is_missing_here() -> None:
    found = set()
    for module in pkgutil.iter_modules(manicap.losses.__path__):
        members = vars(importlib.import_module(f"manicap.losses.{module.name}")).items()
        for name, member in members:
            is_own = getattr(member, "__module__", "") == f"manicap.losses.{module.name}" and not name.startswith("_")
            if (
                is_own
                and (inspect.isfunction(member) or isinstance(member, type))
                and module.name not in PARTS_OF_LOSSES
            ):
                found.add(f"{module.name}.{name}")
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
    leaves = [x.clone().requires_grad_() for x in inputs]
    expected = loss(*leaves)
    expected_gradient = torch.autograd.grad(expected, leaves[0])[0]
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(*leaves)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(torch.autograd.grad(found, leaves[0])[0], expected_gradient, rtol=1e-5, atol=1e-7)


def test_the_divergence_of_a_nearly_standard_posterior_is_right_from_bfloat16() -> None:
    # Mean 0, log variance v = 0.0625 exactly: 256 units of -(1 + v - e^v) / 2.
    log_variance = torch.full((4, 256), 0.0625).bfloat16()
    expected = -0.5 * 256 * (1 + 0.0625 - 2.718281828459045**0.0625)
    found = reconstruction.gaussian_kl(torch.zeros(4, 256).bfloat16(), log_variance)
    assert found.item() == pytest.approx(expected, rel=1e-4)
