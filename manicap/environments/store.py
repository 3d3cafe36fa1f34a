"""The store of an environment: what a recording writes to disk, and all that later stages see of it.

    data/environments/<env>/<config hash>/
        frames.zst     the frame before every action, each compressed by itself
        steps.npy      (offset, size, reward, ended) [N]
        actions.npy    int64 [N], or float32 [N, A]; played from each frame
        labels.npy     (one number per state variable) [N], if there are any
        episodes.npy   (lane, start, length) [E]
        manifest.json  config, variables, versions, counts, sha256 of every file, in slices of 1024 rows

Row t is what is seen before action t. Nothing is played from the last frame of a lane: its action is 0, its reward 0.
The observation after the last action of an episode is not stored.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError, unknown_choice
from manicap.core.sealed import write_sealed
from manicap.environments.config import RecordConfig
from manicap.environments.frames import StoredFrames
from manicap.environments.labelling import PlayLabels, RecordedLabels
from manicap.environments.layout import Layout
from manicap.play.integrity import MANIFEST, SLICE_ROWS, array_slice_starts, file_entry
from manicap.play.store import Labelling, StateVariable, Usual

FORMAT = 1
ALL_FILES = ("frames.zst", "steps.npy", "actions.npy", "labels.npy", "episodes.npy")
STEP = np.dtype([("offset", "<u8"), ("size", "<u4"), ("reward", "<f8"), ("ended", "u1")])
"""`offset`, `size`: the bytes of frames.zst; `reward`: reward of the action; `ended`: 1 if it terminated the
episode, 2 if it truncated it, 3 if the lane ends here."""
EPISODE = np.dtype([("lane", "<i4"), ("start", "<i8"), ("length", "<i8")])


def store_files(layout: Layout) -> tuple[str, ...]:
    """Files that a store of this layout has."""
    absent = {"actions.npy"} if layout.action_type is None else set()
    absent |= set() if layout.columns else {"labels.npy"}
    return tuple(name for name in ALL_FILES if name not in absent)


class EnvironmentStore:
    """A complete store, read-only. Frames are decoded as they are read."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.config = from_dict(RecordConfig, manifest["config"], source=str(path / MANIFEST))
        self.layout = Layout.from_dict(manifest["layout"])

    def __len__(self) -> int:
        return int(self.manifest["counts"]["frames"])

    def __repr__(self) -> str:
        counts = f"{len(self)} frames, {len(self.episodes)} episodes"
        return f"<EnvironmentStore {self.path}: {counts} of {self.config.env}>"

    @property
    def subject(self) -> str:
        return self.config.subject

    @property
    def usual(self) -> Usual:
        return Usual("plain", "recorded", self.has_colour)

    @property
    def frame_shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.layout.frame_shape[0], self.layout.frame_shape[1]

    @property
    def files(self) -> tuple[str, ...]:
        return store_files(self.layout)

    @property
    def fingerprint(self) -> str:
        """12 hex digits that identify the bytes of this store."""
        hashes = "".join(entry[2] for name in self.files for entry in self.manifest["files"][name]["slices"])
        return hashlib.sha256(hashes.encode()).hexdigest()[:12]

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """All rows: `store.rows[-100:]`"""
        return _read_only(np.arange(len(self)))

    @cached_property
    def steps(self) -> NDArray[np.void]:
        """`reward` and `ended` [N]; see `STEP`."""
        return _read_only(np.load(self.path / "steps.npy"))

    @cached_property
    def episodes(self) -> NDArray[np.void]:
        return _read_only(np.load(self.path / "episodes.npy"))

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Reward of the action played from each frame."""
        if not self.layout.has_rewards:
            raise UserError(f"{self.path} has no rewards: they were not in the file that it was imported from")
        return self.steps["reward"]

    @cached_property
    def actions(self) -> NDArray[Any]:
        """Played from each frame: int64 [N], or float32 [N, A]."""
        if self.layout.action_type is None:
            raise UserError(f"{self.path} has no actions: they were not in the file that it was imported from")
        return _read_only(np.load(self.path / "actions.npy"))

    @cached_property
    def frames(self) -> StoredFrames:
        """Gray frames uint8 [N, H, W]; indexing decodes."""
        return StoredFrames(self.path / "frames.zst", self.steps, self.layout.frame_shape)

    @property
    def has_colour(self) -> bool:
        return len(self.layout.frame_shape) == 3

    def colour_frames(self, rows: Any) -> NDArray[np.uint8]:
        """Colour frames uint8 [..., H, W, 3]; rows as `frames` takes them."""
        return self.frames.read(rows, colour=True)

    def frame_chunks(self, rows: NDArray[np.int64], size: int = 512) -> Iterator[NDArray[np.uint8]]:
        """Frames of the rows as recorded, in colour or gray, in chunks: a pass over the store takes no memory."""
        for start in range(0, len(rows), size):
            yield self.frames.read(rows[start : start + size], colour=self.has_colour)

    @property
    def variables(self) -> tuple[StateVariable, ...]:
        """The state variables that were recorded."""
        return tuple(column.variable for column in self.layout.columns)

    def labelling(self, name: str = "recorded") -> Labelling:
        """The recorded state variables, or with `play` what was played: the next action and the sign of its reward."""
        if name == "recorded":
            return self._recorded
        if name == "play":
            return self._play
        raise unknown_choice("annotation set", name, ("recorded", "play"))

    def given_labels(self, rows: Any) -> dict[str, NDArray[Any]]:
        """The recorded state variables as they were given: bools, numbers, and the names of classes."""
        return self._recorded.as_given(rows) if self.layout.columns else {}

    @cached_property
    def _recorded(self) -> RecordedLabels:
        if not self.layout.columns:
            raise UserError(
                f"{self.path} was recorded without labels: put them into info['labels'], or record with labels"
                " 'observation' or a function of (env, observation, info)"
            )
        return RecordedLabels(self.layout.columns, np.load(self.path / "labels.npy"), self.episodes)

    @cached_property
    def _play(self) -> PlayLabels:
        discrete = self.layout.action_type is not None and not self.layout.action_shape
        actions = self.actions - self.layout.first_action if discrete else None
        rewards = self.rewards if self.layout.has_rewards else None
        if actions is None and rewards is None:
            raise UserError(f"{self.path} has neither actions nor rewards: they were not in the file that was imported")
        return PlayLabels(actions, rewards, self.episodes)


def write_manifest(
    directory: Path,
    config: RecordConfig,
    layout: Layout,
    num_episodes: int,
    versions: Mapping[str, str],
    code: Mapping[str, str],
) -> None:
    """Describe the files of a finished recording. It contains no dates, so equal recordings are bit-identical."""
    offsets = np.load(directory / "steps.npy")["offset"]
    frame_starts: list[int] = offsets[SLICE_ROWS::SLICE_ROWS].tolist()
    files = {}
    for name in store_files(layout):
        starts = frame_starts if name == "frames.zst" else array_slice_starts(directory / name)
        files[name] = file_entry(directory / name, starts)
    own = {name: version(name) for name in ("manicap", "gymnasium", "numpy", "zstandard")}
    manifest = {
        "format": FORMAT,
        "config": to_dict(config),
        "layout": layout.as_dict(),
        "versions": {**versions, **own},
        "code": dict(code),
        "counts": {"frames": config.steps, "episodes": num_episodes},
        "files": files,
    }
    write_sealed(directory / MANIFEST, manifest)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
