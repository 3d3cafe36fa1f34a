"""Momentum targets: a slow copy of the network that the other view is compared with (arXiv 2006.07733, section 3.1)."""

import copy
import math

import torch
from torch import Tensor, nn

from manicap.nn.encoders import Encoder
from manicap.nn.heads import Heads


class MomentumTarget(nn.Module):
    """A copy of encoder and heads that gets no gradient and follows them after each step.

    The copy has its own batch statistics. It is part of the method's state, so a resumed run restores it.
    """

    def __init__(self, encoder: Encoder, heads: Heads) -> None:
        super().__init__()
        self.encoder, self.heads = copy.deepcopy(encoder), copy.deepcopy(heads)
        self.requires_grad_(False)

    @torch.no_grad()
    def forward(self, view_BCHW: Tensor) -> Tensor:
        heads_BND: Tensor = self.heads(self.encoder(view_BCHW).features_BF)
        return heads_BND

    @torch.no_grad()
    def follow(self, encoder: Encoder, heads: Heads, momentum: float) -> None:
        """target <- momentum * target + (1 - momentum) * network."""
        for slow, fast in ((self.encoder, encoder), (self.heads, heads)):
            for target, parameter in zip(slow.parameters(), fast.parameters(), strict=True):
                target.lerp_(parameter, 1 - momentum)


def cosine_momentum(base: float, progress: float) -> float:
    """From `base` at the start of a run to 1 at its end: 1 - (1 - base) (cos(pi progress) + 1) / 2."""
    return 1 - (1 - base) * (math.cos(math.pi * progress) + 1) / 2
