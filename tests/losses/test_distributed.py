"""Two real processes over gloo: losses and gradients, averaged as DDP does, equal the single-process ones."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from manicap.diagnostics.training import regularizer_shares
from manicap.losses import REGULARIZERS
from manicap.losses.capacity import CapacityRegularizer
from manicap.losses.contrastive import nt_xent
from manicap.losses.gather import gather_rows, mean_over_processes, row_offset
from manicap.losses.infonce import cpc_infonce, global_local_infonce, infonce, local_local_infonce
from manicap.losses.jsd import global_local_jsd, local_local_jsd
from manicap.losses.mmcr import mmcr
from manicap.losses.reconstruction import unexplained
from manicap.losses.redundancy import barlow_twins
from manicap.losses.regression import negative_cosine
from manicap.losses.sigreg import epps_pulley
from manicap.losses.tico import covariance_contrast
from manicap.losses.uniformity import uniformity
from manicap.losses.variance import covariance_penalty, invariance, variance_hinge
from tests.algorithms.small_images import build_small, make_views

WORLD, B = 2, 6
Loss = Callable[[Tensor, Tensor], Tensor]


def by_ratio(name: str) -> Loss:
    """The automatic weight, which must be the same everywhere; the base loss is each process's own."""
    return lambda heads, y: REGULARIZERS[name](target_ratio=0.1)(heads, y.square().mean())[0]


# Each takes heads [B, 3, 4] and a map or sequence [B, 5, 4].
LOSSES: dict[str, Loss] = {
    "infonce": lambda h, y: infonce(h[:, 0], y[:, 0]),
    "global_local_infonce": global_local_infonce,
    "local_local_infonce": lambda h, y: local_local_infonce(h, y[:, :3]),
    "cpc_infonce": lambda h, y: cpc_infonce({2: h, 4: h[:, :1]}, y, chunk_rows=4),
    "global_local_jsd": global_local_jsd,
    "local_local_jsd": lambda h, y: local_local_jsd(h, y[:, :3]),
    "capacity": lambda h, y: CapacityRegularizer(0.5)(h)[0],
    **{f"{name}_by_ratio": by_ratio(name) for name in REGULARIZERS if name != "none"},
    "epps_pulley": lambda h, y: epps_pulley(h),
    "uniformity": lambda h, y: uniformity(h) + uniformity(y),
    "nt_xent": lambda h, y: nt_xent(h, y[:, :3]),
    "barlow_twins": lambda h, y: barlow_twins(h, y[:, :3]),
    "mmcr": lambda h, y: mmcr(torch.cat([h, y], dim=1)),
    "unexplained": lambda h, y: unexplained(h, y[:, :3].detach()),
    "invariance": lambda h, y: invariance(h, y[:, :3]),
    "variance_hinge": lambda h, y: variance_hinge(h) + variance_hinge(y),
    "covariance_penalty": lambda h, y: covariance_penalty(h),
    "negative_cosine": lambda h, y: negative_cosine(h, y[:, :3]),
    "covariance_contrast": lambda h, y: covariance_contrast(h, torch.eye(4, dtype=h.dtype).expand(3, 4, 4))[0],
}


ONE_EACH = ("nt_xent", "mmcr", "variance_hinge", "covariance_penalty", "uniformity")
"""Losses of two samples, which may be on two processes."""


def inputs() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (B, 3, 4), (B, 5, 4)
    heads, y = (torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes)
    return heads, y


