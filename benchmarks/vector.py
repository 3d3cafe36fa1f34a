"""Speed of `manicap.make_vec` beside ale-py's own vector environment (no labels) and gymnasium's, within one run.

    python benchmarks/vector.py [--games pong breakout] [--steps 1500] [--num-envs 8] [--rounds 5]

All play four raw frames per step and show the maximum of the last two, in gray. ale-py plays in threads, as many as
there are cores; `make_vec` in its default number of processes; gymnasium's `AsyncVectorEnv` in a process for each
environment, with `manicap.AtariARI` around each (without lives as episodes, and without no-ops and fire at resets).
Each is measured in turn, round by round. CPU time is that of all its processes and threads (Linux only): unlike steps
per second, it does not depend on what else the machine does.
"""

import functools
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ale_py
import gymnasium
import numpy as np
import tyro
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.wrappers import FrameStackObservation, MaxAndSkipObservation, TransformObservation

import manicap
from manicap.atari.games import find_game
from manicap.play.pictures import resize_by_area

VIEWS = {"210 x 160": (1, (210, 160)), "84 x 84, stack of 4": (4, (84, 84))}
Size = tuple[int, int]


@dataclass(frozen=True)
class Options:
    games: tuple[str, ...] = ("pong", "breakout")
    steps: int = 1500
    """Calls of `step` per measurement, each of all environments."""
    num_envs: int = 8
    rounds: int = 5


def make_ours(game: str, num_envs: int, stack: int, size: Size) -> Any:
    return manicap.make_vec(game, num_envs, stack=stack, size=None if size == (210, 160) else size)


def make_ale(game: str, num_envs: int, stack: int, size: Size) -> Any:
    height, width = size
    return AtariVectorEnv(
        game,
        num_envs,
        img_height=height,
        img_width=width,
        stack_num=stack,
        episodic_life=True,
        reward_clipping=False,
        autoreset_mode=AutoresetMode.SAME_STEP,
        num_threads=os.cpu_count() or 1,
    )


def make_single(game: str, stack: int, size: Size) -> Any:
    """One environment of gymnasium's, with labels."""
    gymnasium.register_envs(ale_py)
    name = f"ALE/{find_game(game).title.replace(' ', '')}-v5"
    env: Any = gymnasium.make(name, obs_type="grayscale", frameskip=1, repeat_action_probability=0)
    env = MaxAndSkipObservation(env, 4)
    if size != (210, 160):
        space = gymnasium.spaces.Box(0, 255, size, np.uint8)
        env = TransformObservation(env, functools.partial(resize_by_area, height=size[0], width=size[1]), space)
    return manicap.AtariARI(FrameStackObservation(env, stack))


def make_plain(game: str, num_envs: int, stack: int, size: Size) -> Any:
    return AsyncVectorEnv([functools.partial(make_single, game, stack, size)] * num_envs)


MAKERS: dict[str, Callable[[str, int, int, Size], Any]] = {
    "make_vec": make_ours,
    "ale-py, no labels": make_ale,
    "AsyncVectorEnv + AtariARI": make_plain,
}


def cpu_seconds() -> float:
    """Of this process and its children, so far."""
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    ticks = 0
    for pid in ("self", *children):
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(after_name[11]) + int(after_name[12])  # in user and in system mode
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(envs: Any, actions: Any) -> tuple[float, float]:
    """Steps per second of all environments together, and microseconds of CPU per step."""
    start, cpu_start = time.perf_counter(), cpu_seconds()
    for step in actions:
        envs.step(step)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu_start
    return actions.size / seconds, 1e6 * cpu / actions.size


def compare(game: str, view: str, options: Options) -> None:
    stack, size = VIEWS[view]
    envs = {name: make(game, options.num_envs, stack, size) for name, make in MAKERS.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in envs}
    rng = np.random.default_rng(0)
    for each in envs.values():
        each.reset(seed=0)
    count = int(envs["make_vec"].single_action_space.n)
    for _ in range(options.rounds):
        actions = rng.integers(0, count, (options.steps, options.num_envs))
        for name, each in envs.items():  # in turn: what else the machine does changes by the minute
            found[name].append(measure(each, actions))
    for each in envs.values():
        each.close()
    print(f"{game}, {view}, {options.num_envs} environments (medians of {options.rounds} rounds):")
    for name, measured in found.items():
        rate, cpu = (statistics.median(column) for column in zip(*measured, strict=True))
        speeds = [ours[0] / other[0] for ours, other in zip(found["make_vec"], measured, strict=True)]
        costs = [other[1] / ours[1] for ours, other in zip(found["make_vec"], measured, strict=True)]
        ratios = (
            f"; make_vec is {statistics.median(speeds):.2f} of it [{min(speeds):.2f}, {max(speeds):.2f}],"
            f" by CPU time {statistics.median(costs):.2f} [{min(costs):.2f}, {max(costs):.2f}]"
        )
        target = "  (target: 0.8)" if name.startswith("ale-py") else ""
        shown = "" if name == "make_vec" else ratios
        print(f"  {name:26} {rate:6.0f} steps/s, {cpu:4.0f} us of CPU per step{shown}{target}", flush=True)


def main(options: Options) -> None:
    for game in options.games:
        for view in VIEWS:
            compare(game, view, options)


if __name__ == "__main__":
    main(tyro.cli(Options))
