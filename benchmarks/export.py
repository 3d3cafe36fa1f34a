"""Exported encoders against torch: how far they differ, and how fast they are, as ratios within one run.

    python benchmarks/export.py [--methods st-dim dim-c+ dim-ua simclr] [--batch-size 64] [--rounds 7] [--cpu-time]

Networks of the preset quick with their initial weights, on frames of noise: speed does not depend on the values. Run it
alone on the machine, or with --cpu-time. What int8 costs in score is measured on a trained run: manicap export --int8.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro

from manicap.algorithms import find_method
from manicap.algorithms.base import MethodContext
from manicap.exporting.formats import OPSET, OnnxEncoder, export_program, run_torch, write_onnx
from manicap.exporting.int8 import quantise
from manicap.exporting.parity import check_parity, encode_in_batches, frames_per_second
from manicap.nn.image_input import ImageView
from manicap.pretrained.card import EncoderCard
from manicap.pretrained.encoder import PretrainedEncoder


@dataclass(frozen=True)
class Options:
    methods: tuple[str, ...] = ("st-dim", "dim-c+", "dim-ua", "simclr")
    batch_size: int = 64
    rounds: int = 7
    """Each times every form once, and the best counts."""
    frames: int = 1000
    """To compare on."""
    threads: int = 1
    cpu_time: bool = False
    """Count the process's CPU time, not the clock's: on a busy machine, with one thread."""


def build(name: str) -> PretrainedEncoder:
    torch.manual_seed(0)
    method = find_method(name)
    context = MethodContext(num_variables=6)
    if method.kind == "views":  # images of CIFAR-10, seen at 24 x 24
        view = ImageView((3, 32, 32), 24, None, "bilinear", (0.49, 0.48, 0.45), (0.25, 0.24, 0.26))
        context = MethodContext(view.shape, mean=view.mean, std=view.std, image_view=view)
    built = method(method.settings_type.preset("quick"), context)
    return PretrainedEncoder(built, "output", "", EncoderCard(name, "", None, 0, 0, "initial", 0), {})


def main(options: Options) -> None:
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.cpu_time else time.perf_counter
    print(
        f"preset quick, opset {OPSET}, threads {options.threads}, batch {options.batch_size},"
        f" {'CPU time' if options.cpu_time else 'time'}; parity on {options.frames:,} frames of noise"
    )
    for name in options.methods:
        encoder = build(name)
        frames = np.random.default_rng(0).integers(0, 256, (options.frames, *encoder.input_shape), np.uint8)
        program = export_program(encoder).module()
        with tempfile.TemporaryDirectory() as place:
            path, small = Path(place) / "float.onnx", Path(place) / "int8.onnx"
            write_onnx(encoder, path)
            quantise(path, small, frames)
            calls = {
                "torch": lambda batch, encoder=encoder: run_torch(encoder, batch),
                "torch-export": lambda batch, program=program: run_torch(program, batch),
                "onnx": OnnxEncoder(path, options.threads),
                "int8": OnnxEncoder(small, options.threads),
            }
            sizes = f"{path.stat().st_size / 1e6:.1f} MB, int8 {small.stat().st_size / 1e6:.1f} MB"
        expected = encode_in_batches(calls["torch"], frames)
        parity = check_parity(expected, encode_in_batches(calls["onnx"], frames), name)
        print(f"{name}: largest difference {parity.max_difference:.1e} of {parity.largest:.3g}; {sizes}")
        for size in (options.batch_size, 1):
            rates = frames_per_second(calls, frames[:size], options.rounds, clock)
            ratios = ", ".join(f"{key} {rate / rates['torch']:.2f}" for key, rate in rates.items() if key != "torch")
            print(f"  {size} at a time: torch {1e3 * size / rates['torch']:.2f} ms; times as fast: {ratios}")


if __name__ == "__main__":
    main(tyro.cli(Options))
