"""Measure annotations in the emulator: does a variable vary in play, and does its byte reach the screen?

A byte that can be written without a trace on the screen is a copy, a scratch byte or a mistake; one that never varies
cannot be learned. Neither proves an annotation wrong: a game may redraw a digit only when the score changes, or reset
a paddle's position from the joystick before it draws.
"""

from dataclasses import dataclass

import numpy as np
from ale_py import Action, ALEInterface

from manicap.atari.annotations import Variable, annotations
from manicap.atari.emulator import RAM_SIZE, Bytes, Lane
from manicap.atari.games import Game
from manicap.core.errors import UserError
from manicap.play.splits import entropy

PROBE_FRAMES = 2
"""Two, because many games draw an object only in every other frame."""
MAX_STEPS = 1_000_000
"""A day of play; 128 MB of RAM states."""
PROBE_OFFSETS = (1, 16, 128)
"""What is added to the byte, modulo 256: a step, a high digit, half the range."""


@dataclass(frozen=True)
class VariableReport:
    """What was measured for one variable."""

    variable: Variable
    num_values: int
    """Distinct labels in play."""
    entropy: float
    """Entropy of the labels in play, in nats; the benchmark drops labels below 0.6."""
    num_writes: int
    """How many times one of its bytes was overwritten."""
    changed_fraction: float
    """The fraction of writes that changed the screen within the next two frames."""
    changed_pixels: float
    """Median number of pixels changed, over the writes that changed any; 0 if none did."""

    @property
    def varies(self) -> bool:
        return self.num_values > 1


def verify_game(
    game: Game, set_name: str, steps: int = 1000, num_points: int = 10, seed: int = 0
) -> list[VariableReport]:
    """Play `steps` random steps; at `num_points` evenly spaced points, overwrite each byte and compare screens."""
    if not 1 <= steps <= MAX_STEPS or num_points < 1 or seed < 0:
        raise UserError(
            f"steps must be between 1 and {MAX_STEPS:,}, num_points positive and seed not negative, got steps {steps},"
            f" num_points {num_points} and seed {seed}"
        )
    num_points = min(num_points, steps)
    variables = annotations(game, set_name)
    addresses = sorted({address for variable in variables for address in variable.addresses})
    pixels: dict[int, list[int]] = {address: [] for address in addresses}
    points = {(point + 1) * steps // num_points - 1 for point in range(num_points)}

    lane = Lane(game, seed, lane=0, purpose="verify")
    lane.reset()
    ram = np.empty((steps, RAM_SIZE), np.uint8)
    for step in range(steps):
        lane.step(lane.random_action())
        ram[step] = lane.ram
        if step in points:
            for address, counts in count_changed_pixels(lane.ale, addresses).items():
                pixels[address] += counts
    return [_report(variable, variable.labels(ram), pixels) for variable in variables]


def count_changed_pixels(ale: ALEInterface, addresses: list[int]) -> dict[int, list[int]]:
    """For each byte and each value written into it: the largest number of pixels that differ in one of the next frames.

    Every comparison starts from the emulator's current state, and the emulator is left in that state.
    """
    state, ram = ale.cloneState(), ale.getRAM()
    expected = _next_screens(ale)
    changed: dict[int, list[int]] = {address: [] for address in addresses}
    for address in addresses:
        for offset in PROBE_OFFSETS:
            ale.restoreState(state)
            ale.setRAM(address, (int(ram[address]) + offset) % 256)
            changed[address].append(int((_next_screens(ale) != expected).sum(axis=(1, 2)).max()))
    ale.restoreState(state)
    return changed


def _report(variable: Variable, labels: Bytes, pixels: dict[int, list[int]]) -> VariableReport:
    changed = np.array([count for address in variable.addresses for count in pixels[address]])
    visible = changed[changed > 0]
    return VariableReport(
        variable=variable,
        num_values=len(np.unique(labels)),
        entropy=entropy(labels),
        num_writes=len(changed),
        changed_fraction=float((changed > 0).mean()),
        changed_pixels=float(np.median(visible)) if len(visible) else 0.0,
    )


def _next_screens(ale: ALEInterface) -> Bytes:
    screens = []
    for _ in range(PROBE_FRAMES):
        ale.act(Action.NOOP)
        screens.append(ale.getScreenGrayscale())
    return np.stack(screens)
