"""Speed and memory of training, as ratios within one run. Run it alone on the machine.

    python benchmarks/pretrain.py [--batch-size 64] [--repeats 5]

The literal forms are the paper's algorithms as printed (loops over positions and heads, an encoder call a frame, heads
one by one, plain convolutions, torch's default Adam): what a straightforward implementation costs.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parent.parent))  # the literal forms live with the tests

from manicap.algorithms.base import Batch, MethodContext, Settings
from manicap.algorithms.dim_c_plus import DIMCPlusSettings
from manicap.algorithms.st_dim import STDIMSettings
from manicap.atari.collect import collect
from manicap.domains.atari.config import AtariConfig
from manicap.losses.nuclear_norm import nuclear_norm
from manicap.train.device import keep_freed_memory
from manicap.train.distributed import Processes
from manicap.train.loop import Run
from manicap.train.setup import Execution, build_method, build_optimizer, prepare
from tests.literal import literal_dim_c


@dataclass(frozen=True)
class Options:
    batch_size: int = 64
    repeats: int = 5
    """Timings are the best of this many."""
    store_steps: int = 4_000
    """Frames of the small store; the large one has five times as many."""


def best_seconds(call: Callable[[], object], repeats: int) -> float:
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def gemm_peak(size: int = 3072) -> float:
    """FLOP/s of a large float32 matrix multiplication."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    return 2 * size**3 / best_seconds(lambda: a @ b, 5)


