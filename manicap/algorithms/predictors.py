"""The two score functions of DeepInfoMax on Atari: global-local and local-local (arXiv 2405.13848, Eqs 7 and 8)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from manicap.algorithms.base import FrameSettings, Method, MethodContext
from manicap.algorithms.regularization import RegularizedSettings
from manicap.core.ranges import NonNegative, Range
from manicap.losses.infonce import global_local_infonce, local_local_infonce
from manicap.losses.jsd import global_local_jsd, local_local_jsd
from manicap.losses.reconstruction import unexplained
from manicap.nn.coherence_filter import CoherenceFilter
from manicap.nn.pixels import LinearPixels


@dataclass(frozen=True)
class PairSettings(FrameSettings, RegularizedSettings):
    """Settings of methods that predict one frame of a pair from the other.

    Predictions further ahead and back share the encodings of frames, which are what a step spends its time on.
    """

    directions: Literal["forward", "both"] = "forward"
    """Predict the next frame from this one, or also this one from the next, by the same score functions."""
    horizon: Annotated[int, Range(1, 100)] = 1
    """Predict up to this many steps away; a sample has one frame more."""
    reconstruction: NonNegative = 0.0
    """Weight of a linear reconstruction of coarse frames from the convolutional features, so that what no prediction
    needs is not lost; 0 disables it."""
    coherence_filter: bool = False
    """End with a linear layer that amplifies what consecutive frames have in common, fitted after the last step."""

    @classmethod
    def beyond_the_paper(cls) -> dict[str, Any]:
        own = {"directions": "both", "horizon": 2, "reconstruction": 1.5, "coherence_filter": True}
        return super().beyond_the_paper() | own

    @property
    def predicting_frames(self) -> int:
        """How many frames of a sample, from the first, something is predicted from."""
        return self.horizon + (self.directions == "both")

    @property
    def needs_pixel_statistics(self) -> bool:
        return super().needs_pixel_statistics or self.reconstruction > 0

    def infonce_ceiling(self, batch_size: int) -> float:
        """What an InfoNCE term of `mean_over_pairs` bounds at most: the mean over gaps of log(number of candidates)."""
        gaps = range(1, self.horizon + 1)
        return sum(math.log((self.horizon + 1 - gap) * batch_size) for gap in gaps) / self.horizon


Terms = dict[str, Tensor]
Estimate = Callable[[Tensor, Tensor, Tensor], Terms]
"""The terms of what is predicted from, for example heads `[B, N, D]`, of the frame's own feature map `[B, P, C]` and of
the other frame's."""


def mean_over_pairs(settings: PairSettings, estimate: Estimate, outputs: Tensor, y_TBPC: Tensor) -> Terms:
    """The mean of each term over all pairs of frames within the horizon, in one direction of time or both.

    Rows are those of `encode_times`. All pairs that are equally far apart are one batch: a frame's negatives are the
    frames of the other samples, and the other frames of its own.
    """
    B = len(y_TBPC) // (settings.horizon + 1)
    found = []
    for gap in range(1, settings.horizon + 1):
        early, late = slice(len(y_TBPC) - gap * B), slice(gap * B, None)
        found.append(estimate(outputs[early], y_TBPC[early], y_TBPC[late]))
        if settings.directions == "both":
            found.append(estimate(outputs[late], y_TBPC[late], y_TBPC[early]))
    return _mean(found)


def _mean(found: Sequence[Terms]) -> Terms:
    if len(found) == 1:
        return found[0]
    return {name: torch.stack([terms[name] for terms in found]).mean() for name in found[0]}


class PairMethod(Method):
    """Base of the methods on pairs of frames."""

    def __init__(self, settings: PairSettings, context: MethodContext, num_outputs: int | None = None) -> None:
        """`num_outputs` is the width of `output`; of the convolutional features if omitted."""
        super().__init__(settings, context)
        if settings.coherence_filter:
            self.coherence_filter = CoherenceFilter(num_outputs or self.encoder.num_features)
        self.frames_per_sample, self.reconstruction_weight = settings.horizon + 1, settings.reconstruction
        self.pixels = None
        if settings.reconstruction:
            self.pixels = LinearPixels(self.encoder.num_features, context.input_shape)
            if context.pixel_statistics is not None:
                self.pixels.set_statistics(*context.pixel_statistics)

    def reconstruction(self, frames_BTCHW: Tensor, features: Tensor) -> Terms:
        """The term, from the features of the first frames of all samples first, as `encode_times` returns them."""
        if self.pixels is None:
            return {}
        frames = frames_BTCHW.transpose(0, 1).flatten(0, 1)[: len(features)]
        left = unexplained(self.pixels(features), self.pixels.picture(frames))
        return {"reconstruction": self.reconstruction_weight * left}


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
