"""Plays lanes into their slices of a store's arrays.

`python -m manicap.atari.lane_worker '<json>'` reads lane numbers from standard input, one per line. It regularly prints
the number of rows it has written, then `done` with their hashes.

Rows are written to the files in blocks, not through a memory map: memory does not grow with the number of steps,
and a full disk is an error that can be reported instead of a signal.
"""

import ctypes
import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE, Lane
from manicap.atari.games import find_game
from manicap.atari.store import EPISODE, StoreConfig
from manicap.core.config import from_dict

BLOCK_ROWS = 8
"""Rows written at a time: few enough to remain in the cache until they are hashed and written."""
REPORT_ROWS = 128
LARGE_BYTES = 10**9
SYNC_BYTES = 16 * 2**20

Policy = Callable[[NDArray[np.uint8]], int]


class LaneHashes(NamedTuple):
    """sha256 of a lane's slices of the arrays."""

    frames: str
    ram: str


def play_lane(
    config: StoreConfig, lane_index: int, directory: Path, policy: Policy | None, report: Callable[[int], None]
) -> LaneHashes:
    """Write the lane's frames and RAM at their rows, and its episodes to `episodes-<lane>.npy`.

    Returns the sha256 of what was written, computed while it is in memory: rereading a store to hash it would take a
    tenth of the time of collecting it.
    """
    lane = Lane(find_game(config.game), config.seed, lane_index, config.purpose)
    lane.reset()
    first_row, num_steps = config.lane_start(lane_index), config.lane_steps(lane_index)
    frames = np.empty((BLOCK_ROWS, *FRAME_SHAPE), np.uint8)
    ram = np.empty((BLOCK_ROWS, RAM_SIZE), np.uint8)
    starts: list[tuple[int, NDArray[np.uint8]]] = []  # first row of each life, RAM at the end of the life before
    unreported = 0

    with _RowWriter(directory / "frames.npy") as frame_file, _RowWriter(directory / "ram.npy") as ram_file:
        for begin in range(0, num_steps, BLOCK_ROWS):
            rows = min(BLOCK_ROWS, num_steps - begin)
            for row in range(rows):
                action = lane.random_action() if policy is None else _checked(policy(lane.frame.copy()), lane)
                lane.frame, lane.ram = frames[row], ram[row]  # the lane draws straight into the block
                life_ended = lane.step(action)
                if life_ended:
                    starts.append((begin + row, lane.ram_at_end.copy()))
                elif begin + row == 0:
                    starts.append((0, lane.ram.copy()))
            frame_file.write(first_row + begin, frames[:rows])
            ram_file.write(first_row + begin, ram[:rows])
            unreported += rows
            if unreported >= REPORT_ROWS or begin + rows == num_steps:
                report(unreported)
                unreported = 0

    episodes = np.empty(len(starts), EPISODE)
    for index, (start, ram_before) in enumerate(starts):
        stop = starts[index + 1][0] if index + 1 < len(starts) else num_steps
        episodes[index] = (lane_index, first_row + start, stop - start, ram_before)
    np.save(directory / f"episodes-{lane_index}.npy", episodes)
    return LaneHashes(frame_file.hash.hexdigest(), ram_file.hash.hexdigest())


class _RowWriter:
    """Writes consecutive rows of an existing .npy file in place, and hashes them.

    For a large file, what has reached the disk is dropped from the page cache: filling gigabytes of fresh pages cost
    the kernel up to a fifth of the collection time, and evicts what other processes have cached.
    """

    def __init__(self, path: Path) -> None:
        array = np.load(path, mmap_mode="r")
        self.offset, self.row_bytes = array.offset, array.nbytes // len(array)
        self.sync_range = getattr(ctypes.CDLL(None), "sync_file_range", None) if array.nbytes > LARGE_BYTES else None
        self.unsynced: int | None = None  # first byte written since the last hand-over to the disk
        self.syncing: tuple[int, int] | None = None
        self.file = os.open(path, os.O_WRONLY)
        self.hash = hashlib.sha256()

    def write(self, row: int, values: NDArray[np.uint8]) -> None:
        content, position = values.data.cast("B"), self.offset + row * self.row_bytes
        self.hash.update(content)
        while content:
            written = os.pwrite(self.file, content, position)
            content, position = content[written:], position + written
        if self.sync_range is not None:
            self._release(position)

    def _release(self, end: int) -> None:
        """Start writing the last megabytes to disk, and drop the earlier ones, which have had time to get there."""
        if self.unsynced is None:
            self.unsynced = end
        if end - self.unsynced < SYNC_BYTES or self.sync_range is None:
            return
        start, wait_and_write = ctypes.c_int64(self.unsynced), 7  # the three SYNC_FILE_RANGE flags of fcntl.h
        self.sync_range(self.file, start, ctypes.c_int64(end - self.unsynced), 2)  # SYNC_FILE_RANGE_WRITE
        if self.syncing is not None:
            begin, size = self.syncing
            self.sync_range(self.file, ctypes.c_int64(begin), ctypes.c_int64(size), wait_and_write)
            os.posix_fadvise(self.file, begin, size, os.POSIX_FADV_DONTNEED)
        self.syncing, self.unsynced = (self.unsynced, end - self.unsynced), end

    def __enter__(self) -> "_RowWriter":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.file)


def _checked(action: int, lane: Lane) -> int:
    if not 0 <= int(action) < len(lane.actions):
        raise ValueError(f"the policy returned action {action}; the game has actions 0 to {len(lane.actions) - 1}")
    return int(action)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the collector terminates its workers
    job = json.loads(sys.argv[1])
    config = from_dict(StoreConfig, job["config"])
    try:
        for line in sys.stdin:
            hashes = play_lane(config, int(line), Path(job["directory"]), None, lambda rows: print(rows, flush=True))
            print("done", *hashes, flush=True)
    except BrokenPipeError:
        os._exit(1)  # the collector is gone, so nobody will use this lane
    except OSError as error:
        print(f"error {error.errno} {error.strerror}", flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
