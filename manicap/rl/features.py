"""The features of an encoder as an agent sees them: projected to a width and standardised, as one module.

features = feature_map(run, layer="backbone", width=256, standardise=store)
features(frames)                  # uint8 [B, 1, 210, 160] -> float32 [B, 256]
"""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from manicap.core.config import checked
from manicap.core.errors import UserError
from manicap.core.ranges import Seed, Width
from manicap.play.store import PlayStore
from manicap.play.views import CONSOLE, View
from manicap.pretrained.encoder import PretrainedEncoder
from manicap.pretrained.loading import load
from manicap.probing.features import projection
from manicap.probing.standardisation import Standardisation

STATISTICS_FRAMES = 1024
"""Frames of a store, evenly spaced, that determine the mean and the deviation of features."""
BATCH_FRAMES = 64
LARGEST = 10.0
"""Standardised features are clipped to this, as in SB3's `VecNormalize`: agents see what random play never showed."""

EncoderSource = str | Path | nn.Module
Shape = tuple[int, int, int]


class FeatureMap(nn.Module):
    """Frames uint8 [B, C, H, W] to features [B, `num_features`]; `feature_map` makes one."""

    matrix: Tensor | None
    mean: Tensor | None
    scale: Tensor | None

    def __init__(
        self,
        encoder: nn.Module,
        input_shape: Shape,
        width: int | None = None,
        seed: int = 0,
        view: View | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.input_shape = encoder, input_shape
        self._view = view
        for name in ("matrix", "mean", "scale"):
            self.register_buffer(name, None)
        self.num_features = int(self._on_black().shape[1])
        if width is not None:
            self.matrix = torch.from_numpy(projection(self.num_features, width, seed)).to(self.device)
            self.num_features = width

    @property
    def view(self) -> View:
        """How a game's frames are shown to the encoder; needed only where there is a game or a store."""
        return self._view or view_of(self.input_shape)

    @property
    def device(self) -> torch.device:
        return next(iter(self.encoder.state_dict().values()), torch.zeros(0)).device

    def forward(self, frames_BCHW: Tensor) -> Tensor:
        features: Tensor = self.encoder(frames_BCHW)
        if self.matrix is not None:
            features = features @ self.matrix
        if self.mean is not None and self.scale is not None:
            features = ((features - self.mean) * self.scale).clamp(-LARGEST, LARGEST)
        return features

    def encode(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features float32 [B, F] of frames uint8 [B, C, H, W], without a gradient."""
        with torch.inference_mode():
            found = self(torch.from_numpy(np.ascontiguousarray(frames)).to(self.device))
        return np.asarray(found.float().cpu().numpy())

    def standardise(self, store: PlayStore) -> None:
        """Subtract the mean of each feature over a store and divide by its deviation; constant ones become 0.

        Replaces the statistics of an earlier call.
        """
        self.mean = self.scale = None
        rows = np.unique(np.linspace(0, len(store) - 1, STATISTICS_FRAMES).astype(np.int64))
        found = Standardisation.of(
            np.concatenate([self.encode(part) for part in self.view.chunks(store, rows, BATCH_FRAMES)])
        )
        mean, scale = np.zeros((2, self.num_features), np.float32)
        mean[found.kept], scale[found.kept] = found.mean, found.scale
        self.mean, self.scale = (torch.from_numpy(each).to(self.device) for each in (mean, scale))

    def _on_black(self) -> Tensor:
        black = torch.zeros(1, *self.input_shape, dtype=torch.uint8, device=self.device)
        try:
            with torch.no_grad():
                found = self.encoder(black)
        except Exception as error:  # any error: the encoder may be the user's own
            expected = ", ".join(map(str, self.input_shape))
            raise UserError(f"the encoder failed on frames uint8 [1, {expected}]: {error}") from error
        if not isinstance(found, Tensor) or found.ndim != 2:
            raise UserError(f"an encoder must return features [B, F], got {_described(found)}")
        return found


@checked
def feature_map(
    encoder: EncoderSource,
    *,
    layer: str | None = None,
    width: Width | None = None,
    seed: Seed = 0,
    standardise: PlayStore | None = None,
    input_shape: Shape | None = None,
) -> FeatureMap:
    """Make a `FeatureMap` of an encoder.

        features = manicap.rl.feature_map(run, layer="backbone", width=256, standardise=store)

    Args:
        encoder: What `manicap.load` takes or returns, or any other `nn.Module` from uint8 frames [B, C, H, W] to
            features [B, F]. A `FeatureMap` is returned as it is.
        layer: `output` is what the method's paper probes; `backbone` the features of the network itself; `local` the
            feature map before them. By default `output`, or the layer of an encoder that is already loaded.
        width: Project features to this many dimensions by a seeded random orthogonal map, the one that probing uses.
        seed: Random seed of the projection.
        standardise: A store of play, whose features determine the mean and deviation used to standardise.
        input_shape: Channels, height and width of the frames; known for encoders of manicap.
    """
    if isinstance(encoder, FeatureMap):
        if layer is not None or width is not None or standardise is not None:
            raise UserError("a FeatureMap already has its layer, width and statistics")
        return encoder
    module, view = _load(encoder, layer), None
    if isinstance(module, PretrainedEncoder):
        input_shape, view = module.input_shape, module.card.view
    elif input_shape is None:
        raise UserError("an encoder of your own needs the shape of its frames: input_shape=(1, 210, 160)")
    found = FeatureMap(module, input_shape, width, seed, view)
    if standardise is not None:
        found.standardise(standardise)
    return found.eval()


def _load(encoder: EncoderSource, layer: str | None) -> nn.Module:
    """The encoder that returns a layer, with its own copy of the weights."""
    if isinstance(encoder, str | Path):
        return load(encoder, layer)
    if not isinstance(encoder, nn.Module):
        raise UserError(f"an encoder is the directory of a run or an nn.Module, got {type(encoder).__name__}")
    copied = copy.deepcopy(encoder)
    if isinstance(copied, PretrainedEncoder):
        if layer in (None, copied.layer):
            return copied
        assert layer is not None
        return PretrainedEncoder(copied.method, layer, f"{copied.fingerprint} {layer}", copied.card, copied.network)
    if layer is not None:
        raise UserError(
            f"layer {layer!r} is known for encoders of manicap only: an nn.Module has no names for its layers"
        )
    return copied.eval().requires_grad_(False)


def view_of(input_shape: Shape) -> View:
    """The most likely view for frames of this shape; three channels may be colours or a stack of gray frames."""
    channels, height, width = input_shape
    colour = channels % 3 == 0
    size = None if (height, width) == CONSOLE else (height, width)
    return View(colour, channels // 3 if colour else channels, size)


def _described(value: Any) -> str:
    return f"shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
