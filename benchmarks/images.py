"""Speed of learning from images, as ratios within one run. Run it alone on the machine.

    python benchmarks/images.py [--parts views losses step more-views] [--batch-size 128] [--repeats 3] [--device cpu]

A part is a function of the options that prints its lines; PARTS lists them. The literal form is Algorithm 3 of arXiv
2405.13848 as printed, a loop over all pairs of heads.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parent.parent))  # the literal forms live with the tests


from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, MethodContext
from manicap.images.recipes import CIFAR10_TSAI2021, SIMCLR
from manicap.images.views import make_views, normalise
from manicap.losses.capacity import CapacityRegularizer
from manicap.losses.contrastive import nt_xent
from manicap.losses.redundancy import barlow_twins
from manicap.nn.resnet import ResNet
from manicap.train.device import keep_freed_memory
from tests.literal import barlow_twins_of_pair, literal_two_view, nt_xent_of_pair


@dataclass(frozen=True)
class Options:
    parts: tuple[str, ...] = ()
    """Which parts to run; by default all."""
    batch_size: int = 128
    step_batch_size: int = 32
    """Images of the ResNet-50 step; the heads' share of it falls as it grows."""
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


def measure_losses(options: Options) -> None:
    """The loss of eight heads of 256 units, forward and backward, beside the loop over their 64 pairs."""
    generator = torch.Generator(options.device).manual_seed(0)
    shape = (options.batch_size, 8, 256)
    z, other = (torch.randn(shape, generator=generator, device=options.device).requires_grad_() for _ in range(2))
    capacity = CapacityRegularizer(0.005).to(options.device)
    for name, loss, custom in (
        ("simclr-c+", nt_xent, nt_xent_of_pair),
        ("barlow-twins-c+", barlow_twins, barlow_twins_of_pair),
    ):
        seconds = best_seconds(lambda: (capacity(z)[0] + loss(z, other)).backward(), options, 20)  # noqa: B023
        literal_seconds = best_seconds(lambda: literal_two_view(z, other, custom).backward(), options, 5)  # noqa: B023
        print(
            f"{name} loss, 8 x 256, batch {options.batch_size}: {1e3 * seconds:.1f} ms, Algorithm 3 literally "
            f"{1e3 * literal_seconds:.0f} ms: {literal_seconds / seconds:.1f} x  (target: 3 x)"
        )


def measure_step(options: Options) -> None:
    """A training step at ResNet-50 (forward, backward, fused Adam) of the plain method and of its C+ form."""
    generator = torch.Generator(options.device).manual_seed(0)
    views = torch.randn((options.step_batch_size, 2, 3, 32, 32), generator=generator, device=options.device)
    for name in ("simclr", "barlow-twins"):
        steps = [build_step(method, Batch(views), options) for method in (name, f"{name}-c+")]
        # In turn, so that what else the machine does meets both.
        seconds = [[best_seconds(step, options, 1) for step in steps] for _ in range(options.repeats)]
        plain, capacity = (min(times) for times in zip(*seconds, strict=True))
        print(
            f"{name} step, ResNet-50, batch {options.step_batch_size}: {plain:.2f} s, with eight heads and capacity "
            f"{capacity:.2f} s: {capacity / plain:.3f} x  (target: 1.15 x)"
        )


def count_more_views(options: Options) -> None:
    """Floating-point operations of a step of `quick` with more views, relative to two views of 24 pixels."""
    sizes = ((2, 24), (4, 16), (4, 24), (8, 16))
    for name in ("simclr", "simclr-c+", "barlow-twins", "barlow-twins-c+", "byol", "tico"):
        two, *more = (count_operations(name, options.batch_size, *size) for size in sizes)
        ratios = (
            f"{count} of {size} pixels {operations / two:.2f}"
            for (count, size), operations in zip(sizes[1:], more, strict=True)
        )
        print(f"{name}, operations of a step: {', '.join(ratios)}")


def count_operations(name: str, batch_size: int, num_views: int, size: int) -> int:
    """Forward and backward."""
    settings = replace(METHODS[name].settings_type.preset("quick"), num_views=num_views)
    torch.manual_seed(0)
    method = METHODS[name](settings, MethodContext((3, size, size)))
    views = torch.randn((batch_size, num_views, 3, size, size), generator=torch.Generator().manual_seed(0))
    with FlopCounterMode(display=False) as counter:
        method.loss(Batch(views)).total.backward()
    return counter.get_total_flops()


def build_step(name: str, batch: Batch, options: Options) -> Callable[[], None]:
    torch.manual_seed(0)
    method = METHODS[name](METHODS[name].settings_type.preset("paper"), MethodContext((3, 32, 32))).to(options.device)
    optimizer = torch.optim.Adam(method.parameters(), lr=1e-3, weight_decay=1e-6, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        method.loss(batch).total.backward()
        optimizer.step()

    return step


PARTS: dict[str, Callable[[Options], None]] = {
    "views": measure_views,
    "losses": measure_losses,
    "step": measure_step,
    "more-views": count_more_views,
}


def main(options: Options) -> None:
    keep_freed_memory()  # as training does
    print(f"{options.device}, {torch.get_num_threads()} threads, float32")
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main(tyro.cli(Options))
