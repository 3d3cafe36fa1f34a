"""Does a pretrained encoder help an agent? PPO on frozen features, beside SB3's CnnPolicy that learns from pixels.

    python examples/rl.py --games pong freeway breakout --seeds 0 1 2 --steps 100000

Trains the encoders that are missing (preset quick), then one agent after the other: all methods of a game, all games of
a seed, seed by seed. Every finished agent is a small JSON file in `--results-dir`; rerun the command to resume. Results
of other settings are refused: give them another directory. Prints the table of what is finished.
`docs/scripts/rl.py` draws the curves.

Agents of one game differ only in what they see:

    scratch      four frames of 84 x 84, by SB3's CnnPolicy (NatureCNN), trained with the agent
    untrained    four frames of 210 x 160 through the untrained network of dim-c+, frozen
    dim-c+, ...  the same through the trained network
    dim-c+@output    the same behind the coherence filter; any method and layer can be named in this way

Frozen features are those of `--layer`, projected from 3,456 to `--width` by one random orthogonal map, standardised on
frames of random play; the agent is SB3's MlpPolicy (64, 64) on those of the last four frames.

One process and one thread per agent: seconds are CPU seconds, so that other work on the machine does not count.
"""

import json
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
import tyro
from scipy import stats
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import manicap.rl
from manicap.core.files import write_json
from manicap.train.finished import FinishedRun

SCRATCH, UNTRAINED, NETWORK = "scratch", "untrained", "dim-c+"
TAIL = 0.2
"""Share of the steps, the last ones, whose finished games count as the result."""
PPO_SETTINGS = {"n_steps": 128, "batch_size": 256, "n_epochs": 4, "vf_coef": 0.5, "ent_coef": 0.01}
"""Those of rl-baselines3-zoo for Atari, as are 8 environments."""
SETTINGS = ("num_envs", "layer", "width", "max_steps", "collect_steps")
"""What an agent depends on besides what the name of its file says."""
PIXEL_RATES, FEATURE_RATES = (2.5e-4, 0.1), (1e-3, 0.2)
"""Learning rate and clip range at the beginning; both fall linearly to 0. From pixels, those of rl-baselines3-zoo. A
small network on features hardly moves with them (approx_kl 0.0005 on Pong, untrained encoder); with these it does
(0.015)."""


@dataclass(frozen=True)
class Options:
    games: tuple[str, ...] = ("pong", "freeway", "breakout")
    methods: tuple[str, ...] = (UNTRAINED, NETWORK, SCRATCH, "st-dim", f"{NETWORK}@output")
    """`scratch`, `untrained`, or methods to pretrain, with `@` and a layer if it is not `--layer`."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Of the agents. Encoders are trained once, with seed 0."""
    steps: int = 100_000
    """Steps of an agent, of four raw frames each."""
    num_envs: int = 8
    layer: str = "backbone"
    """`backbone` is of one width for all methods and before the coherence filter; `output` is what comes out of it."""
    width: int = 512
    max_steps: int | None = None
    """Training steps of an encoder; the preset's if omitted."""
    collect_steps: int = 20_000
    runs_dir: Path = Path("runs")
    data_dir: Path = Path("data")
    results_dir: Path = Path("results/rl")
    max_minutes: float | None = None
    """Begin no agent after so many minutes; rerun to resume."""


class Games(BaseCallback):
    """Notes every finished game: steps of the agent, CPU seconds, unclipped return."""

    def __init__(self) -> None:
        super().__init__()
        self.finished: list[tuple[int, float, float]] = []
        self._start = time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self._start

    def _on_training_start(self) -> None:
        self._start = time.process_time()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.finished.append((self.num_timesteps, round(self.seconds, 2), info["episode"]["r"]))
        return True


def encoder_of(game: str, method: str, options: Options) -> tuple[Any, Any]:
    """The encoder, trained unless it is on disk, and the frames of random play that it was trained on."""
    name, _, own_layer = method.partition("@")
    trained, layer = NETWORK if name == UNTRAINED else name, own_layer or options.layer
    budget = {} if options.max_steps is None else {"max_steps": options.max_steps}
    run = manicap.pretrain(
        trained,
        game=game,
        collect_steps=options.collect_steps,
        runs_dir=options.runs_dir,
        data_dir=options.data_dir,
        **budget,
    )
    store = manicap.collect(manicap.StoreConfig(game, options.collect_steps), options.data_dir, quiet=True)
    finished = FinishedRun(run)
    return finished.untrained(layer) if name == UNTRAINED else finished.encoder(layer), store


