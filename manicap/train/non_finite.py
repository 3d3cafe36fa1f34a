"""Count non-finite losses on the device: synchronising a GPU after every step would slow it down."""

import torch
from torch import Tensor


class NonFiniteCount:
    """How many losses or gradients were not finite, and the step of the first; on the device until it is read."""

    def __init__(self, device: torch.device) -> None:
        self._count = torch.zeros((), dtype=torch.int64, device=device)
        self._first = torch.full((), -1, dtype=torch.int64, device=device)

    def add(self, value: Tensor, step: int) -> None:
        """Count the value of this step without waiting for it."""
        bad = ~torch.isfinite(value.detach()).all()
        self._first = torch.where(bad & (self._first < 0), step, self._first)
        self._count = self._count + bad

    def read(self) -> tuple[int, int]:
        """Return the count, and the first step or -1. Waits for the device."""
        count, first = torch.stack([self._count, self._first]).tolist()
        return count, first