def loss_and_gradients(loss: Loss, heads: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    value = loss(heads, y)
    gradients = torch.autograd.grad(value, (heads, y), allow_unused=True)
    of_heads, of_y = (torch.zeros_like(x) if g is None else g for x, g in zip((heads, y), gradients, strict=True))
    return value.detach(), of_heads, of_y


def work(rank: int, directory: str) -> None:
    """One process: its half of the batch through every loss; the results go to a file."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{directory}/rendezvous", rank=rank, world_size=WORLD)
    rows = slice(rank * B // WORLD, (rank + 1) * B // WORLD)
    results: dict[str, tuple[Tensor, ...]] = {}
    for name, loss in LOSSES.items():
        heads, y = (x.detach()[rows].requires_grad_() for x in inputs())
        results[name] = loss_and_gradients(loss, heads, y)
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.full((2, 3), rank + 1.0, dtype=dtype).requires_grad_()
        gathered = gather_rows(x)
        # Process r asks (r + 1) of every row: together 1 + 2 = 3.
        (gradient,) = torch.autograd.grad(gathered.sum() * (rank + 1), x)
        results[str(dtype)] = (gathered.detach(), gradient, torch.tensor(row_offset(2)))
    x = torch.arange(6.0).view(2, 3) + 100 * rank
    results["transposed"] = (gather_rows(x.mT), mean_over_processes(x), x)
    y = torch.zeros(2, 3, requires_grad=True)
    wanted = torch.arange(12.0).view(4, 3)
    columns = wanted.mT.contiguous().mT  # the same, column by column
    results["gradients"] = (*(torch.autograd.grad(gather_rows(y), y, each)[0] for each in (wanted, columns)), wanted)
    # One sample here and one there are a batch of two.
    one = [x.detach()[rows][:1] for x in inputs()]
    results["one each"] = tuple(LOSSES[name](*one) for name in ONE_EACH)
    method = build_small("mmcr")
    bound = method.loss(make_views(method, size=3, seed=rank)).metrics["capacity_bound"]
    _, measured = CapacityRegularizer(1.0)(torch.ones(3, 2, 8))
    results["bound"] = (torch.tensor(bound), torch.tensor(measured["bound"]))
    if rank == 0:  # alone: it must not wait for the other
        method = build_small("simclr-c+")
        results["shares"] = tuple(map(torch.tensor, regularizer_shares(method, make_views(method)).values()))
    torch.save(results, f"{directory}/{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[Tensor, ...]]]:
    directory: Path = tmp_path_factory.mktemp("gloo")
    mp.spawn(work, (str(directory),), nprocs=WORLD)
    return [torch.load(directory / f"{rank}.pt", weights_only=True) for rank in range(WORLD)]


@pytest.mark.parametrize("name", LOSSES)
def test_two_processes_equal_one(results: list[dict[str, tuple[Tensor, ...]]], name: str) -> None:
    expected, *expected_gradients = loss_and_gradients(LOSSES[name], *inputs())
    values, *gradients = zip(*(result[name] for result in results), strict=True)
    # The automatic weight lives in a float32 buffer.
    tolerance = 1e-6 if name.endswith("by_ratio") else 1e-12
    torch.testing.assert_close(torch.stack(values).mean(), expected, rtol=tolerance, atol=0)
    for pieces, whole in zip(gradients, expected_gradients, strict=True):
        # DDP divides the sum over processes by their number.
        torch.testing.assert_close(torch.cat(pieces) / WORLD, whole, rtol=tolerance, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gather_brings_rows_by_rank_and_sums_gradients(
    results: list[dict[str, tuple[Tensor, ...]]], dtype: torch.dtype
) -> None:
    for rank, result in enumerate(results):
        gathered, gradient, offset = result[str(dtype)]
        assert torch.equal(gathered, torch.tensor([1.0, 1, 2, 2]).to(dtype)[:, None].expand(4, 3))
        assert torch.equal(gradient, torch.full((2, 3), 3.0, dtype=dtype))
        assert offset == 2 * rank


def test_a_sample_on_each_process_is_enough(results: list[dict[str, tuple[Tensor, ...]]]) -> None:
    two = [x.detach()[:: B // WORLD] for x in inputs()]
    for place, name in enumerate(ONE_EACH):
        values = torch.stack([result["one each"][place] for result in results])
        torch.testing.assert_close(values.mean(), LOSSES[name](*two), rtol=1e-12, atol=0)


def test_the_bound_of_the_norm_counts_the_samples_of_all_processes(
    results: list[dict[str, tuple[Tensor, ...]]],
) -> None:
    # sqrt(n min(n, D)) of n = 2 x 3 samples and D = 8 units: of MMCR, and of the regularizer.
    for result in results:
        for bound in result["bound"]:
            torch.testing.assert_close(bound, torch.tensor(6.0))


def test_the_share_of_a_regularizer_is_not_measured_by_one_process_of_two(
    results: list[dict[str, tuple[Tensor, ...]]],
) -> None:
    assert results[0]["shares"] == ()


def test_rows_need_not_be_contiguous_and_stay_as_they_are(results: list[dict[str, tuple[Tensor, ...]]]) -> None:
    x = torch.arange(6.0).view(2, 3)
    for rank, result in enumerate(results):
        gathered, mean, own = result["transposed"]
        assert torch.equal(gathered, torch.cat([x.mT, x.mT + 100]))
        assert torch.equal(mean, x + 50)
        assert torch.equal(own, x + 100 * rank)
        *gradients, wanted = result["gradients"]
        assert torch.equal(wanted, torch.arange(12.0).view(4, 3))  # not summed in place
        assert all(torch.equal(gradient, 2 * wanted[2 * rank : 2 * rank + 2]) for gradient in gradients)


def test_one_process_gathers_nothing() -> None:
    x = torch.zeros(3, 2)
    assert gather_rows(x) is x
    assert row_offset(3) == 0