def make_agent(game: str, method: str, seed: int, options: Options) -> PPO:
    shared = {"num_envs": options.num_envs, "stack": 4, "num_workers": 1}
    if method == SCRATCH:
        policy, envs = "CnnPolicy", manicap.rl.make_env(game, size=(84, 84), **shared)
    else:
        encoder, store = encoder_of(game, method, options)
        seen = manicap.rl.feature_map(encoder, width=options.width, standardise=store)
        policy, envs = "MlpPolicy", manicap.rl.make_env(game, seen, **shared)
    rate, clip = PIXEL_RATES if method == SCRATCH else FEATURE_RATES
    schedules = {"learning_rate": lambda left: left * rate, "clip_range": lambda left: left * clip}
    return PPO(policy, envs, seed=seed, device="cpu", **PPO_SETTINGS, **schedules)


def train_agent(game: str, method: str, seed: int, options: Options) -> dict[str, Any]:
    torch.set_num_threads(1)
    agent, games = make_agent(game, method, seed, options), Games()
    agent.learn(options.steps, callback=games)
    agent.get_env().close()
    return {
        "game": game,
        "method": method,
        "seed": seed,
        "steps": agent.num_timesteps,
        "seconds": round(games.seconds, 1),
        "games": games.finished,
        "options": {key: asdict(options)[key] for key in SETTINGS},
    }


def require_settings(path: Path, method: str, options: Options) -> None:
    """End the script if a finished agent was trained with other settings."""
    found = asdict(Options()) | json.loads(path.read_text())["options"]  # earlier files lack collect_steps: the default
    named_layer = ("layer",) if "@" in method else ()
    for key in ("num_envs",) if method == SCRATCH else (key for key in SETTINGS if key not in named_layer):
        if found[key] != getattr(options, key):
            flag, asked = key.replace("_", "-"), getattr(options, key)
            raise SystemExit(f"{path} was trained with --{flag} {found[key]}, not {asked}; use another --results-dir")


def final_return(result: dict[str, Any]) -> float | None:
    """Mean return of the games that finished in the last part of the training; None if none did."""
    found = [value for step, _, value in result["games"] if step > (1 - TAIL) * result["steps"]]
    return sum(found) / len(found) if found else None


def interval(values: list[float]) -> str:
    """Mean and 95 % interval of Student's t over seeds; one seed has no interval."""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.1f}"
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)  # stats.t.interval is NaN if all are equal
    return f"{mean:.1f} [{mean - half:.1f}, {mean + half:.1f}]"


def print_table(results: list[dict[str, Any]]) -> None:
    print("| game | agent | steps | return | of each seed | steps per CPU second |\n|---|---|---|---|---|---|")
    cells = dict.fromkeys((each["game"], each["method"], each["steps"]) for each in results)
    for game, method, steps in cells:
        own = [each for each in results if (each["game"], each["method"], each["steps"]) == (game, method, steps)]
        known = [value for value in map(final_return, own) if value is not None]
        rate = sum(each["steps"] for each in own) / sum(each["seconds"] for each in own)
        points, shown = ", ".join(f"{value:.1f}" for value in known), interval(known) if known else "no game finished"
        print(f"| {game} | {method} | {steps:,} | {shown} | {points} | {rate:.0f} |")


def main(options: Options) -> None:
    results, start = [], time.monotonic()
    agents = {
        options.results_dir / f"{game}-{method}-s{seed}-{options.steps}.json": (game, method, seed)
        for seed, game, method in product(options.seeds, options.games, options.methods)
    }
    for path, (_, method, _) in agents.items():
        if path.exists():
            require_settings(path, method, options)
    for path, agent in agents.items():
        if not path.exists():
            if options.max_minutes is not None and time.monotonic() - start > 60 * options.max_minutes:
                continue
            write_json(path, train_agent(*agent, options))
            print(f"{path} is finished", flush=True)
        results.append(json.loads(path.read_text()))
    print_table(results)


if __name__ == "__main__":
    main(tyro.cli(Options))
