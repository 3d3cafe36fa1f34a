"""Plays lanes, each into files of its own, which the collector joins.

`python -m manicap.atari.lane_worker '<json>'` reads lane numbers from standard input, one per line. It regularly prints
the number of rows it has written, then `done`.

Rows are written in blocks: memory does not grow with the number of steps.
"""

import json
import operator
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import RAM_SIZE, Lane
from manicap.atari.games import find_game
from manicap.atari.screens import ScreenCoder
from manicap.atari.store import EPISODE, NO_ACTION, STEP, StoreConfig
from manicap.core.config import from_dict
from manicap.core.errors import UserError
from manicap.play.codec import compressor

BLOCK_ROWS = 128
"""Rows written and reported at a time."""

Policy = Callable[[NDArray[np.uint8]], int]


def play_lane(
    config: StoreConfig, lane_index: int, directory: Path, policy: Policy | None, report: Callable[[int], None]
) -> None:
    """Write `frames-<lane>`, `ram-<lane>` and `steps-<lane>` row by row, then `episodes-<lane>` and `colours-<lane>`.

    Offsets and tables count from the lane's own first one.
    """
    lane = Lane(find_game(config.game), config.seed, lane_index, config.purpose)
    lane.reset()
    first_row, num_steps = config.lane_start(lane_index), config.lane_steps(lane_index)
    coder, compress = ScreenCoder(), compressor()
    starts: list[tuple[int, NDArray[np.uint8]]] = []  # first row of each life, RAM at the end of the life before
    seen: list[tuple[int, int, int, int]] = []  # by row: offset, size, table, lives
    played: list[tuple[int, int, int]] = []  # action, reward, ended; the newest row has none yet
    ram, offset = np.empty((BLOCK_ROWS, RAM_SIZE), np.uint8), 0

    names = [directory / f"{name}-{lane_index}" for name in ("frames", "ram", "steps")]
    with names[0].open("wb") as frame_file, names[1].open("wb") as ram_file, names[2].open("wb") as step_file:
        for row in range(num_steps):
            action = lane.random_action() if policy is None else _checked(policy(lane.frame), lane)
            life_ended = lane.step(action)
            if life_ended:
                starts.append((row, lane.ram_at_end.copy()))
            elif row == 0:
                starts.append((0, lane.ram.copy()))
            if row:
                played.append((action, lane.reward, life_ended + lane.game_over))
            table, codes = coder.encode(*lane.screens)
            compressed = compress(codes)
            frame_file.write(compressed)
            seen.append((offset, len(compressed), table, lane.lives))
            offset += len(compressed)
            ram[row % BLOCK_ROWS] = lane.ram
            in_block = row % BLOCK_ROWS + 1
            if in_block == BLOCK_ROWS or row == num_steps - 1:
                ram_file.write(ram[:in_block].tobytes())
                step_file.write(_steps(seen, played))
                del seen[: len(played)], played[:]
                report(in_block)
        step_file.write(_steps(seen, [(NO_ACTION, 0, 0)]))

    episodes = np.empty(len(starts), EPISODE)
    for index, (start, ram_before) in enumerate(starts):
        stop = starts[index + 1][0] if index + 1 < len(starts) else num_steps
        episodes[index] = (lane_index, first_row + start, stop - start, ram_before)
    (directory / f"episodes-{lane_index}").write_bytes(episodes.tobytes())
    (directory / f"colours-{lane_index}").write_bytes(coder.tables.tobytes())


def _steps(seen: list[tuple[int, int, int, int]], played: list[tuple[int, int, int]]) -> bytes:
    """Rows of which it is known what was played from them."""
    found = np.empty(len(played), STEP)
    for names, rows in (("offset size table lives", seen), ("action reward ended", played)):
        for name, column in zip(names.split(), zip(*rows, strict=True), strict=False):
            found[name] = column[: len(found)]
    return found.tobytes()


def _checked(action: int, lane: Lane) -> int:
    try:
        number = operator.index(action)  # also of NumPy's and torch's scalars
    except TypeError:
        number = -1
    if not 0 <= number < len(lane.actions):
        raise UserError(f"the policy returned {action!r}; the game has actions 0 to {len(lane.actions) - 1}")
    return number


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the collector terminates its workers
    job = json.loads(sys.argv[1])
    config = from_dict(StoreConfig, job["config"])
    try:
        for line in sys.stdin:
            play_lane(config, int(line), Path(job["directory"]), None, lambda rows: print(rows, flush=True))
            print("done", flush=True)
    except BrokenPipeError:
        os._exit(1)  # the collector is gone, so nobody will use this lane
    except OSError as error:
        print(f"error {error.errno} {error.strerror}", flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
