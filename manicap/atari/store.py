"""The frame store: what a collection leaves on disk, and all that later stages see of a game.

    data/<game>/<config hash>/
        frames.zst     the last two screens of every step, each step compressed by itself (see `screens`)
        steps.npy      (offset, size, table, action, reward, lives, ended) [N]
        ram.zst        uint8 [N, 128]     the whole RAM, so that labels can be derived with any annotation set
        episodes.npy   (lane, start, length, ram_before) [E]
        colours.npy    uint8 [T, 128, 2]  pairs of palette indices that odd codes stand for
        manifest.json  config, versions, counts, sha256 of every file, in slices of 1024 rows

A store is built elsewhere and renamed into place when complete, so a directory with this name is a complete store.
`manicap.atari.integrity` checks whether it still is. Format 2, whose frames are an array and which has neither steps
nor colours, can be read; `manicap data convert` compresses it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE
from manicap.atari.frames import CompressedFrames
from manicap.atari.games import GAMES, find_game
from manicap.atari.labelling import RamLabels
from manicap.atari.ram import block_starts, read_ram
from manicap.core.config import config_hash, from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.ranges import Count, Lanes, Seed
from manicap.core.sealed import write_sealed
from manicap.play.integrity import MANIFEST, SLICE_ROWS, array_slice_starts, file_entry
from manicap.play.removal import remove_store_directory
from manicap.play.store import Usual

FORMAT = 3
FILES = {
    3: ("frames.zst", "steps.npy", "ram.zst", "episodes.npy", "colours.npy"),
    2: ("frames.npy", "ram.npy", "episodes.npy"),
}
"""By format."""
STEP = np.dtype(
    [
        ("offset", "<u8"),
        ("size", "<u4"),
        ("table", "<u4"),
        ("action", "u1"),
        ("reward", "<i4"),
        ("lives", "u1"),
        ("ended", "u1"),
    ]
)
"""`offset`, `size`: the bytes of frames.zst. `action`: played from this frame, an index into the minimal action set;
`reward`: what it brought; `ended`: 1 if it ended the life, 2 if it ended the game."""
NO_ACTION = 255
"""From the last frame of a lane nothing was played."""
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
    """A complete store, read-only. Frames are decoded as they are read."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.config = from_dict(StoreConfig, manifest["config"], source=str(path / MANIFEST))

    def __len__(self) -> int:
        return int(self.manifest["counts"]["frames"])

    def __repr__(self) -> str:
        return f"<Store {self.path}: {len(self)} frames, {len(self.episodes)} lives of {self.config.game}>"

    @property
    def subject(self) -> str:
        return self.config.game

    @property
    def usual(self) -> Usual:
        return Usual("fixed", "corrected", colour=False)

    def labelling(self, name: str) -> RamLabels:
        """The state variables of an annotation set: `corrected`, `ari-2020`, `ari-2019`."""
        return RamLabels(self, name)

    @property
    def format(self) -> int:
        return int(self.manifest["format"])

    @property
    def files(self) -> tuple[str, ...]:
        return FILES[self.format]

    @cached_property
    def frames(self) -> CompressedFrames | NDArray[np.uint8]:
        """Gray frames uint8 [N, 210, 160]; indexing decodes."""
        if self.format == 2:
            return np.load(self.path / "frames.npy", mmap_mode="r")
        return CompressedFrames(self.path / "frames.zst", self.index, np.load(self.path / "colours.npy"))

    def colour_frames(self, rows: Any) -> NDArray[np.uint8]:
        """Colour frames uint8 [..., 210, 160, 3]; rows as `frames` takes them."""
        if isinstance(self.frames, CompressedFrames):
            return self.frames.read(rows, colour=True)
        raise UserError(f"{self.path} holds gray frames only (format 2): collect it again")

    @property
    def has_colour(self) -> bool:
        return isinstance(self.frames, CompressedFrames) and self.frames.has_colour

    @property
    def steps(self) -> NDArray[np.void]:
        """What was played from each frame: `action`, `reward`, `lives`, `ended` [N]; see `STEP`."""
        if self.format == 2 or not self.has_colour:  # both are recorded since format 3
            raise UserError(f"{self.path} has no actions and rewards, which were not recorded: collect it again")
        return self.index

    @cached_property
    def index(self) -> NDArray[np.void]:
        """`steps.npy`; in a store that was converted from gray frames nothing is known of what was played."""
        return _read_only(np.load(self.path / "steps.npy"))

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """All of them: `store.rows[-100:]`"""
        return _read_only(np.arange(len(self)))

    @cached_property
    def ram(self) -> NDArray[np.uint8]:
        if self.format == 2:
            return np.load(self.path / "ram.npy", mmap_mode="r")
        starts = [start for start, _, _ in self.manifest["files"]["ram.zst"]["slices"]]
        return _read_only(read_ram(self.path / "ram.zst", starts, len(self)))

    @cached_property
    def episodes(self) -> NDArray[np.void]:
        return _read_only(np.load(self.path / "episodes.npy"))

    def frame_chunks(self, rows: NDArray[np.int64], size: int = 512) -> Iterator[NDArray[np.uint8]]:
        """Frames of the rows in chunks: a pass over the store takes no memory."""
        if self.format == 2:
            yield from _raw_chunks(self.path / "frames.npy", rows, size)
            return
        for start in range(0, len(rows), size):
            yield self.frames[rows[start : start + size]]

    @property
    def fingerprint(self) -> str:
        """12 hex digits that identify the bytes of this store, or of the one that it was converted from."""
        if "converted_from" in self.manifest:
            return str(self.manifest["converted_from"])
        hashes = "".join(entry[2] for name in self.files for entry in self.manifest["files"][name]["slices"])
        return hashlib.sha256(hashes.encode()).hexdigest()[:12]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def write_manifest(directory: Path, config: StoreConfig, num_episodes: int, converted_from: str | None = None) -> None:
    """Describe the files of a finished collection. It holds no dates: equal collections give equal bytes."""
    offsets = np.load(directory / "steps.npy")["offset"]
    files = {}
    for name in FILES[FORMAT]:
        files[name] = file_entry(directory / name, _slice_starts(directory / name, offsets))
    manifest = {
        "format": FORMAT,
        "config": to_dict(config),
        "versions": {name: version(name) for name in ("manicap", "ale-py", "numpy", "zstandard")},
        "counts": {"frames": config.steps, "episodes": num_episodes},
        "files": files,
    }
    if converted_from is not None:
        manifest["converted_from"] = converted_from
    write_sealed(directory / MANIFEST, manifest)


