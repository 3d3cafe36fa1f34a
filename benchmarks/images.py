"""Speed of learning from images, as ratios within one run. Run it alone on the machine.

    python benchmarks/images.py [--parts views] [--batch-size 128] [--repeats 3] [--device cpu]

A part is a function of the options that prints its lines; PARTS lists them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import tyro

from manicap.images.recipes import CIFAR10_TSAI2021, SIMCLR
from manicap.images.views import make_views, normalise
from manicap.nn.resnet import ResNet
from manicap.train.device import keep_freed_memory


@dataclass(frozen=True)
class Options:
    parts: tuple[str, ...] = ()
    """Which parts to run; by default all."""
    batch_size: int = 128
    repeats: int = 3
    """Timings are the best of this many."""
    device: str = "cpu"


def best_seconds(call: Callable[[], object], options: Options, repeats: int | None = None) -> float:
    call()
    seconds = []
    for _ in range(repeats or options.repeats):
        _synchronize(options)
        start = time.perf_counter()
        call()
        _synchronize(options)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _synchronize(options: Options) -> None:
    if options.device.startswith("cuda"):
        torch.cuda.synchronize()


def measure_views(options: Options) -> None:
    """Two views of a batch of CIFAR-sized images beside a step of a ResNet-18 (forward, backward, Adam) on them."""
    generator = torch.Generator(options.device).manual_seed(0)
    shape = (options.batch_size, 3, 32, 32)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator, device=options.device)
    network = ResNet("resnet18", "cifar").to(options.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    views = normalise(make_views(images, CIFAR10_TSAI2021, 2, generator), (0.5,) * 3, (0.25,) * 3).flatten(0, 1)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        network(views).square().mean().backward()
        optimizer.step()

    step_seconds = best_seconds(step, options)
    print(f"ResNet-18 step on 2 x {options.batch_size} views of 32 x 32: {1e3 * step_seconds:.0f} ms")
    for name, recipe in (("cifar10-tsai2021", CIFAR10_TSAI2021), ("simclr, with blur", SIMCLR)):
        seconds = best_seconds(lambda: make_views(images, recipe, 2, generator), options, 20)  # noqa: B023
        print(
            f"views, {name}: {1e3 * seconds:.1f} ms, {100 * seconds / step_seconds:.2f} % of the step  (target: 10 %)"
        )


PARTS: dict[str, Callable[[Options], None]] = {"views": measure_views}


def main(options: Options) -> None:
    keep_freed_memory()  # as training does
    print(f"{options.device}, {torch.get_num_threads()} threads, float32")
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main(tyro.cli(Options))
