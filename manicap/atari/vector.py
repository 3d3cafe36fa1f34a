"""Many games side by side, with the state variables of all of them at every step.

    envs = manicap.make_vec("pong", num_envs=8)
    observations, info = envs.reset(seed=0)
    observations, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
    info["labels"]["ball_x"]        # uint8 [8]

Games are played in several processes, because ALE holds Python's lock while it plays; observations and RAM are in
memory that the processes share. (ale-py's own `AtariVectorEnv` plays in threads, without the lock, but gives no RAM.)

Autoreset is `SAME_STEP`: on the step that ends an episode, the observation and `info["labels"]` are already those of
the next episode's first frame. Those of the last frame are in `info["final_obs"]` and `info["final_info"]["labels"]`.
"""

import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from manicap.atari.annotations import annotations, labels
from manicap.atari.emulator import open_ale
from manicap.atari.games import find_game
from manicap.atari.vector_memory import GAME_OVER, GOES_ON, TRUNCATED, VectorMemory, anonymous_file
from manicap.atari.vector_worker import DONE, RESET, STEP, VectorJob, VectorPlayers
from manicap.core.config import checked
from manicap.core.errors import Failure, UserError
from manicap.core.ranges import Lanes, Threads
from manicap.play.views import Side, Stack, View

Bytes = NDArray[np.uint8]


@checked
def make_vec(
    game: str,
    num_envs: Lanes = 8,
    *,
    colour: bool = False,
    stack: Stack = 1,
    size: tuple[Side, Side] | None = None,
    episodic_life: bool = True,
    clip_rewards: bool = False,
    annotation_set: str = "corrected",
    variables: Sequence[str] | None = None,
    num_workers: Threads | None = None,
) -> "AtariVector":
    """Make a gymnasium vector environment of one game, with the state variables in `info["labels"]`.

        envs = manicap.make_vec("pong", num_envs=8)
        observations, info = envs.reset(seed=0)              # uint8 [8, 1, 210, 160]
        info["labels"]["ball_x"]                             # uint8 [8]

    A step is four raw frames; the observation is the maximum of the last two. No sticky actions. A new game begins with
    1 to 30 no-op frames, and every life by pressing fire where the game has it: what AtariARI and agents' wrappers do.

    Args:
        game: Game, under any of its usual names.
        num_envs: Number of environments.
        colour: Red, green and blue instead of gray.
        stack: Show the last frames, this many, oldest first, as channels; the first frame of an episode is repeated.
        size: Height and width to shrink frames to, by area. Most agents see `stack=4, size=(84, 84)`.
        episodic_life: Whether a lost life ends an episode. `info["episode"]` counts whole games either way.
        clip_rewards: Give the sign of rewards. `info["episode"]` counts them unclipped either way.
        annotation_set: `ari-2019`, `ari-2020` or `corrected`.
        variables: The state variables to give; all if omitted.
        num_workers: Processes that play, of which this one is the first; one per core if omitted. More than that cost
            a tenth of the speed on an idle machine and even out the load of a busy one.
    """
    entry = find_game(game)
    known = [variable.name for variable in annotations(entry, annotation_set)]
    names = tuple(known if variables is None else [variables] if isinstance(variables, str) else variables)
    labels(np.zeros((1, 128), np.uint8), entry, annotation_set, names)  # report an unknown variable now
    job = VectorJob(entry.name, num_envs, View(colour, stack, size), episodic_life)
    workers = min(num_envs, num_workers or os.cpu_count() or 1)
    return AtariVector(job, annotation_set, names, clip_rewards, workers)


