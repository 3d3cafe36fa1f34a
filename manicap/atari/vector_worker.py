"""Plays some environments of a vector environment, in this process or in one of its own.

`python -m manicap.atari.vector_worker '<json>'` reads commands from standard input, one byte each (`r`: reset, `s`:
step), and answers each with one byte once the shared memory holds the outcome.
"""

import json
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from manicap.atari.emulator import Lane
from manicap.atari.games import find_game
from manicap.atari.palette import RGB, gray_maximum
from manicap.atari.vector_memory import GAME_OVER, GOES_ON, LIFE_LOST, TRUNCATED, VectorMemory
from manicap.core.config import from_dict, to_dict
from manicap.play.pictures import resize_by_area
from manicap.play.views import Bytes, View

RESET, STEP, DONE = b"r", b"s", b"."
PURPOSE = "vector"
"""Lanes of a vector environment have random streams of their own."""


@dataclass(frozen=True)
class VectorJob:
    """What is played, and how it is shown."""

    game: str
    num_envs: int
    view: View
    episodic_life: bool

    def to_json(self, handle: int, lanes: Iterable[int]) -> str:
        return json.dumps({"job": to_dict(self), "handle": handle, "lanes": list(lanes)})


class VectorPlayers:
    """The lanes of some environments; every call writes its outcome into the memory."""

    def __init__(self, job: VectorJob, memory: VectorMemory, lanes: Iterable[int]) -> None:
        self.job, self.memory, self._indices = job, memory, tuple(lanes)
        self._lanes: dict[int, Lane] = {}

    def reset(self) -> None:
        """Start a new game in every lane."""
        memory, seed = self.memory, int(self.memory.seed[0])
        for index in self._indices:
            if seed >= 0:
                game = find_game(self.job.game)
                self._lanes[index] = Lane(game, seed, index, PURPOSE, self.job.episodic_life)
            lane = self._lanes[index]
            lane.reset()
            memory.rewards[index], memory.endings[index] = 0, GOES_ON
            self._show_first(index, lane)

    def step(self) -> None:
        """One step in every lane. After the end of an episode the observation is already the next one's first."""
        memory = self.memory
        for index in self._indices:
            lane, seen = self._lanes[index], memory.observations[index]
            ended = lane.step(int(memory.actions[index]))
            memory.rewards[index] = lane.reward
            if not ended:
                memory.endings[index] = GOES_ON
                self._push(seen, lane.screens)
                memory.ram[index], memory.lives[index] = lane.ram, lane.lives
                continue
            memory.endings[index] = TRUNCATED if lane.truncated else GAME_OVER if lane.game_over else LIFE_LOST
            self._push(seen, lane.screens_at_end)
            memory.final_observations[index], memory.final_ram[index] = seen, lane.ram_at_end
            self._show_first(index, lane)

    def _show_first(self, index: int, lane: Lane) -> None:
        """The first frame of an episode fills the stack."""
        seen = self.memory.observations[index]
        seen.reshape(self.job.view.stack, -1, *seen.shape[1:])[:] = self._picture(lane.screens)
        self.memory.ram[index], self.memory.lives[index] = lane.ram, lane.lives

    def _push(self, seen: Bytes, screens: Bytes) -> None:
        """Show one frame more, the last of the stack."""
        picture = self._picture(screens)
        if len(seen) > len(picture):
            seen[: -len(picture)] = seen[len(picture) :]
        seen[-len(picture) :] = picture

    def _picture(self, screens: Bytes) -> Bytes:
        """[C, H, W] of a step."""
        view = self.job.view
        frame = RGB[screens].max(0).transpose(2, 0, 1) if view.colour else gray_maximum(screens)[None]
        return frame if view.size is None else resize_by_area(np.ascontiguousarray(frame), *view.size)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the owner ends its workers
    told = json.loads(sys.argv[1])
    job = from_dict(VectorJob, told["job"])
    players = VectorPlayers(job, VectorMemory.on(told["handle"], job.num_envs, job.view.shape), told["lanes"])
    calls = {RESET: players.reset, STEP: players.step}
    while command := os.read(0, 1):  # empty once the owner is gone
        calls[command]()
        os.write(1, DONE)


if __name__ == "__main__":
    main()
