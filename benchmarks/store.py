"""Reading compressed stores against frames in memory and against raw frames on disk, as ratios within one run.

    python benchmarks/store.py [--game ms_pacman] [--steps 20000]

Run it alone on the machine. Ms Pacman has the largest frames. "Cold" is after the file was dropped from the page cache.
"""

import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from torch import Tensor

from manicap.atari.collect import collect
from manicap.atari.store import Store, StoreConfig
from manicap.domains.atari.config import atari_preset
from manicap.domains.play.data import StoreData
from manicap.domains.play.samples import FrameSource
from manicap.train.batches import Batches
from manicap.train.setup import build_method, build_optimizer


@dataclass(frozen=True)
class Options:
    game: str = "ms_pacman"
    steps: int = 20_000
    rounds: int = 6
    """Blocks of training steps of each kind, alternating."""
    block: int = 15
    """Training steps in a block."""


def drop_from_cache(path: Path, mapped: np.memmap) -> None:
    mapped._mmap.madvise(mmap.MADV_DONTNEED)  # what is mapped stays in the cache
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def milliseconds(call: Callable[[np.ndarray], object], rows: list[np.ndarray], before: Callable[[], None]) -> float:
    """Median over the lists of rows."""
    found = []
    for each in rows:
        before()
        start = time.perf_counter()
        call(each)
        found.append(1e3 * (time.perf_counter() - start))
    return statistics.median(found)


def compare_access(store: Store, raw: Path) -> None:
    frames, compressed = np.load(raw, mmap_mode="r"), store.path / "frames.zst"
    draws = [np.random.default_rng(i).integers(0, len(store), 128) for i in range(20)]
    store.frames[draws[0]], frames[draws[0]]
    for name, before in (
        ("warm", lambda: None),
        ("cold", lambda: (drop_from_cache(raw, frames), drop_from_cache(compressed, store.frames._bytes))),
    ):
        ours = milliseconds(lambda rows: store.frames[rows], draws, before)
        colour = milliseconds(store.colour_frames, draws, before)
        theirs = milliseconds(lambda rows: frames[rows], draws, before)
        print(
            f"128 random rows, {name}: {ours:.1f} ms, in colour {colour:.1f}, raw frames {theirs:.1f}  (target: 5 ms)"
        )
    rows = np.arange(len(store))
    start = time.perf_counter()
    for _ in store.frame_chunks(rows):
        pass
    rate = len(store) / (time.perf_counter() - start)
    print(f"a pass over all frames: {rate:,.0f} frames/s  (target: 5,000)")


class InMemory(FrameSource):
    """Frames decoded beforehand: what reading costs at least."""

    def __init__(self, source: FrameSource) -> None:
        super().__init__(source.store, source.device, source.view)
        self.frames = torch.from_numpy(np.array(source.store.frames))

    def prepare(self, rows: np.ndarray) -> None:
        pass

    def take(self, rows: np.ndarray) -> Tensor:
        return self.frames[torch.from_numpy(rows)].unsqueeze(-3)


class RawFile(InMemory):
    """Raw frames in a memory map: format 2."""

    def __init__(self, source: FrameSource, raw: Path) -> None:
        FrameSource.__init__(self, source.store, source.device, source.view)
        self.mapped = np.load(raw, mmap_mode="r")

    def take(self, rows: np.ndarray) -> Tensor:
        return torch.from_numpy(self.mapped[rows.ravel()]).unflatten(0, rows.shape).unsqueeze(-3)


def compare_training(store: Store, raw: Path, options: Options) -> None:
    config = atari_preset("quick", options.game, "st-dim")
    data = StoreData(config, store, torch.device("cpu"))
    method = build_method(config, data.context)
    optimizer = build_optimizer(method, config, data.device)
    samples = data.splits(method.frames_per_sample)["train"]
    sources = {
        "memory": InMemory(data.source),
        "compressed": data.source,
        "compressed, decoded every time": FrameSource(store, data.device, kept_bytes=0),
        "raw file": RawFile(data.source, raw),
    }
    kinds = [(name, False) for name in sources] + [(name, True) for name in list(sources)[2:]]
    data.source.take(np.arange(len(store)))  # as after the first epoch
    seconds: dict[tuple[str, bool], list[float]] = {kind: [] for kind in kinds}
    for turn in range(options.rounds + 1):
        for kind in kinds:
            data.source = sources[kind[0]]
            if kind[1]:
                drop_from_cache(raw, sources["raw file"].mapped)
                drop_from_cache(store.path / "frames.zst", store.frames._bytes)
            batches = Batches(samples, config.batch_size, turn, "train", prepare=data.prepare).epoch(0)
            start = time.perf_counter()
            for _, rows in zip(range(options.block), batches, strict=False):
                total = method.loss(data.batch(rows, "train", 0)).total
                optimizer.zero_grad(set_to_none=True)
                total.backward()
                optimizer.step()
            if turn:  # the first round warms up
                seconds[kind].append((time.perf_counter() - start) / options.block)
    memory = statistics.median(seconds["memory", False])
    print(f"a training step of {config.batch_size} pairs (ST-DIM) from memory: {1e3 * memory:.0f} ms")
    for (name, cold), found in list(seconds.items())[1:]:
        # Ratios within a round: what else the machine does changes from round to round.
        ratios = [a / b for a, b in zip(found, seconds["memory", False], strict=True)]
        target = "  (target: 1.02)" if name.startswith("compressed") else ""
        print(f"  {name}, {'cold' if cold else 'warm'}: {statistics.median(ratios):.3f} of that{target}")


def main(options: Options) -> None:
    with tempfile.TemporaryDirectory(prefix="manicap-benchmark-") as scratch:
        store = collect(StoreConfig(options.game, options.steps), scratch)
        raw = Path(scratch) / "raw.npy"
        np.save(raw, np.array(store.frames))
        size = sum(entry["bytes"] for entry in store.manifest["files"].values())
        whole = raw.stat().st_size + 128 * options.steps
        print(f"{options.game}, {options.steps:,} steps: {size / 1e6:.1f} MB, 1/{whole / size:.0f} of raw frames")
        print(f"{torch.get_num_threads()} threads")
        compare_access(store, raw)
        compare_training(store, raw, options)


if __name__ == "__main__":
    main(tyro.cli(Options))
