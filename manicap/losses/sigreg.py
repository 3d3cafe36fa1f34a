"""SIGReg: outputs that are Gaussian along random directions (LeJEPA, arXiv 2511.08544; also arXiv 2603.19312)."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from manicap.core.config import checked
from manicap.core.ranges import Count, Fraction, NonNegative, Positive, Seed
from manicap.core.seeding import stream_seed
from manicap.losses.gather import gather_rows
from manicap.losses.pairs import in_float32, require_heads
from manicap.losses.regularizer import Regularizer

_NODES, _LAST_NODE = 17, 5.0
"""Of the quadrature, on [-5, 5], as in arXiv 2511.08544. Beyond 5 the weight is below 4e-6."""


def epps_pulley(x_BNK: Tensor) -> Tensor:
    """The Epps-Pulley statistic of normality (arXiv 2511.08544, section 4.2), mean over heads and directions.

        T = B integral |phi_B(t) - phi(t)|^2 exp(-t^2 / 2) dt
        phi_B(t) = mean over b of exp(i t x_b)        phi(t) = exp(-t^2 / 2)

    phi_B is the empirical characteristic function of the samples of all processes, phi that of N(0, 1). The integral is
    a trapezoidal sum over 17 nodes in [-5, 5]. Deviations: none.
    """
    require_heads("epps_pulley", x_BNK)
    with torch.autocast(x_BNK.device.type, enabled=False):
        x_BNK = gather_rows(in_float32(x_BNK))
        # The integrand is even: the nodes t >= 0, each but 0 counted twice, the last by half.
        step = _LAST_NODE / (_NODES // 2)
        t = torch.linspace(0, _LAST_NODE, _NODES // 2 + 1, dtype=x_BNK.dtype, device=x_BNK.device)
        weight = torch.full_like(t, 2 * step)
        weight[0] = weight[-1] = step
        phi = (-t.square() / 2).exp()
        angle = x_BNK[..., None] * t
        distance = (angle.cos().mean(0) - phi).square() + angle.sin().mean(0).square()
        return len(x_BNK) * (distance * (weight * phi)).sum(-1).mean()


class SIGRegularizer(Regularizer):
    """weight * the Epps-Pulley statistic of the heads along random directions (arXiv 2511.08544).

    0 if every head is standard normal in all directions. Each call in training mode draws new directions, which
    `seed` and the number of calls determine: they are equal on all processes, and a resumed run draws those of an
    uninterrupted one. In evaluation mode they do not change.

    Deviations: each head has its own statistic, and their mean counts.
    """

    term: ClassVar[str] = "sigreg"

    @checked
    def __init__(
        self,
        epsilon: NonNegative | None = None,
        *,
        target_ratio: Positive | None = None,
        smoothing: Fraction = 0.99,
        num_directions: Count = 256,
        seed: Seed = 0,
    ) -> None:
        super().__init__(epsilon, target_ratio=target_ratio, smoothing=smoothing)
        self.num_directions, self.seed = num_directions, seed
        self.calls = 0
        """In training mode. Kept out of the buffers: reading one would synchronise a GPU at every step."""

    def directions(self, num_units: int) -> Tensor:
        """Unit vectors, `[D, K]`, of this call."""
        generator = torch.Generator().manual_seed(stream_seed(self.seed, "sigreg", self.calls))
        drawn_DK = torch.randn(num_units, self.num_directions, generator=generator)
        return drawn_DK / torch.linalg.vector_norm(drawn_DK, dim=0)

    def penalty(self, heads_BND: Tensor) -> Tensor:
        return epps_pulley(heads_BND @ self.directions(heads_BND.shape[2]).to(heads_BND))

    def forward(
        self,
        heads_BND: Tensor,
        base_loss: Tensor | None = None,
        other_BND: Tensor | Sequence[Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor | float]]:
        found = super().forward(heads_BND, base_loss, other_BND)
        self.calls += self.training
        return found

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.calls)

    def set_extra_state(self, state: Tensor) -> None:
        self.calls = int(state)
