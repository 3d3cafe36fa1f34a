"""Speed and memory of probing, as ratios within one run.

    python benchmarks/probe.py [--steps 50000] [--slow-steps 8000]
    python benchmarks/probe.py --parts default scikit-learn

Three parts. `default`: a whole evaluation by the default probe, all curves, an encoder and its untrained network.
`scikit-learn`: its fits beside `RidgeCV` and `LogisticRegression`, to the same tolerance, with the scores of both.
`linear`: the 2019 probe beside the 2019 code's form.

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
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from torch import nn

from manicap.atari.annotations import categories
from manicap.atari.collect import collect
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store
from manicap.atari.store import Store, StoreConfig
from manicap.play.protocol import FIXED
from manicap.play.splits import probe_splits, read_labels
from manicap.probing.encoders import FrameEncoder
from manicap.probing.features import extract_features
from manicap.probing.linear import LinearConfig, LinearProbes
from manicap.probing.metrics import explained_variance, score_labels, weighted_f1
from manicap.probing.names import L2, TOLERANCE, fit_names
from manicap.probing.play_bench import Extraction, PlayBench
from manicap.probing.ridge import RATIOS, GrowingRidge
from manicap.probing.sampling import ProbeData, training_batches
from manicap.probing.standardisation import Standardisation
from manicap.probing.subsets import FOLDS, assign_folds


@dataclass(frozen=True)
class Options:
    parts: tuple[Literal["default", "scikit-learn", "linear"], ...] = ("default", "scikit-learn", "linear")
    game: str = "pong"
    steps: int = 50_000
    """Steps of the store that is probed end to end."""
    slow_steps: int = 8_000
    """Steps of the store for the ratio to the slow form."""
    epochs: int = 100
    """Epochs of both forms in the ratio: no early stopping in either."""
    widths: tuple[int, ...] = (256, 3456)
    """Of the 2019 probe."""
    default_widths: tuple[int, ...] = (3456, 11_264)
    """Of the default probe; 11,264 is the local feature map."""
    plain_start: Literal["zero", "uniform"] = "zero"
    """Where the plain classifiers start that the scores are compared with: as ours, or as nn.Linear does. On a small
    store the second moves scores as another seed does."""
    threads: int | None = None
    """torch threads; all cores if absent."""


LOCAL_WIDTH = 11_264


class Floats(nn.Module):
    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return frames.float() / 255


def make_encoder(width: int, seed: int = 0) -> nn.Module:
    """NatureCNN with AtariARI's sizes and orthogonal weights: 3456 features, fewer behind a linear layer, or 11,264
    after three convolutions."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = [Floats()]
    convolutions = [((1, 32), 8, 4), ((32, 64), 4, 2), ((64, 128), 4, 2), ((128, 64), 3, 1)]
    for channels, kernel, stride in convolutions[: 3 if width == LOCAL_WIDTH else 4]:
        convolution = nn.Conv2d(*channels, kernel, stride)
        nn.init.orthogonal_(convolution.weight, 2**0.5)
        assert convolution.bias is not None
        nn.init.zeros_(convolution.bias)
        layers += [convolution, nn.ReLU()]
    layers.append(nn.Flatten())
    if width not in (3456, LOCAL_WIDTH):
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


