"""After the last step: what is fitted once, to samples of the training split."""

import numpy as np
import torch

from manicap.algorithms.base import Method
from manicap.core.progress import Tracker
from manicap.train.setup import Setup

NUM_PAIRS = 16_384
"""Pairs of consecutive frames that the filter is fitted to, or as many as there are."""
STRETCH = 64
"""Pairs in succession: each of their frames is encoded once. Stretches are evenly spaced over the training split."""


@torch.no_grad()
def fit_coherence_filter(method: Method, setup: Setup) -> None:
    """Fit the filter of a method to its own outputs. The same for any number of processes: one of them does it."""
    assert method.coherence_filter is not None
    samples = setup.data.splits(2)["train"]
    stretch = min(STRETCH, samples.per_epoch)
    num_stretches = min(NUM_PAIRS // stretch, samples.per_epoch // stretch)
    starts = np.linspace(0, samples.per_epoch - stretch, num_stretches).astype(np.int64)
    was_training, found = method.training, list[tuple[torch.Tensor, torch.Tensor]]()
    method.eval()
    with Tracker("fitting the coherence filter", num_stretches * stretch, "pairs", setup.execution.quiet) as tracker:
        for index, start in enumerate(starts):
            rows, places = np.unique(samples.rows(np.arange(start, start + stretch)), return_inverse=True)
            frames = setup.data.batch(rows[:, None], "coherence filter", index).frames_BTCHW[:, 0]
            outputs = method.output(method.encoder(frames)).float()
            now, after = torch.from_numpy(places).to(outputs.device).unbind(1)
            found.append((outputs[now], outputs[after]))
            tracker.advance(stretch)
        method.coherence_filter.fit(*(torch.cat(side) for side in zip(*found, strict=True)))
    method.train(was_training)