class AtariVector(VectorEnv[Bytes, NDArray[Any], NDArray[Any]]):
    """What `make_vec` returns: a `gymnasium.vector.VectorEnv` with autoreset in the same step."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - gymnasium's declaration

    def __init__(
        self, job: VectorJob, annotation_set: str, variables: tuple[str, ...], clip_rewards: bool, num_workers: int
    ) -> None:
        self.job, self.game, self.num_envs = job, find_game(job.game), job.num_envs
        self.annotation_set, self.variables, self.clip_rewards = annotation_set, variables, clip_rewards
        self.action_names = [action.name for action in open_ale(self.game, 0).getMinimalActionSet()]
        """The minimal action set of the game, in the order of actions."""
        self.single_observation_space = gymnasium.spaces.Box(0, 255, job.view.shape, np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(len(self.action_names))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._returns, self._lengths = np.zeros(self.num_envs), np.zeros(self.num_envs, np.int64)
        self._was_reset = False
        handle = anonymous_file()
        try:
            self._memory = VectorMemory.on(handle, self.num_envs, job.view.shape)
            own, *shares = (range(first, self.num_envs, num_workers) for first in range(num_workers))
            self._workers = [_start_worker(job, handle, share) for share in shares]
        finally:
            os.close(handle)
        # This process would only wait: it plays its share, which saves waking up one more.
        self._own = VectorPlayers(job, self._memory, own)
        self._end = weakref.finalize(self, _end_workers, self._workers)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Bytes, dict[str, Any]]:
        """Start new games. With a seed, environment i plays the random stream (seed, i); `options` are not used."""
        self._require_open()
        super().reset(seed=seed)
        if seed is None and not self._was_reset:
            seed = int(self.np_random.integers(2**31))
        self._memory.seed[0] = -1 if seed is None else seed
        with self._closed_by_interrupts():
            self._command(RESET)
            self._was_reset = True
            self._returns[:], self._lengths[:] = 0, 0
            return self._memory.observations.copy(), self._info(self._memory.ram)

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Bytes, NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        self._require_open()
        if not self._was_reset:
            raise UserError("call reset() before the first step()")
        memory, chosen = self._memory, self._checked_actions(actions)
        with self._closed_by_interrupts():
            memory.actions[:] = chosen
            self._command(STEP)
            rewards, endings = memory.rewards.astype(np.float64), memory.endings.copy()
            info = self._info(memory.ram)
            self._returns += rewards
            self._lengths += 1
            if (endings != GOES_ON).any():
                info |= self._ended(endings)
            if self.clip_rewards:
                rewards = np.sign(rewards)
            truncated = endings == TRUNCATED
            return memory.observations.copy(), rewards, (endings != GOES_ON) & ~truncated, truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        self._end()

    def _info(self, ram: Bytes) -> dict[str, Any]:
        return {
            "labels": labels(ram.copy(), self.game, self.annotation_set, self.variables),
            "lives": self._memory.lives.copy(),
        }

    def _ended(self, endings: NDArray[np.int64]) -> dict[str, Any]:
        """The last frames of the episodes that ended, with their labels, and the returns of the games that did."""
        ended, games = endings != GOES_ON, endings >= GAME_OVER
        observations = np.full(self.num_envs, None, object)
        for index in np.flatnonzero(ended):
            observations[index] = self._memory.final_observations[index].copy()
        last = labels(self._memory.final_ram.copy(), self.game, self.annotation_set, self.variables)
        found = {
            "final_obs": observations,
            "_final_obs": ended,
            "final_info": {"labels": last, "_labels": ended},
            "_final_info": ended,
        }
        if games.any():
            found["episode"] = {"r": np.where(games, self._returns, 0), "l": np.where(games, self._lengths, 0)}
            found["_episode"] = games
            self._returns[games], self._lengths[games] = 0, 0
        return found

    def _checked_actions(self, actions: NDArray[Any]) -> NDArray[np.int64]:
        given, count = np.asarray(actions), len(self.action_names)
        if given.shape != (self.num_envs,) or not np.issubdtype(given.dtype, np.integer):
            raise UserError(f"step needs {self.num_envs} integer actions, got {given.dtype} {list(given.shape)}")
        if given.min() < 0 or given.max() >= count:
            raise UserError(f"{self.game.name} has actions 0 to {count - 1}, got {given.tolist()}")
        return given

    @contextmanager
    def _closed_by_interrupts(self) -> Iterator[None]:
        """Some lanes have played and others not, some answers are unread: what came next would be wrong."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _command(self, command: bytes) -> None:
        """Have all lanes do one thing, at once."""
        for worker in self._workers:
            _write(worker, command)
        (self._own.reset if command == RESET else self._own.step)()
        for number, worker in enumerate(self._workers, start=1):
            assert worker.stdout is not None
            if os.read(worker.stdout.fileno(), 1) != DONE:
                code = worker.wait()
                cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
                raise Failure(f"process {number} of the environments of {self.game.name} {cause}; make them again")

    def _require_open(self) -> None:
        if self.closed:
            raise UserError(
                "the environments are closed, by close() or by an interrupt; make them again with manicap.make_vec"
            )


def _start_worker(job: VectorJob, handle: int, lanes: range) -> subprocess.Popen[bytes]:
    # A process of its own rather than a fork or `multiprocessing`: a user's script is not imported again, and torch's
    # threads are not copied. -P: a file of the user's that is named like a module must not be imported.
    command = [sys.executable, "-P", "-m", "manicap.atari.vector_worker", job.to_json(handle, lanes)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, pass_fds=[handle], env=one_thread)


def _write(worker: subprocess.Popen[bytes], command: bytes) -> None:
    assert worker.stdin is not None
    try:
        os.write(worker.stdin.fileno(), command)
    except BrokenPipeError:
        return  # its answer is missing, which is reported


def _end_workers(workers: list[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                stream.close()
