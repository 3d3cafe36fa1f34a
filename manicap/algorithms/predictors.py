"""The two score functions of DeepInfoMax on Atari: global-local and local-local (arXiv 2405.13848, Eqs 7 and 8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from manicap.algorithms.base import FrameSettings
from manicap.losses.infonce import global_local_infonce, local_local_infonce
from manicap.losses.jsd import global_local_jsd, local_local_jsd


@dataclass(frozen=True)
class PairSettings(FrameSettings):
    """Settings of methods that predict one frame of a pair from the other."""

    directions: Literal["forward", "both"] = "forward"
    """Predict the next frame from this one, or also this one from the next, by the same score functions: twice the
    predictions from one encoding of both frames."""


def mean_parts(forward: Mapping[str, Tensor], backward: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The mean of each term over the two directions of time."""
    return {name: (forward[name] + backward[name]) / 2 for name in forward}


class SpatialPredictors(nn.Module):
    """c1 and c2 of Algorithms 1 and 2: linear maps, with bias, into the space of the local feature map.

    global   c1(o_t)        . y_{t+1}[h, w]      for every head
    local    c2(y_t[h, w])  . y_{t+1}[h, w]
    """

    def __init__(self, num_units: int, local_channels: int) -> None:
        super().__init__()
        self.from_global = nn.Linear(num_units, local_channels)
        self.from_local = nn.Linear(local_channels, local_channels)

    def infonce(self, heads_BND: Tensor, y_BPC: Tensor, y_next_BPC: Tensor) -> dict[str, Tensor]:
        return {
            "global": global_local_infonce(self.from_global(heads_BND), y_next_BPC),
            "local": local_local_infonce(self.from_local(y_BPC), y_next_BPC),
        }

    def jsd(self, heads_BND: Tensor, y_BPC: Tensor, y_next_BPC: Tensor) -> dict[str, Tensor]:
        return {
            "global": global_local_jsd(self.from_global(heads_BND), y_next_BPC),
            "local": local_local_jsd(self.from_local(y_BPC), y_next_BPC),
        }
