"""Where in a network is it? Every layer read by the default probe, from the same few labels."""

from collections.abc import Callable, Mapping, Sequence
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
KEPT_BYTES = 600e6
"""Of the outputs of layers that are read from one pass. The first convolution of an Atari frame alone has 460 MB."""

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
    found = {}
    for names in _passes(_widths(layers, train.frames), len(train.frames) + len(test.frames)):
        outputs = [_outputs(layers, names, part.frames) for part in (train, test)]
        for name in names:
            train_data, test_data = (
                ProbeData(output.pop(name), part.labels, part.episodes, kinds, part.values)
                for output, part in zip(outputs, (train, test), strict=True)
            )
            probe = RidgeProbes(seed, curves=False).fit(train_data)
            variables = [str(v) for v in range(train.labels.shape[1])]
            curves = probe.read(test_data, variables).curves
            score = float(np.mean([curves[variable][0][0] for variable in variables]))
            found[name] = (train_data.features.shape[1], score)
    return found


def _widths(layers: Layers, frames: NDArray[np.uint8]) -> dict[str, int]:
    with torch.inference_mode():
        return {name: output.numel() for name, output in layers(torch.from_numpy(frames[:1])).items()}


def _passes(widths: Mapping[str, int], num_frames: int) -> list[list[str]]:
    """Layers that are kept together, in their order: as many as fit into memory, at least one."""
    passes: list[list[str]] = [[]]
    size = 0
    for name, width in widths.items():
        size += 4 * width * num_frames
        if passes[-1] and size > KEPT_BYTES:
            passes.append([])
            size = 4 * width * num_frames
        passes[-1].append(name)
    return passes


def _outputs(layers: Layers, names: Sequence[str], frames: NDArray[np.uint8]) -> dict[str, NDArray[np.float32]]:
    """Of some layers, from one pass through the network."""
    pieces: dict[str, list[NDArray[np.float32]]] = {name: [] for name in names}
    with torch.inference_mode():
        for start in range(0, len(frames), FRAMES_AT_ONCE):
            found = layers(torch.from_numpy(frames[start : start + FRAMES_AT_ONCE]))
            for name in names:
                pieces[name].append(found[name].flatten(1).float().numpy())
    return {name: np.concatenate(pieces.pop(name)) for name in names}
