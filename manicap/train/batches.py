"""Batches: which samples, in which order, with no state between steps.

The order of epoch e is drawn from the stream (seed, split, e), so the k-th batch of an epoch is known without drawing
the ones before it: a resumed run continues where it stopped.
"""

from collections.abc import Callable, Iterator

from manicap.core.errors import UserError
from manicap.core.seeding import numpy_generator
from manicap.domains.samples import Rows, SampleOrder


class Batches:
    """All full batches of an epoch, or this process's share of them."""

    def __init__(
        self,
        samples: SampleOrder,
        batch_size: int,
        seed: int,
        split: str,
        rank: int = 0,
        world: int = 1,
        prepare: Callable[[Rows], None] | None = None,
    ) -> None:
        self.samples, self.batch_size, self.seed, self.split, self.prepare = samples, batch_size, seed, split, prepare
        self.num_batches = samples.per_epoch // batch_size
        if batch_size % world:
            raise UserError(f"a batch of {batch_size} cannot be divided among {world} processes")
        if not self.num_batches:
            raise UserError(
                f"the {split} split has {samples.size}, fewer than one batch of {batch_size};"
                f" {samples.remedy} or use a smaller batch"
            )
        share = batch_size // world
        self.mine = slice(rank * share, (rank + 1) * share)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Rows]:
        """Rows, `[B, T]` or `[B]`, of the batches `start`, `start + 1`, ... of an epoch; each announced one before."""
        order = self.samples.order(numpy_generator(self.seed, "batches", self.split, epoch))
        current: Rows | None = None
        for index in range(start, self.num_batches):
            batch = order[index * self.batch_size : (index + 1) * self.batch_size]
            upcoming = self.samples.rows(batch[self.mine])
            if self.prepare is not None:
                self.prepare(upcoming)
            if current is not None:
                yield current
            current = upcoming
        if current is not None:
            yield current
