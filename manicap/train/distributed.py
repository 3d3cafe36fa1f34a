"""Several processes on one run, started by torchrun, one per device."""

import datetime
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Processes:
    """This process's place among those of the run."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether any process says yes; all get the same answer."""
        if self.world == 1:
            return flag
        answer = torch.tensor(float(flag), device=device)
        dist.all_reduce(answer, dist.ReduceOp.MAX)
        return bool(answer)

    def from_first(self, value: float, device: torch.device) -> float:
        """The first process's value, on all processes."""
        if self.world == 1:
            return value
        answer = torch.tensor(value, device=device)
        dist.broadcast(answer, 0)
        return float(answer)

    def barrier(self) -> None:
        if self.world > 1:
            dist.barrier()


def is_first_process() -> bool:
    """Whether this is the only process, or the one under torchrun that writes and prints; known before they join."""
    return os.environ.get("RANK", "0") == "0"


_groups = itertools.count()


@cache
def _meeting_place() -> Any:
    """The store that the environment names, this process's rank and the world size; shared by all its groups."""
    return next(iter(dist.rendezvous("env://", timeout=datetime.timedelta(hours=2))))


@contextmanager
def join_processes(use_cuda: bool) -> Iterator[Processes]:
    """Join the group that torchrun describes in the environment; a single process is a group of its own."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Processes()
        return
    store, rank, _ = _meeting_place()
    # A job with several seeds joins several times, and not all processes at once. With a prefix of its own, a group
    # never finds the addresses left by the previous one.
    mine = dist.PrefixStore(f"group {next(_groups)}", store)
    # Rank 0 may collect a store while the others wait for it.
    dist.init_process_group(
        "nccl" if use_cuda else "gloo", store=mine, rank=rank, world_size=world, timeout=datetime.timedelta(hours=2)
    )
    try:
        yield Processes(dist.get_rank(), world, int(os.environ.get("LOCAL_RANK", "0")))
    finally:
        dist.destroy_process_group()