def measure_whole(path: Path, width: int, threads: int, probe: str) -> None:
    """Run in a process of its own, so that the peak memory is the evaluation's alone."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="manicap-benchmark-") as cache:
        bench, extraction = PlayBench(open_store(path)), Extraction(Path(cache), quiet=True)
        floors = {"untrained": FrameEncoder(make_encoder(width, seed=1))} if probe == "ridge" else {}
        evaluation = bench.evaluate(FrameEncoder(make_encoder(width)), probe, floors=floors, extraction=extraction)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    counts = evaluation.counts
    both = ", and as much for the untrained network" if floors else ""
    limit = {("ridge", 3456): "180 s, 3 GB", ("ridge", 11_264): "600 s"}.get((probe, width), "3 GB")
    print(
        f"{probe}, {counts['frames_train']:,} training frames x {evaluation.width} features,"
        f" {len(evaluation.variables)} variables, end to end: {seconds:.0f} s (encoding"
        f" {evaluation.seconds['features']:.0f} s, probing {evaluation.seconds['probe']:.0f} s{both}), F1"
        f" {evaluation.f1:.3f}; peak memory {peak:.2f} GB  (target: {limit})",
        flush=True,
    )


def measure_scikit_learn(options: Options, width: int, data_dir: str) -> None:
    """The same folds, grid and standardised features, one call each; scores on the test frames."""
    store = collect(StoreConfig(options.game, options.slow_steps, purpose="probe"), data_dir)
    bench = PlayBench(store)
    features = extract_features(make_encoder(width), store, bench.rows, quiet=True)
    train, _, test = np.split(features, np.cumsum([len(part) for part in bench.parts])[:-1])
    standard = Standardisation.of(train)
    z, z_test = standard(train), standard(test)
    labels, labels_test = bench.labels[0].astype(np.float64), bench.labels[2].astype(np.float64)
    folds = assign_folds(bench.parts[0].episodes, seed=0)
    groups = torch.arange(labels.shape[1])

    start = time.perf_counter()
    problem = GrowingRidge(z.shape[1], labels.shape[1], standard.variance)
    y = torch.from_numpy(labels).float()
    problem.add(z, y, folds)
    chosen = [torch.from_numpy(np.flatnonzero(folds == fold)) for fold in range(FOLDS)]
    ours = explained_variance(
        labels_test, problem.fit(groups, lambda fold: [(z[chosen[fold]], y[chosen[fold]])])(z_test).numpy()
    )
    fast = time.perf_counter() - start
    start = time.perf_counter()
    cv = [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(FOLDS)]
    sizes = np.bincount(folds)
    alphas = [0.8 * len(z) * ratio * standard.variance for ratio in RATIOS]  # the folds are nearly equal
    search = GridSearchCV(
        Ridge(solver="cholesky"), {"alpha": alphas}, cv=cv, scoring="neg_mean_squared_error", refit=False
    )
    theirs = []
    for column, column_test in zip(labels.T, labels_test.T, strict=True):
        found = search.fit(z.numpy(), column).cv_results_
        errors = np.average([-found[f"split{fold}_test_score"] for fold in range(FOLDS)], axis=0, weights=sizes)
        best = RATIOS[int(np.argmin(errors))]
        model = Ridge(alpha=len(z) * best * standard.variance, solver="cholesky").fit(z.numpy(), column)
        theirs.append(model.score(z_test.numpy(), column_test))
    slow = time.perf_counter() - start
    apart = np.abs(ours - np.array(theirs)).max()
    print(
        f"ridge, {len(z)} frames x {z.shape[1]} live features, {labels.shape[1]} variables, {len(RATIOS)} ratios:"
        f" {fast:.1f} s, scikit-learn {slow:.1f} s (a fit for every ratio and variable), ratio {slow / fast:.0f};"
        f" R2 at most {apart:.4f} apart  (target: 0.002)",
        flush=True,
    )
    start = time.perf_counter()
    cross_validated = RidgeCV(alphas=alphas).fit(z.numpy(), labels)
    seconds = time.perf_counter() - start
    r2 = explained_variance(labels_test, cross_validated.predict(z_test.numpy())).mean()
    print(
        f"RidgeCV (leave one out, one alpha for all variables): {seconds:.1f} s, mean R2 {r2:.4f}, ours"
        f" {ours.mean():.4f}",
        flush=True,
    )
    variances, directions = torch.linalg.eigh(torch.cov(z.T, correction=0))
    kept = variances > 1e-6 * variances[-1]
    rotated, rotated_test = (each @ directions[:, kept] for each in (z, z_test))
    names = (bench.labels[0][:, :1] // 32).copy()  # eight zones of a place, as a name
    names_test = bench.labels[2][:, :1] // 32
    start = time.perf_counter()
    fit = fit_names(rotated, variances[kept], names, folds)
    fast = time.perf_counter() - start
    own = weighted_f1(names_test, fit.predict(rotated_test))[0]
    start = time.perf_counter()
    model = LogisticRegression(C=1 / (len(z) * fit.l2[0]), tol=TOLERANCE, max_iter=10_000).fit(z.numpy(), names[:, 0])
    slow = time.perf_counter() - start
    other = weighted_f1(names_test, model.predict(z_test.numpy())[:, None].astype(np.uint8))[0]
    print(
        f"names, {len(z)} frames, {len(np.unique(names))} values: {fast:.1f} s with the choice among {len(L2)} l2,"
        f" scikit-learn {slow:.1f} s for one of them; F1 {own:.4f} and {other:.4f}  (target: 0.002 apart)",
        flush=True,
    )


def main(options: Options) -> None:
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    threads = torch.get_num_threads()
    print(f"{options.game}, {threads} threads")
    with tempfile.TemporaryDirectory(prefix="manicap-benchmark-") as scratch:
        if "scikit-learn" in options.parts:
            measure_scikit_learn(options, 3456, scratch)
        store = collect(StoreConfig(options.game, options.steps, purpose="probe"), scratch)
        jobs = [("ridge", width) for width in options.default_widths if "default" in options.parts]
        jobs += [("linear", width) for width in options.widths if "linear" in options.parts]
        for probe, width in jobs:
            job = json.dumps([str(store.path), width, threads, probe])
            subprocess.run([sys.executable, __file__, "whole", job], check=True)
        for width in options.widths if "linear" in options.parts else ():
            measure_ratio(options, width, scratch)


if __name__ == "__main__":
    if sys.argv[1:2] == ["whole"]:
        store_path, *arguments = json.loads(sys.argv[2])
        measure_whole(Path(store_path), *arguments)
    else:
        main(tyro.cli(Options))
