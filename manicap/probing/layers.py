"""Where in a network is it? Every layer read by the default probe, from the same few labels."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.domains.evaluation import TargetKind
from manicap.probing.metrics import Labels
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData

LABELS, TEST_FRAMES = 800, 1000
"""Few, since the first convolution of a network has 60,000 features."""
FRAMES_AT_ONCE = 100

Layers = Callable[[torch.Tensor], dict[str, torch.Tensor]]
"""Frames [B, C, H, W] to the output of each layer [B, ...], by name, the first layer first."""


class Frames(NamedTuple):
    """Frames uint8 [n, C, H, W] with their labels [n, V]."""

    frames: NDArray[np.uint8]
    labels: Labels
    episodes: NDArray[np.int64]
    values: NDArray[np.float64] | None = None
    """As in `ProbeData`."""


def read_layers(
    layers: Layers, train: Frames, test: Frames, kinds: tuple[TargetKind, ...], seed: int
) -> dict[str, tuple[int, float]]:
    """By layer its width and its score, the mean over the variables of R2 (places, numbers) and F1 (names)."""
    names = _names(layers, train.frames)
    found = {}
    for name in names:
        train_data, test_data = (
            ProbeData(_outputs(layers, name, part.frames), part.labels, part.episodes, kinds, part.values)
            for part in (train, test)
        )
        probe = RidgeProbes(seed, curves=False).fit(train_data)
        variables = [str(v) for v in range(train.labels.shape[1])]
        curves = probe.read(test_data, variables).curves
        score = float(np.mean([curves[variable][0][0] for variable in variables]))
        found[name] = (train_data.features.shape[1], score)
    return found


def _names(layers: Layers, frames: NDArray[np.uint8]) -> list[str]:
    with torch.inference_mode():
        return list(layers(torch.from_numpy(frames[:1])))


def _outputs(layers: Layers, name: str, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
    """One layer at a time: all of them together would not fit in memory."""
    pieces = []
    with torch.inference_mode():
        for start in range(0, len(frames), FRAMES_AT_ONCE):
            piece = torch.from_numpy(frames[start : start + FRAMES_AT_ONCE])
            pieces.append(layers(piece)[name].flatten(1).float().numpy())
    return np.concatenate(pieces)
