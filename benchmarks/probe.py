"""Speed and memory of probing, as ratios within one run.

    python benchmarks/probe.py [--steps 50000] [--slow-steps 8000]

The slow form is the 2019 code's: one classifier a label, every batch encoded again. One label of it is trained for one
epoch and timed; its whole cost is that times labels times epochs, said so in the output. Its scores come from cached
features, which are those that it would encode again.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from torch import nn

from manicap.atari.annotations import categories
from manicap.atari.collect import collect
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store
from manicap.atari.protocol import FIXED
from manicap.atari.splits import probe_splits, read_labels
from manicap.atari.store import Store, StoreConfig
from manicap.probing.encoders import FrameEncoder
from manicap.probing.features import extract_features
from manicap.probing.linear import LinearConfig, LinearProbes
from manicap.probing.metrics import score_labels
from manicap.probing.play_bench import Extraction, PlayBench
from manicap.probing.sampling import ProbeData, training_batches


@dataclass(frozen=True)
class Options:
    game: str = "pong"
    steps: int = 50_000
    """Steps of the store that is probed end to end."""
    slow_steps: int = 8_000
    """Steps of the store for the ratio to the slow form."""
    epochs: int = 100
    """Epochs of both forms in the ratio: no early stopping in either."""
    widths: tuple[int, ...] = (256, 3456)
    plain_start: Literal["zero", "uniform"] = "zero"
    """Where the plain classifiers start that the scores are compared with: as ours, or as nn.Linear does. On a small
    store the second moves scores as another seed does."""
    threads: int | None = None
    """torch threads; all cores if absent."""


class Floats(nn.Module):
    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return frames.float() / 255


def make_encoder(width: int) -> nn.Module:
    """NatureCNN with AtariARI's sizes and orthogonal weights: 3456 features, or fewer behind a linear layer."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [Floats()]
    for channels, kernel, stride in [((1, 32), 8, 4), ((32, 64), 4, 2), ((64, 128), 4, 2), ((128, 64), 3, 1)]:
        convolution = nn.Conv2d(*channels, kernel, stride)
        nn.init.orthogonal_(convolution.weight, 2**0.5)
        assert convolution.bias is not None
        nn.init.zeros_(convolution.bias)
        layers += [convolution, nn.ReLU()]
    layers.append(nn.Flatten())
    if width != 3456:
        layers.append(nn.Linear(3456, width))
    return nn.Sequential(*layers).eval()


def slow_epoch_seconds(encoder: nn.Module, store: Store, train: ProbeData, val: ProbeData, rows: np.ndarray) -> float:
    """Seconds of one epoch of one label's classifier that encodes every batch, validation included."""
    model = nn.Linear(train.features.shape[1], 256)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, eps=1e-5)
    targets = torch.from_numpy(train.labels[:, 0].astype(np.int64))
    start = time.perf_counter()
    for batch in training_batches(train, FIXED, 64, seed=0, epoch=0):
        with torch.no_grad():
            features = encoder(torch.from_numpy(store.frames[rows[batch]])[:, None])
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(features), targets[batch]).backward()
        optimizer.step()
    for begin in range(len(train), len(train) + len(val), 64):
        with torch.no_grad():
            chosen = rows[begin : min(begin + 64, len(train) + len(val))]
            model(encoder(torch.from_numpy(store.frames[chosen])[:, None])).argmax(1)
    return time.perf_counter() - start


