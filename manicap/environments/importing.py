"""Frames that were recorded elsewhere, as a store like any other.

record_from("play.npz", "my-robot", label_kinds=("x:place",))
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manicap.core.config import check_config, checked
from manicap.core.errors import UserError, refused_by_system
from manicap.core.files import publish_directory, require_space
from manicap.core.paths import DATA_DIR
from manicap.core.progress import Tracker
from manicap.core.ranges import RunName
from manicap.environments.building import building_path, remove_parts
from manicap.environments.config import FrameSide, RecordConfig, on_disk, store_path
from manicap.environments.integrity import open_environment_store
from manicap.environments.joining import join_lanes
from manicap.environments.labels import LabelEncoder, choose_columns, plain_label
from manicap.environments.lane_worker import BLOCK_ROWS, LaneFiles
from manicap.environments.layout import Layout
from manicap.environments.pictures import FrameTaker, check_size
from manicap.environments.player import CUT, Played
from manicap.environments.sources import Source, open_source, source_sha256
from manicap.environments.store import EnvironmentStore, store_files, write_manifest
from manicap.play.integrity import write_stamps
from manicap.play.leavings import store_lock

RECORDED = "recorded"
"""The policy and frames of an imported store."""


@checked
def record_from(
    path: Path | str,
    name: RunName,
    *,
    purpose: Literal["pretrain", "probe"] = "pretrain",
    label_kinds: tuple[str, ...] = (),
    label_categories: tuple[str, ...] = (),
    colour: bool = True,
    frame_size: tuple[FrameSide, FrameSide] | None = None,
    data_dir: Path | str = DATA_DIR,
    quiet: bool = False,
) -> EnvironmentStore:
    """Make a store of frames that were recorded elsewhere; if it already exists, open it.

        store = manicap.record_from("play.npz", "my-robot", label_kinds=("x:place",))

    A changed file makes another store. Why an episode ended is not known: `ended` is 3 in its last row.

    Args:
        path: An .npz, .h5 or .hdf5 file with `frames` uint8 [N, H, W] or [N, H, W, 3], `episode` [N], `label_NAME` [N]
            and optionally `actions` and `rewards`; or a folder with frames/*.png and labels.csv.
        name: Name of what was recorded; the store is kept under it.
        purpose: `pretrain` or `probe`.
        label_kinds: Kinds that do not follow from the type, such as `x:place`.
        label_categories: Groups of variables whose scores are averaged, such as `x:agent_localization`.
        colour: Keep colours, if there are any.
        frame_size: Height and width to which frames are resized.
        data_dir: Where stores are kept.
        quiet: Show no progress.
    """
    source = open_source(Path(path))
    _check_lengths(source)
    config = RecordConfig(
        env=name,
        steps=source.num_frames,
        lanes=1,
        purpose=purpose,
        policy=RECORDED,
        frames=RECORDED,
        label_kinds=tuple(label_kinds),
        label_categories=tuple(label_categories),
        colour=colour,
        frame_size=None if frame_size is None else (frame_size[0], frame_size[1]),
        source=source_sha256(source.path),
    )
    check_config(config)
    final = store_path(config, on_disk(data_dir))
    try:
        with store_lock(final, "importing", quiet):
            if not final.is_dir():
                _build(config, source, final, quiet)
    except OSError as error:
        raise refused_by_system(f"cannot import {path} into {data_dir}", error) from error
    return open_environment_store(final)


def _build(config: RecordConfig, source: Source, final: Path, quiet: bool) -> None:
    starts = _episode_starts(source)
    frames = _stored_frames(config, source)
    first = next(frames)
    check_size(first, config)
    columns = choose_columns(_labels(source, 0), config)
    actions, rewards = _actions(source), _rewards(source)
    layout = Layout(
        frame_shape=first.shape,
        columns=columns,
        action_type=None if actions is None else actions.dtype.str,
        action_shape=() if actions is None else actions.shape[1:],
        first_action=0 if actions is None or actions.ndim > 1 else int(actions.min()),
        has_rewards=rewards is not None,
    )
    require_space(final.parent, 2 * first.size * config.steps // 4, f"{config.steps:,} frames of {config.env}")
    scratch = building_path(final)  # leftovers of a killed import cannot be used
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        with Tracker(f"importing {config.env}", config.steps, "frames", quiet) as tracker:
            _write_lane(config, source, layout, scratch, starts, tracker)
        layout, num_episodes = join_lanes(1, layout, scratch)
        write_manifest(scratch, config, layout, num_episodes, {}, {})
        write_stamps(scratch, store_files(layout))
        remove_parts(scratch)
        publish_directory(scratch, final)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _write_lane(
    config: RecordConfig, source: Source, layout: Layout, directory: Path, starts: list[int], tracker: Tracker
) -> None:
    encoder, last_rows = LabelEncoder(layout.columns), {start - 1 for start in [*starts[1:], source.num_frames]}
    actions, rewards = _actions(source), _rewards(source)
    with LaneFiles(directory, 0, layout) as files:
        for row, frame in enumerate(_stored_frames(config, source)):
            if frame.shape != layout.frame_shape:
                raise UserError(
                    f"the frame of {source.path} at row {row} is {list(frame.shape)}, and the first is"
                    f" {list(layout.frame_shape)}: give one size for all (frame_size, --frame-size 84 84)"
                )
            labels = encoder.encode(_labels(source, row), f"at row {row}")
            action = 0 if actions is None else actions[row]
            reward = 0.0 if rewards is None else float(rewards[row])
            files.add(files.compress(frame), labels, Played(action, reward, CUT if row in last_rows else 0))
            if files.num_waiting == BLOCK_ROWS or row == source.num_frames - 1:
                tracker.advance(files.flush())
        files.finish(starts, 0, encoder)


def _stored_frames(config: RecordConfig, source: Source) -> Iterator[NDArray[np.uint8]]:
    taker = FrameTaker(config)
    for row, frame in enumerate(source.read_frames()):
        yield taker.as_stored(frame, f"the frame of {source.path}", f"at row {row}")


def _labels(source: Source, row: int) -> dict[str, Any]:
    return {name: plain_label(array[row], name, f"at row {row}") for name, array in sorted(source.labels.items())}


def _check_lengths(source: Source) -> None:
    if not source.num_frames:
        raise UserError(f"{source.path} has no frames")
    for name, array in (*source.arrays.items(), *source.labels.items()):
        if array.ndim == 0 or len(array) != source.num_frames:
            rows = len(array) if array.ndim else "a single value, not"
            raise UserError(f"{source.path}: {name!r} has {rows} rows, and there are {source.num_frames} frames")
        if array.ndim > 1 and name != "actions":
            raise UserError(f"{source.path}: {name!r} is {list(array.shape)}, not [{source.num_frames}]")


def _episode_starts(source: Source) -> list[int]:
    if "episode" not in source.arrays:
        raise UserError(f"{source.path} has no 'episode': it needs the number of the episode of each frame")
    episode = source.arrays["episode"]
    if episode.dtype.kind not in "iu":
        raise UserError(f"{source.path}: 'episode' is {episode.dtype}; needed are whole numbers")
    starts: list[int] = [0, *(np.flatnonzero(episode[1:] != episode[:-1]) + 1).tolist()]
    seen = set[int]()
    for start in starts:
        if (number := int(episode[start])) in seen:
            raise UserError(
                f"{source.path}: episode {number} begins again at row {start}; its rows must follow one another"
            )
        seen.add(number)
    return starts


def _actions(source: Source) -> NDArray[Any] | None:
    found = source.arrays.get("actions")
    if found is None:
        return None
    if found.ndim == 1 and found.dtype.kind in "iu":
        return found.astype("<i8")
    if found.ndim == 2 and found.dtype.kind in "iuf":
        _check_finite(found, "actions", source.path)
        return found.astype("<f4")
    raise UserError(f"{source.path}: 'actions' is {found.dtype} {list(found.shape)}; needed is int [N] or float [N, A]")


def _rewards(source: Source) -> NDArray[np.float64] | None:
    found = source.arrays.get("rewards")
    if found is None:
        return None
    if found.dtype.kind not in "biuf":
        raise UserError(f"{source.path}: 'rewards' is {found.dtype}; needed are numbers")
    _check_finite(found, "rewards", source.path)
    return found.astype(np.float64)


def _check_finite(values: NDArray[Any], name: str, path: Path) -> None:
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(1))
    if len(bad):
        raise UserError(f"{path}: {name!r} is {values[bad[0]]} at row {bad[0]}")
