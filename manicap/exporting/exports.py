"""`manicap.export`: write an encoder for other programs, and measure how closely it matches torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from manicap.core.config import checked
from manicap.core.errors import UserError
from manicap.core.files import atomic_path
from manicap.core.paths import DATA_DIR
from manicap.core.ranges import Count
from manicap.core.remote import local_directory
from manicap.core.results import has_result
from manicap.core.seeding import numpy_generator
from manicap.domains.base import Domain, find_domain
from manicap.domains.result import RunResult
from manicap.exporting.formats import (
    OPSET,
    Frames,
    OnnxEncoder,
    onnx_runtime,
    run_torch,
    write_onnx,
    write_torch_export,
)
from manicap.exporting.int8 import quantise
from manicap.exporting.parity import Encode, Parity, check_parity, encode_in_batches, frames_per_second
from manicap.pretrained.encoder import PretrainedEncoder
from manicap.pretrained.loading import load
from manicap.train.finished import FinishedRun

FormatName = Literal["onnx", "torch-export"]
SUFFIXES: Mapping[FormatName, str] = {"onnx": ".onnx", "torch-export": ".pt2"}
SPEED_FRAMES = 64


@dataclass(frozen=True)
class Int8:
    """An int8 export, and its scores."""

    path: Path
    probe: str
    scores: dict[str, dict[str, float]]
    """Metrics of `float` and `int8` features, and of the untrained network's, probed in the same way."""


@dataclass(frozen=True)
class Export:
    """An exported encoder, and how it was checked."""

    path: Path
    format: FormatName
    layer: str
    input_shape: tuple[int, int, int]
    num_features: int
    frames: str
    """What it was checked on."""
    parity: Parity
    """Against torch."""
    speed: dict[str, float]
    """Frames per second of torch, of the export and of its int8 form; empty if not measured."""
    threads: int
    int8: Int8 | None = None

    def __str__(self) -> str:
        opset = f", opset {OPSET}" if self.format == "onnx" else ""
        shape = ", ".join(map(str, self.input_shape))
        parity = self.parity
        lines = [
            f"{self.path}: {self.format}{opset}, uint8 frames [batch, {shape}] -> float32 [batch, {self.num_features}]"
            f" ({self.layer}), any batch",
            f"largest difference from torch {parity.max_difference:.2g} on {parity.num_frames:,} {self.frames}"
            f" (largest feature {parity.largest:.3g})",
        ]
        if self.int8 is not None:
            lines.append(f"{self.int8.path}: int8, {self.int8.probe} probe")
            for metric in self.int8.scores["float"]:
                exact, found, floor = (self.int8.scores[name][metric] for name in ("float", "int8", "untrained"))
                told = f"float {exact:.4f}, {found - exact:+.4f}; untrained {floor:.4f}"
                lines.append(f"  {metric}: {found:.4f} ({told})")
        if self.speed:
            ratios = ", ".join(f"{name} {rate / self.speed['torch']:.2f}" for name, rate in self.speed.items())
            lines.append(f"speed relative to torch: {ratios} ({SPEED_FRAMES} frames at a time, threads {self.threads})")
        return "\n".join(lines)