class LiteralEncoder(nn.Module):
    """Table 4 with plain convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.lower = nn.Sequential(
            nn.Conv2d(1, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 128, 4, 2), nn.ReLU()
        )
        self.upper = nn.Sequential(nn.Conv2d(128, 64, 3, 1), nn.ReLU(), nn.Flatten())

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        y = self.lower(frames.float() / 255)
        return self.upper(y), y.permute(0, 2, 3, 1)


class LiteralDIMC(nn.Module):
    """Algorithm 2, and with one linear head and no capacity the ST-DIM loop."""

    def __init__(self, num_heads: int, units: int, hidden: int | None, epsilon: float) -> None:
        super().__init__()
        self.encoder, self.epsilon = LiteralEncoder(), epsilon
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(3456, hidden), nn.ReLU(), nn.Linear(hidden, units))
            if hidden
            else nn.Linear(3456, units)
            for _ in range(num_heads)
        )
        self.c1, self.c2 = nn.Linear(units, 128), nn.Linear(128, 128)

    @staticmethod
    def _head(*sizes: int) -> nn.Module:
        if len(sizes) == 2:
            return nn.Linear(*sizes)
        return nn.Sequential(nn.Linear(sizes[0], sizes[1]), nn.ReLU(), nn.Linear(sizes[1], sizes[2]))

    def loss(self, frames: Tensor) -> Tensor:
        features, y_t = self.encoder(frames[:, 0])
        _, y_next = self.encoder(frames[:, 1])
        o_t = torch.stack([head(features) for head in self.heads], 1)
        return literal_dim_c(o_t, y_t, y_next, self.c1, self.c2, self.epsilon)


def training_step(loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> Callable[[], None]:
    def step() -> None:
        total = loss()
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        optimizer.step()

    return step


def compare_steps(
    name: str, settings: Settings, literal: tuple[int, int, int, float], options: Options, peak: float
) -> None:
    frames = torch.randint(0, 256, (options.batch_size, 2, 1, 210, 160), dtype=torch.uint8)
    config = AtariConfig(game="pong", method=name, settings=settings, batch_size=options.batch_size)
    method = build_method(config, MethodContext())
    ours = training_step(lambda: method.loss(Batch(frames)).total, build_optimizer(method, config, torch.device("cpu")))
    with FlopCounterMode(display=False) as counter:
        method.loss(Batch(frames)).total.backward()
    flops = counter.get_total_flops()
    seconds = best_seconds(ours, options.repeats)
    command = [sys.executable, __file__, "literal", *map(str, literal), str(options.batch_size), str(options.repeats)]
    slow = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    width = f"{getattr(settings, 'num_heads', 1)} x {getattr(settings, 'units', 0)}"
    print(
        f"{name:8s} {width:9s} step {1e3 * seconds:6.0f} ms, literal {1e3 * slow:6.0f} ms:"
        f" {slow / seconds:4.1f} x faster; {flops / 1e9:5.1f} GFLOP, utilisation {flops / seconds / peak:.2f}"
    )


def compare_nuclear_norms(options: Options) -> None:
    for rows, columns in ((64, 4096), (512, 2048)):
        matrix = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0)) / columns**0.5
        matrix.requires_grad_()
        svd = best_seconds(lambda: torch.linalg.svdvals(matrix).sum().backward(), 3 * options.repeats)  # noqa: B023
        auto = best_seconds(lambda: nuclear_norm(matrix).backward(), 3 * options.repeats)  # noqa: B023
        print(
            f"nuclear norm {rows} x {columns}, forward and backward: {1e3 * auto:.1f} ms, svdvals {1e3 * svd:.1f} ms:"
            f" {svd / auto:.1f} x faster  (target: 4)"
        )


def measure_memory(data_dir: str, steps: str, batch_size: str) -> None:
    """Run in a process of its own: peak memory that is not the mapped frames, and seconds a step, of DIM-C+ 4 x 512."""
    settings = DIMCPlusSettings(units=512)
    config = AtariConfig(game="pong", collect_steps=int(steps), settings=settings, batch_size=int(batch_size))
    with tempfile.TemporaryDirectory() as run_dir:
        run = Run(prepare(config, Execution(quiet=True), Path(data_dir), Processes()), Path(run_dir))
        rows = list(run.setup.train_batches.epoch(0))
        seconds, anonymous = [], 0
        for index in range(12):
            start = time.perf_counter()
            run.step(rows[index % len(rows)])
            seconds.append(time.perf_counter() - start)
            anonymous = max(anonymous, _anonymous_memory())
        print(anonymous / 1e6, min(seconds), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def _anonymous_memory() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return 1000 * int(line.split()[1])
    return 0


def measure_literal(num_heads: str, units: str, hidden: str, epsilon: str, batch_size: str, repeats: str) -> None:
    """Run in a process of its own, without our allocator settings: seconds of a literal step."""
    frames = torch.randint(0, 256, (int(batch_size), 2, 1, 210, 160), dtype=torch.uint8)
    model = LiteralDIMC(int(num_heads), int(units), int(hidden) or None, float(epsilon))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, eps=1e-5)
    print(best_seconds(training_step(lambda: model.loss(frames), optimizer), int(repeats)))


def compare_stores(options: Options) -> None:
    seconds = []
    with tempfile.TemporaryDirectory() as data_dir:
        for steps in (options.store_steps, 5 * options.store_steps):
            collect(AtariConfig(game="pong", collect_steps=steps).store_config, data_dir, quiet=True)
            command = [sys.executable, __file__, "memory", data_dir, str(steps), str(options.batch_size)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            seconds.append(float(output[1]))
            print(
                f"dim-c+ 4 x 512 on a store of {steps} frames: {1e3 * float(output[1]):.0f} ms a step,"
                f" {float(output[0]):.0f} MB beyond the frames  (target: 1500 MB)"
            )
    print(f"time a step on the large store over the small one: {seconds[1] / seconds[0]:.2f}")


def main(options: Options) -> None:
    keep_freed_memory()  # as training does
    peak = gemm_peak()
    print(
        f"{torch.get_num_threads()} threads, sgemm peak {peak / 1e9:.0f} GFLOP/s, batch {options.batch_size}, float32"
    )
    compare_steps("st-dim", STDIMSettings(), (1, 256, 0, 0.0), options, peak)
    for units in (512, 4096):
        settings = DIMCPlusSettings(units=units)
        compare_steps("dim-c+", settings, (4, units, 2048, 5e-4), options, peak)
    print("targets: st-dim 1.8 x, dim-c+ 2.5 x at both widths, utilisation 0.5 for dim-c+ 4 x 512")
    compare_nuclear_norms(options)
    compare_stores(options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        measure_memory(*sys.argv[2:5])
    elif sys.argv[1:2] == ["literal"]:
        measure_literal(*sys.argv[2:8])
    else:
        main(tyro.cli(Options))