def list_stores(data_dir: Path) -> list[Path]:
    """Store directories under `data_dir`, sound or not; incomplete ones are hidden and not listed."""
    if not data_dir.is_dir():
        return []
    found = (path for game in GAMES for path in (data_dir / game).glob("[!.]*"))
    return sorted(path for path in found if path.is_dir())


def remove_store(path: Path) -> None:
    """Delete a store. A directory that does not look like one is refused."""
    remove_store_directory(path, chain.from_iterable(FILES.values()))


def _slice_starts(path: Path, offsets: NDArray[np.uint64]) -> list[int]:
    """Where every `SLICE_ROWS` rows begin, but the first; none in a file without rows."""
    if path.name == "ram.zst":
        return list(block_starts(path))[1:]
    if path.name == "frames.zst":
        return offsets[SLICE_ROWS::SLICE_ROWS].tolist()
    return array_slice_starts(path) if path.name == "steps.npy" else []


def _raw_chunks(path: Path, rows: NDArray[np.int64], size: int) -> Iterator[NDArray[np.uint8]]:
    """Read rather than mapped, which would fill the memory."""
    offset, row_bytes = np.load(path, mmap_mode="r").offset, FRAME_SHAPE[0] * FRAME_SHAPE[1]
    with path.open("rb") as file:
        for start in range(0, len(rows), size):
            chosen = rows[start : start + size]
            frames = np.empty((len(chosen), *FRAME_SHAPE), np.uint8)
            for frame, row in zip(frames, chosen.tolist(), strict=True):
                file.seek(offset + row * row_bytes)
                file.readinto(frame.data)
            yield frames
