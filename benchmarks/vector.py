"""Speed of `manicap.make_vec` beside ale-py's own vector environment (no labels) and gymnasium's, within one run.

    python benchmarks/vector.py [--games pong breakout] [--steps 1500] [--num-envs 8] [--rounds 5]

All play four raw frames per step and show the maximum of the last two, in gray. ale-py plays in threads, as many as
there are cores; `make_vec` in its default number of processes; gymnasium's `AsyncVectorEnv` in a process for each
environment, with `manicap.AtariARI` around each (without lives as episodes, and without no-ops and fire at resets).
Each is measured in turn, round by round.
"""

import functools
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
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


def rate(envs: Any, actions: Any) -> float:
    """Steps per second of all environments together."""
    start = time.perf_counter()
    for step in actions:
        envs.step(step)
    return actions.size / (time.perf_counter() - start)


def compare(game: str, view: str, options: Options) -> None:
    stack, size = VIEWS[view]
    envs = {name: make(game, options.num_envs, stack, size) for name, make in MAKERS.items()}
    rates: dict[str, list[float]] = {name: [] for name in envs}
    rng = np.random.default_rng(0)
    for each in envs.values():
        each.reset(seed=0)
    count = int(envs["make_vec"].single_action_space.n)
    for _ in range(options.rounds):
        actions = rng.integers(0, count, (options.steps, options.num_envs))
        for name, each in envs.items():  # in turn: what else the machine does changes by the minute
            rates[name].append(rate(each, actions))
    for each in envs.values():
        each.close()
    print(f"{game}, {view}, {options.num_envs} environments, steps per second (median of {options.rounds}):")
    for name, found in rates.items():
        ratios = [ours / other for ours, other in zip(rates["make_vec"], found, strict=True)]
        against = "" if name == "make_vec" else f"; make_vec is {statistics.median(ratios):.2f} of it"
        target = "  (target: 0.8)" if name.startswith("ale-py") else ""
        spread = f" [{min(ratios):.2f}, {max(ratios):.2f}]" if against else ""
        print(f"  {name:26} {statistics.median(found):6.0f}{against}{spread}{target}", flush=True)


def main(options: Options) -> None:
    for game in options.games:
        for view in VIEWS:
            compare(game, view, options)


if __name__ == "__main__":
    main(tyro.cli(Options))
