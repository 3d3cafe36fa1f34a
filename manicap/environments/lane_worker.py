"""Plays lanes, each into its own files, which the recording process joins.

`python -m manicap.environments.lane_worker '<json>'`; see `manicap.play.workers` for its input and output. Rows are
written in blocks, so memory does not grow with the number of steps.
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from manicap.core.config import from_dict
from manicap.core.errors import UserError
from manicap.core.files import write_json
from manicap.core.registry import allow_plugins
from manicap.environments.config import RecordConfig
from manicap.environments.labels import LabelEncoder
from manicap.environments.layout import Layout
from manicap.environments.making import NONE_OWN, OwnFunctions
from manicap.environments.player import CUT, Played, Player
from manicap.environments.store import EPISODE, STEP
from manicap.play.codec import compressor

BLOCK_ROWS = 128
"""Rows written and reported at a time."""
PARTS = ("frames", "steps", "actions", "labels", "episodes")


def finished_path(directory: Path, lane: int) -> Path:
    """A file that exists once a lane is complete: sizes of its parts, and names of the classes that occurred."""
    return directory / f"finished-{lane}.json"


def play_lane(
    config: RecordConfig, layout: Layout, lane: int, directory: Path, own: OwnFunctions, report: Callable[[int], None]
) -> None:
    """Write `frames-<lane>`, `steps-<lane>`, ... and then `finished-<lane>.json`. Offsets are relative to the lane."""
    num_steps, encoder, starts = config.lane_steps(lane), LabelEncoder(layout.columns), [0]
    with LaneFiles(directory, lane, layout) as files, Player(config, lane, own) as player:
        nothing = Played(np.zeros(layout.action_shape), 0.0, CUT)
        for row in range(num_steps):
            frame, place = player.frame(), player.place
            if frame.shape != layout.frame_shape:
                raise UserError(
                    f"the frame of {config.env} is {list(frame.shape)} {place}, and was {list(layout.frame_shape)} at"
                    " the first step: give one size for all (frame_size, --frame-size 84 84)"
                )
            compressed = files.compress(frame)  # the environment may draw the next frame into the same array
            labels = encoder.encode(player.labels(), place)
            played = player.play() if row < num_steps - 1 else nothing
            files.add(compressed, labels, played)
            if played.ended and played is not nothing:
                starts.append(row + 1)
            if files.num_waiting == BLOCK_ROWS or row == num_steps - 1:
                report(files.flush())
        files.finish(starts, config.lane_start(lane), encoder)


class LaneFiles(contextlib.ExitStack):
    """The files of a lane, to which rows are appended."""

    def __init__(self, directory: Path, lane: int, layout: Layout) -> None:
        super().__init__()
        self._directory, self._lane, self._num_rows = directory, lane, 0
        paths = [directory / f"{part}-{lane}" for part in PARTS]
        for path in paths:
            path.unlink(missing_ok=True)  # the worker of a killed recorder may still write to a file of this name
        self._files = [self.enter_context(path.open("wb")) for path in paths]
        self.compress, self._offset, self.num_waiting = compressor(), 0, 0
        action = np.dtype((layout.action_type or "<i8", layout.action_shape))
        self._steps = np.empty(BLOCK_ROWS, STEP)
        self._actions = np.zeros(BLOCK_ROWS, action)
        self._labels = np.empty(BLOCK_ROWS, layout.label_dtype)

    def add(self, compressed: bytes, labels: tuple[float, ...], played: Played) -> None:
        row = self.num_waiting
        self._files[0].write(compressed)
        self._steps[row] = (self._offset, len(compressed), played.reward, played.ended)
        self._actions[row] = np.ravel(played.action) if self._actions.ndim > 1 else played.action
        if labels:
            self._labels[row] = labels
        self._offset += len(compressed)
        self.num_waiting += 1

    def flush(self) -> int:
        """Write the waiting rows; return their number."""
        count, self.num_waiting = self.num_waiting, 0
        for file, rows in zip(self._files[1:4], (self._steps, self._actions, self._labels), strict=True):
            file.write(rows[:count].tobytes())
        self._num_rows += count
        return count

    def finish(self, starts: Sequence[int], first_row: int, encoder: LabelEncoder) -> None:
        """Write the episodes, which start at these rows, and mark the lane as finished once everything is on disk."""
        episodes = np.empty(len(starts), EPISODE)
        episodes["lane"], episodes["start"] = self._lane, first_row + np.asarray(starts)
        episodes["length"] = np.diff([*starts, self._num_rows])
        self._files[4].write(episodes.tobytes())
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        sizes = {part: file.tell() for part, file in zip(PARTS, self._files, strict=True)}
        classes = {name: list(known) for name, known in encoder.classes.items()}
        write_json(finished_path(self._directory, self._lane), {"sizes": sizes, "classes": classes})


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the recorder terminates its workers
    # What an environment prints goes to the error stream, so that it is not mistaken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = json.loads(sys.argv[1])
    sys.path += [folder for folder in job["path"] if folder not in sys.path]
    allow_plugins(job["plugins"])
    config, layout = from_dict(RecordConfig, job["config"]), Layout.from_dict(job["layout"])
    try:
        for line in sys.stdin:
            directory = Path(job["directory"])
            play_lane(config, layout, int(line), directory, NONE_OWN, lambda rows: print(rows, file=answers))
            print("done", file=answers)
    except BrokenPipeError:
        os._exit(1)  # the recorder is gone, so nobody will use this lane
    except UserError as error:
        print(f"mistake {json.dumps(str(error))}", file=answers)
        sys.exit(1)
    except OSError as error:
        print(f"error {error.errno} {error.strerror}", file=answers)
        sys.exit(1)


if __name__ == "__main__":
    main()
