"""The frame store: what a collection leaves on disk, and all that later stages see of a game.

    data/<game>/<config hash>/
        frames.npy     uint8 [N, 210, 160]
        ram.npy        uint8 [N, 128]     the whole RAM, so that labels can be derived with any annotation set
        episodes.npy   (lane, start, length, ram_before) [E]
        manifest.json  config, versions, counts, sha256 of every file, in slices: its header, then each lane

A store is built elsewhere and renamed into place when complete, so a directory with this name is a complete store.
`manicap.atari.integrity` checks whether it still is.
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE
from manicap.atari.games import GAMES, find_game
from manicap.core.config import config_hash, from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.files import SCRATCH_SUFFIX, sha256_slice
from manicap.core.ranges import Count, Lanes, Seed
from manicap.core.sealed import write_sealed

FORMAT = 2
MANIFEST, STAMPS = "manifest.json", ".verified.json"
ARRAYS = ("frames.npy", "ram.npy", "episodes.npy")
EPISODE = np.dtype([("lane", "<i4"), ("start", "<i8"), ("length", "<i8"), ("ram_before", "u1", (RAM_SIZE,))])
"""`ram_before`: the RAM after the step that ended the previous life; for a lane's first life, its first frame's."""


@dataclass(frozen=True)
class StoreConfig:
    """What to collect. Equal configs refer to the same store."""

    game: str
    """Game to play: pong, ms_pacman, MsPacman, MsPacmanNoFrameskip-v4, ALE/MsPacman-v5, ..."""
    steps: Count = 100_000
    """Total steps (4 raw frames each), divided among the lanes; one frame is stored per step."""
    seed: Seed = 0
    """Lane i plays from the stream (seed, i), so the bytes do not depend on the number of workers."""
    purpose: Literal["pretrain", "probe"] = "pretrain"
    """Probe stores contain different episodes from pretraining stores with the same seed."""
    lanes: Lanes = 8
    """Independent games played in parallel."""
    policy: str = "random"
    """Name of the policy; only `random` can be collected from the command line."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "game", find_game(self.game).name)

    def problems(self) -> list[str]:
        found = []
        if 1 <= self.steps < self.lanes:
            found.append(f"steps must be at least the number of lanes ({self.lanes}), got {self.steps}")
        if not self.policy:
            found.append("policy needs a name")
        return found

    def lane_steps(self, lane: int) -> int:
        """Steps of one lane; the remainder goes to the first lanes."""
        return self.steps // self.lanes + (lane < self.steps % self.lanes)

    def lane_start(self, lane: int) -> int:
        """Row of the lane's first frame."""
        return lane * (self.steps // self.lanes) + min(lane, self.steps % self.lanes)


def store_path(config: StoreConfig, data_dir: Path) -> Path:
    return data_dir / config.game / config_hash(config)


class Store:
    """A complete store, read-only and memory-mapped."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.config = from_dict(StoreConfig, manifest["config"], source=str(path / MANIFEST))

    def __len__(self) -> int:
        return int(self.manifest["counts"]["frames"])

    def __repr__(self) -> str:
        return f"<Store {self.path}: {len(self)} frames, {len(self.episodes)} lives of {self.config.game}>"

    @cached_property
    def frames(self) -> NDArray[np.uint8]:
        return np.load(self.path / "frames.npy", mmap_mode="r")

    @cached_property
    def ram(self) -> NDArray[np.uint8]:
        return np.load(self.path / "ram.npy", mmap_mode="r")

    @cached_property
    def episodes(self) -> NDArray[np.void]:
        return np.load(self.path / "episodes.npy")

    def frame_chunks(self, start: int, stop: int, size: int = 512) -> Iterator[NDArray[np.uint8]]:
        """Frames start .. stop-1 in chunks, read rather than mapped: a pass over the store takes no memory."""
        offset = getattr(self.frames, "offset", 0)  # of the array inside the file
        with (self.path / "frames.npy").open("rb") as file:
            file.seek(offset + start * FRAME_SHAPE[0] * FRAME_SHAPE[1])
            for begin in range(start, stop, size):
                rows = min(size, stop - begin)
                chunk = np.fromfile(file, np.uint8, rows * FRAME_SHAPE[0] * FRAME_SHAPE[1])
                yield chunk.reshape(rows, *FRAME_SHAPE)

    @property
    def fingerprint(self) -> str:
        """12 hex digits that identify the bytes of this store."""
        hashes = "".join(entry[2] for name in ARRAYS for entry in self.manifest["files"][name]["slices"])
        return hashlib.sha256(hashes.encode()).hexdigest()[:12]


def write_manifest(
    directory: Path, config: StoreConfig, num_episodes: int, lane_hashes: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Describe the arrays of a finished collection. It holds no dates: equal collections give equal bytes.

    `lane_hashes` are those of each lane's slice of a file, if already known.
    """
    files = {}
    for name in ARRAYS:
        path = directory / name
        slices = _slices(path, config)
        known = dict(zip(slices[1:], (lane_hashes or {}).get(name, ()), strict=False))
        files[name] = {
            "bytes": path.stat().st_size,
            "slices": [[*ends, known.get(ends) or sha256_slice(path, *ends)] for ends in slices],
        }
    manifest = {
        "format": FORMAT,
        "config": to_dict(config),
        "versions": {name: version(name) for name in ("manicap", "ale-py", "numpy")},
        "counts": {"frames": config.steps, "episodes": num_episodes},
        "files": files,
    }
    write_sealed(directory / MANIFEST, manifest)


def list_stores(data_dir: Path) -> list[Path]:
    """Store directories under `data_dir`, sound or not; incomplete ones are hidden and not listed."""
    if not data_dir.is_dir():
        return []
    found = (path for game in GAMES for path in (data_dir / game).glob("[!.]*"))
    return sorted(path for path in found if path.is_dir())


def remove_store(path: Path) -> None:
    """Delete a store. A directory that does not look like one is refused."""
    if not path.is_dir():
        raise UserError(f"there is no store at {path}")
    own = (*ARRAYS, MANIFEST, STAMPS)
    strangers = [item.name for item in path.iterdir() if item.name not in own and item.suffix != SCRATCH_SUFFIX]
    if strangers:
        raise UserError(f"{path} does not look like a store (it holds {', '.join(sorted(strangers)[:5])}); not removed")
    shutil.rmtree(path)


def _slices(path: Path, config: StoreConfig) -> list[tuple[int, int]]:
    """Byte ranges of the file: the header, then each lane's rows; a file that is not organised by rows is one slice."""
    size = path.stat().st_size
    if path.name == "episodes.npy":
        return [(0, size)]
    array = np.load(path, mmap_mode="r")
    row_bytes = array.nbytes // len(array)
    starts = [array.offset + config.lane_start(lane) * row_bytes for lane in range(config.lanes)]
    return list(pairwise([0, *starts, size]))
