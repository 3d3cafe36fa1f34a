"""The losses together equal the algorithms as printed, in value and in every gradient."""

import torch
from torch import Tensor, nn

from manicap.losses.atlas import unbalance
from manicap.losses.capacity import CapacityRegularizer
from manicap.losses.infonce import global_local_infonce, local_local_infonce
from tests.literal import literal_dim_c, literal_dim_uac

B, N, D, H, W, C = 5, 3, 11, 2, 4, 6


def inputs(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, nn.Linear, nn.Linear]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(B, N, D), (B, H, W, C), (B, H, W, C), (B, N), (B, N)]
    o_t, y_t, y_next, q_t, q_next = (torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes)
    leaves = [o_t, y_t, y_next, q_t.softmax(1), q_next.softmax(1)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        c1, c2 = nn.Linear(D, C).double(), nn.Linear(C, C).double()
    return (*(x.requires_grad_() for x in leaves), c1, c2)  # type: ignore[return-value]


def gradients(loss: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    return [g for g in torch.autograd.grad(loss, leaves, allow_unused=True) if g is not None]


def test_dim_c_equals_algorithm_2() -> None:
    o_t, y_t, y_next, _, _, c1, c2 = inputs(0)
    leaves = [o_t, y_t, y_next, *c1.parameters(), *c2.parameters()]
    capacity, _ = CapacityRegularizer(0.0005)(o_t)
    ours = (
        capacity
        + global_local_infonce(c1(o_t), y_next.flatten(1, 2))
        + local_local_infonce(c2(y_t).flatten(1, 2), y_next.flatten(1, 2))
    )
    literal = literal_dim_c(o_t, y_t, y_next, c1, c2)
    torch.testing.assert_close(ours, literal, rtol=1e-13, atol=0)
    for mine, theirs in zip(gradients(ours, leaves), gradients(literal, leaves), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-15)


def test_dim_uac_equals_algorithm_1() -> None:
    o_t, y_t, y_next, q_t, q_next, c1, c2 = inputs(1)
    leaves = [o_t, y_t, y_next, q_t, q_next, *c1.parameters(), *c2.parameters()]
    capacity, _ = CapacityRegularizer(0.0005)(o_t)
    ours = (
        capacity
        + 0.1 * (unbalance(q_t) + unbalance(q_next)) / 2
        + global_local_infonce(c1(o_t.mean(1))[:, None], y_next.flatten(1, 2))
        + local_local_infonce(c2(y_t).flatten(1, 2), y_next.flatten(1, 2))
    )
    literal = literal_dim_uac(o_t, y_t, y_next, q_t, q_next, c1, c2)
    torch.testing.assert_close(ours, literal, rtol=1e-13, atol=0)
    for mine, theirs in zip(gradients(ours, leaves), gradients(literal, leaves), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-15)
