"""Rows gathered over the processes of a distributed run, with gradients.

All losses here follow one convention: each process computes the mean over its own anchors against the targets of all
processes. Averaged over the processes, as DistributedDataParallel averages gradients, this equals the single-process
loss and its gradient. Every process must contribute the same number of rows.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def world_size(group: dist.ProcessGroup | None = None) -> int:
    """Number of processes; 1 when torch.distributed is unavailable or not initialised."""
    return dist.get_world_size(group) if dist.is_available() and dist.is_initialized() else 1


def gather_rows(x: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """The rows of all processes, by rank: `[B, ...] -> [world * B, ...]`. With one process, the tensor itself.

    The gradient of a process's rows is the sum of their gradients on all processes.
    """
    if world_size(group) == 1:
        return x
    gathered: Tensor = _GatherRows.apply(x, group)
    return gathered


def row_offset(num_rows: int, group: dist.ProcessGroup | None = None) -> int:
    """Index of this process's first row among the gathered rows."""
    return num_rows * dist.get_rank(group) if world_size(group) > 1 else 0


def mean_over_processes(x: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """The mean of `x` over processes, without gradient."""
    x = x.detach()
    if world_size(group) == 1:
        return x
    total = x.clone()
    dist.all_reduce(total, group=group)
    return total / world_size(group)


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
        ctx.group, ctx.num_rows = group, x.shape[0]
        gathered = x.new_empty((world_size(group) * x.shape[0], *x.shape[1:]))
        # The outputs are views into one buffer, so nothing is concatenated afterwards.
        dist.all_gather(list(gathered.chunk(world_size(group))), x.contiguous(), group=group)
        return gathered

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (grad,) = grads
        # Half precision is summed in float32: gloo cannot add bfloat16, and a sum over many processes should not round.
        total = grad.to(torch.float32 if grad.element_size() < 4 else grad.dtype, copy=True).contiguous()
        dist.all_reduce(total, group=ctx.group)
        start = row_offset(ctx.num_rows, ctx.group)
        return total[start : start + ctx.num_rows].to(grad.dtype), None