def plain_classifier(train: ProbeData, val: ProbeData, test: ProbeData, variable: int, options: Options) -> np.ndarray:
    """Decoded test labels of one nn.Linear trained the plain way, with the best validation weights."""
    torch.manual_seed(variable)
    model = nn.Linear(train.features.shape[1], 256)
    if options.plain_start == "zero":
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, eps=1e-5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.2, patience=5, min_lr=1e-5)
    x, x_val = torch.from_numpy(train.features), torch.from_numpy(val.features)
    y = torch.from_numpy(train.labels[:, variable].astype(np.int64))
    best, decoded = -1.0, np.zeros(len(test), np.uint8)
    for epoch in range(options.epochs):
        for batch in training_batches(train, FIXED, 64, 0, epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            share = float((model(x_val).argmax(1).numpy() == val.labels[:, variable]).mean())
            if share > best:
                best = share
                decoded = model(torch.from_numpy(test.features)).argmax(1).numpy().astype(np.uint8)
        scheduler.step(share)
    return decoded


def measure_ratio(options: Options, width: int, data_dir: str) -> None:
    store = collect(StoreConfig(options.game, options.slow_steps, purpose="probe"), data_dir)
    splits = probe_splits(store, FIXED, "corrected", seed=0)
    variables = splits.variables[:6]
    encoder = make_encoder(width)
    parts = (splits.train, splits.val, splits.test)
    rows = np.concatenate([part.rows for part in parts])

    start = time.perf_counter()
    features = extract_features(encoder, store, rows, quiet=True)
    pieces = np.split(features, np.cumsum([len(part) for part in parts])[:-1])
    data = []
    for part, piece in zip(parts, pieces, strict=True):
        found = read_labels(store, part.rows, "corrected", FIXED, variables)
        data.append(ProbeData(piece, np.stack([found[name] for name in variables], 1), part.episodes))
    train, val, test = data
    config = LinearConfig(max_epochs=options.epochs, patience=options.epochs + 1)
    decoded = LinearProbes(config, FIXED, seed=0).fit(train, val).predict(test.features)
    fast = time.perf_counter() - start

    epoch = slow_epoch_seconds(encoder, store, train, val, rows)
    slow = epoch * len(variables) * options.epochs
    plain = np.stack([plain_classifier(train, val, test, v, options) for v in range(len(variables))], 1)
    groups = categories(find_game(options.game), "corrected")
    ours, theirs = (score_labels(test.labels, each, variables, groups).f1 for each in (decoded, plain))
    print(
        f"{width} features, {len(train)} training frames, {len(variables)} labels, {options.epochs} epochs:"
        f" {fast:.1f} s with the encoding; encoding every batch again {slow:.0f} s"
        f" (= {epoch:.2f} s measured for one epoch of one label x {len(variables)} labels x {options.epochs} epochs)"
    )
    print(f"ratio: {slow / fast:.0f}  (target: 50)")
    print(
        f"mean F1 {ours:.4f}, of plain classifiers (start: {options.plain_start}) {theirs:.4f}:"
        f" {abs(ours - theirs):.4f} apart  (target: 0.01)"
    )


def measure_whole(path: Path, width: int, threads: int) -> None:
    """Run in a process of its own, so that the peak memory is the evaluation's alone."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="manicap-benchmark-") as cache:
        bench, extraction = PlayBench(open_store(path)), Extraction(Path(cache), quiet=True)
        evaluation = bench.evaluate(FrameEncoder(make_encoder(width)), extraction=extraction)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{evaluation.steps}-step store at {evaluation.width} features, end to end: {seconds:.0f} s"
        f" (encoding {evaluation.seconds['features']:.0f} s, probing {evaluation.seconds['probe']:.0f} s), F1"
        f" {evaluation.f1:.3f}; peak memory {peak:.2f} GB  (target: 3 GB)"
    )


def main(options: Options) -> None:
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    threads = torch.get_num_threads()
    print(f"{options.game}, {threads} threads")
    with tempfile.TemporaryDirectory(prefix="manicap-benchmark-") as scratch:
        for width in options.widths:
            measure_ratio(options, width, scratch)
        store = collect(StoreConfig(options.game, options.steps, purpose="probe"), scratch)
        for width in options.widths:
            job = json.dumps([str(store.path), width, threads])
            subprocess.run([sys.executable, __file__, "whole", job], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["whole"]:
        store_path, probe_width, num_threads = json.loads(sys.argv[2])
        measure_whole(Path(store_path), probe_width, num_threads)
    else:
        main(tyro.cli(Options))
