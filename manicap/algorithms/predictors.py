"""The two score functions of DeepInfoMax on Atari: global-local and local-local (arXiv 2405.13848, Eqs 7 and 8)."""

from torch import Tensor, nn

from manicap.losses.infonce import global_local_infonce, local_local_infonce
from manicap.losses.jsd import global_local_jsd, local_local_jsd


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