@checked
def export(
    source: Path | str,
    format: FormatName = "onnx",
    *,
    layer: str | None = None,
    output: Path | str | None = None,
    int8: bool = False,
    num_frames: Count = 1000,
    data_dir: Path | str = DATA_DIR,
    quiet: bool = False,
) -> Export:
    """Write an encoder as ONNX or as a `torch.export` program, and check it against torch.

        print(manicap.export("runs/pong-dim-c+-s0-1a2b3c4d", output="pong.onnx"))

    The file takes any number of uint8 frames at a time. It contains everything between a frame and its features.

    Args:
        source: As in `manicap.load`: a run, a saved encoder, or a name on a hub.
        format: `onnx` (requires `manicap[onnx]`) or `torch-export`.
        layer: Layer that gives the features, as in `manicap.load`.
        output: Output file; by default `encoder.onnx` or `encoder.pt2` in the directory of the run or encoder, of one
            from a hub in the current directory.
        int8: Also write an int8 ONNX file, and report its cost in score and its speed. Requires the run, on whose probe
            frames it is calibrated and probed.
        num_frames: Number of frames to check on: the run's own if they are on disk, noise otherwise.
        data_dir: Where stores and datasets are kept.
        quiet: Show no progress.
    """
    encoder, run = load(source, layer), _opened(source)
    if int8 and format != "onnx":
        raise UserError("int8 is for ONNX only: use format 'onnx'")
    if int8 and run is None:
        raise UserError(f"int8 is calibrated on the frames of a run, and {source} is none: give the run's directory")
    if format == "onnx":
        onnx_runtime()
    path = _output(output, source, format)
    seen = None if run is None else _seen(run, num_frames, local_directory(data_dir), int8, quiet)
    frames = _noise(encoder, num_frames) if seen is None else seen
    with atomic_path(path) as scratch:  # what fails the check leaves no file, and an older one as it was
        calls: dict[str, Encode] = {"torch": partial(run_torch, encoder), format: _write(encoder, format, scratch)}
        expected, found = (encode_in_batches(call, frames) for call in calls.values())
        parity = check_parity(expected, found, f"{path} ({format})")
    small = None
    if int8 and run is not None:
        small = _write_int8(run, encoder, path, frames, local_directory(data_dir), quiet)
        calls["int8"] = OnnxEncoder(small.path)
    return Export(
        path=path,
        format=format,
        layer=encoder.layer,
        input_shape=encoder.input_shape,
        num_features=encoder.num_features,
        frames="frames of noise" if seen is None else "frames of the run's probe",
        parity=parity,
        speed=frames_per_second(calls, frames[:SPEED_FRAMES]),
        threads=torch.get_num_threads(),
        int8=small,
    )


def _opened(source: Path | str) -> FinishedRun | None:
    """The run, if the source is one with its config."""
    path = Path(source)
    return FinishedRun(path) if (path / "config.toml").is_file() and (path / "encoder.json").is_file() else None


def _output(output: Path | str | None, source: Path | str, format: FormatName) -> Path:
    if format not in get_args(FormatName):
        raise UserError(f"format must be onnx or torch-export, got {format!r}")
    suffix = SUFFIXES[format]
    if output is None:
        return (Path(source) if Path(source).is_dir() else Path()) / f"encoder{suffix}"
    if Path(output).suffix != suffix:
        raise UserError(f"the file of format {format} must end with {suffix}, got {output}")
    return Path(output)


def _write(encoder: PretrainedEncoder, format: FormatName, path: Path) -> Encode:
    """Write the file and open it as another program would."""
    if format == "onnx":
        write_onnx(encoder, path)
        return OnnxEncoder(path)
    write_torch_export(encoder, path)
    with path.open("rb") as file:  # by its path it would have to end with .pt2
        return partial(run_torch, torch.export.load(file).module())


def _write_int8(
    run: FinishedRun, encoder: PretrainedEncoder, path: Path, frames: Frames, data_dir: Path, quiet: bool
) -> Int8:
    """Quantise an ONNX file, and probe the result beside the float encoder and the untrained network."""
    target = path.with_name(f"{path.stem}-int8{path.suffix}")
    quantise(path, target, frames)
    probed: dict[str, Encode] = {
        "float": partial(run_torch, encoder),
        "int8": OnnxEncoder(target),
        "untrained": partial(run_torch, run.untrained(encoder.layer)),
    }
    domain, config, evaluation = _probing(run)
    return Int8(target, *domain.compare_encoders(config, evaluation, probed, data_dir, quiet))


def _probing(run: FinishedRun) -> tuple[Domain[Any, Any], Any, Any]:
    """The domain of a run, its config, and how it was or would be probed."""
    domain, path = find_domain(run.config.domain), run.run_dir / "result.json"
    evaluation = RunResult.read(path).evaluation_config if has_result(path) else domain.preset_evaluation("quick")
    return domain, run.config, evaluation


def _seen(run: FinishedRun, count: int, data_dir: Path, required: bool, quiet: bool) -> Frames | None:
    """Frames of the run's probe; prepared if required, else None if they are not on disk."""
    domain, config, evaluation = _probing(run)
    if not required and domain.probing_fingerprint(config, evaluation, data_dir) is None:
        return None
    return domain.raw_frames(config, evaluation, count, data_dir, quiet)


def _noise(encoder: PretrainedEncoder, count: int) -> Frames:
    rng = numpy_generator(0, "frames of noise")
    return rng.integers(0, 256, (count, *encoder.input_shape), np.uint8)
