"""Multiplications, accuracy and time of ways to compute the polar factor: the `polar` route of the nuclear norm.

    python benchmarks/polar.py [--rows 64] [--columns 512] [--repeats 5]

Accuracy is the error of the factor along the matrix's own singular directions (root of the mean square), relative to an
SVD in float64. bfloat16 is emulated: every factor and every result of a multiplication is rounded to it, sums are
float32, as tensor cores compute. Time is the process's CPU time with one thread, in float32, the best of the repeats;
on a GPU the multiplications decide.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import tyro
from torch import Tensor

from manicap.losses.polar import Quintic, polar_stages, quintics

Stages = Sequence[Sequence[Quintic]]
FLOAT32, BFLOAT16 = 2.0**-23, 2.0**-8
BEFORE = [Quintic(3.4445, -4.7750, 2.0315)] * 13 + [Quintic(1.875, -1.25, 0.375)] * 4
"""Fixed coefficients: the route before, which multiplied the whole matrix at every step."""


@dataclass(frozen=True)
class Options:
    rows: int = 64
    columns: int = 512
    repeats: int = 5


def every_step(steps: Sequence[Quintic]) -> Stages:
    """A restart after every step: nothing is done on Gram matrices."""
    return [[step] for step in steps]


def one_restart(steps: Sequence[Quintic]) -> Stages:
    return [steps[: len(steps) // 2], steps[len(steps) // 2 :]]


WAYS: dict[str, Callable[[float, float], Stages]] = {
    "fixed coefficients, no Gram": lambda smallest, rounding: every_step(BEFORE),
    "optimal steps, no Gram": lambda smallest, rounding: every_step(quintics(smallest, smallest)),
    "optimal steps, one restart": lambda smallest, rounding: one_restart(quintics(smallest, smallest)),
    "optimal steps, restarts by noise": polar_stages,
}


def factor(wide: Tensor, stages: Stages, emulate: bool) -> Tensor:
    """As `losses.polar` computes it, in float32 or in emulated bfloat16."""

    def rounded(x: Tensor) -> Tensor:
        return x.bfloat16().float() if emulate else x

    x = rounded(wide / torch.linalg.matrix_norm(wide))
    for stage in stages:
        gram, step, product = rounded(x @ x.mT), None, None
        for a, b, c in stage:
            gram = gram if step is None else rounded(rounded(step @ gram) @ step)
            step = rounded(a * torch.eye(len(x)) + b * gram + c * rounded(gram @ gram))
            product = step if product is None else rounded(step @ product)
        x = x if product is None else rounded(product @ x)
    return x


def multiplications(stages: Stages, rows: int, columns: int) -> float:
    """Of numbers, in units of rows^3: two products with the matrix per stage, four of Gram matrices per step."""
    small = sum(4 * len(stage) - 3 for stage in stages)
    return 2 * len(stages) * columns / rows + small


def error(found: Tensor, matrix: Tensor) -> float:
    U, s, Vh = torch.linalg.svd(matrix.double(), full_matrices=False)
    keep = s > s[0] * FLOAT32
    along = U[:, keep].mT @ found.double() @ Vh[keep].mT
    return float((along - torch.eye(len(along))).norm() / math.sqrt(len(along)))


def spectrum(values: Tensor, options: Options) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    shapes = (options.rows, options.rows), (options.columns, options.rows)
    U, V = (torch.linalg.qr(torch.randn(shape, generator=generator, dtype=torch.float64))[0] for shape in shapes)
    return ((U * values) @ V.mT).float()


def matrices(options: Options) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    normal = torch.randn(options.rows, options.columns, generator=generator)
    return {
        "Gaussian": normal,
        "equal rows + 1 %": normal[:1] + 0.01 * normal.roll(1, 0),
        "s from 1 to 1e-3": spectrum(torch.logspace(0, -3, options.rows, dtype=torch.float64), options),
        "s from 1 to 1e-5": spectrum(torch.logspace(0, -5, options.rows, dtype=torch.float64), options),
    }


def seconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times[1:])


def main(options: Options) -> None:
    torch.set_num_threads(1)
    cases = matrices(options)
    print(f"{options.rows} x {options.columns}; multiplications in units of {options.rows}^3")
    print(f"{'':34}{'steps':>6}{'mult.':>7}{'ms':>7}  " + "".join(f"{name:>18}" for name in cases))
    for precision, smallest, rounding in (("float32", FLOAT32, FLOAT32), ("bfloat16", 1e-4, BFLOAT16)):
        print(precision)
        for name, build in WAYS.items():
            stages, emulate = build(smallest, rounding), precision == "bfloat16"
            shown = [f"{error(factor(matrix, stages, emulate), matrix):18.1e}" for matrix in cases.values()]
            taken = seconds(lambda s=stages: factor(cases["Gaussian"], s, False), options.repeats)  # type: ignore[misc]
            count = f"{sum(map(len, stages)):6}{multiplications(stages, options.rows, options.columns):7.0f}"
            print(f"  {name:32}{count}{'' if emulate else f'{1e3 * taken:7.1f}':>7}  " + "".join(shown))
    gaussian = cases["Gaussian"].double()
    taken = seconds(lambda: torch.linalg.svd(gaussian, full_matrices=False), options.repeats)
    print(f"SVD in float64: {1e3 * taken:.1f} ms")


if __name__ == "__main__":
    main(tyro.cli(Options))
