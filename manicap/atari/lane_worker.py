"""Plays lanes into their slices of a store's arrays.

`python -m manicap.atari.lane_worker '<json>'` reads lane numbers from standard input, one a line, and prints the rows
of each block it has written, then `done`.

Rows are written to the files in blocks, not through a memory map: memory does not grow with the number of steps,
and a full disk is an error that can be reported instead of a signal.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE, Lane
from manicap.atari.games import find_game
from manicap.atari.store import EPISODE, StoreConfig
from manicap.core.config import from_dict

BLOCK_ROWS = 128

Policy = Callable[[NDArray[np.uint8]], int]


def play_lane(
    config: StoreConfig, lane_index: int, directory: Path, policy: Policy | None, report: Callable[[int], None]
) -> None:
    """Write the lane's frames and RAM at their rows, and its episodes to `episodes-<lane>.npy`."""
    lane = Lane(find_game(config.game), config.seed, lane_index, config.purpose)
    lane.reset()
    first_row, num_steps = config.lane_start(lane_index), config.lane_steps(lane_index)
    frames = np.empty((BLOCK_ROWS, *FRAME_SHAPE), np.uint8)
    ram = np.empty((BLOCK_ROWS, RAM_SIZE), np.uint8)
    starts: list[tuple[int, NDArray[np.uint8]]] = []  # first row of each life, RAM at the end of the life before

    with _RowWriter(directory / "frames.npy") as frame_file, _RowWriter(directory / "ram.npy") as ram_file:
        for begin in range(0, num_steps, BLOCK_ROWS):
            rows = min(BLOCK_ROWS, num_steps - begin)
            for row in range(rows):
                action = lane.random_action() if policy is None else _checked(policy(lane.frame.copy()), lane)
                life_ended = lane.step(action)
                frames[row], ram[row] = lane.frame, lane.ram
                if life_ended:
                    starts.append((begin + row, lane.ram_at_end.copy()))
                elif begin + row == 0:
                    starts.append((0, lane.ram.copy()))
            frame_file.write(first_row + begin, frames[:rows])
            ram_file.write(first_row + begin, ram[:rows])
            report(rows)

    episodes = np.empty(len(starts), EPISODE)
    for index, (start, ram_before) in enumerate(starts):
        stop = starts[index + 1][0] if index + 1 < len(starts) else num_steps
        episodes[index] = (lane_index, first_row + start, stop - start, ram_before)
    np.save(directory / f"episodes-{lane_index}.npy", episodes)


class _RowWriter:
    """Writes rows of an existing .npy file in place."""

    def __init__(self, path: Path) -> None:
        array = np.load(path, mmap_mode="r")
        self.offset, self.row_bytes = array.offset, array.nbytes // len(array)
        self.file = os.open(path, os.O_WRONLY)

    def write(self, row: int, values: NDArray[np.uint8]) -> None:
        content, position = values.data.cast("B"), self.offset + row * self.row_bytes
        while content:
            written = os.pwrite(self.file, content, position)
            content, position = content[written:], position + written

    def __enter__(self) -> "_RowWriter":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.file)


def _checked(action: int, lane: Lane) -> int:
    if not 0 <= int(action) < len(lane.actions):
        raise ValueError(f"the policy returned action {action}; the game has actions 0 to {len(lane.actions) - 1}")
    return int(action)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the collector ends its workers
    job = json.loads(sys.argv[1])
    config = from_dict(StoreConfig, job["config"])
    try:
        for line in sys.stdin:
            play_lane(config, int(line), Path(job["directory"]), None, lambda rows: print(rows, flush=True))
            print("done", flush=True)
    except BrokenPipeError:
        os._exit(1)  # the collector is gone, nobody will take this lane
    except OSError as error:
        print(f"error {error.errno} {error.strerror}", flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
