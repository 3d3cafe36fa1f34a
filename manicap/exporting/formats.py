"""Write an encoder as ONNX or as a `torch.export` program: uint8 frames in, any number at a time."""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.export import Dim, ExportedProgram

from manicap.core.errors import UserError
from manicap.pretrained.encoder import PretrainedEncoder

OPSET = 18
"""Version of ONNX's operators; onnxruntime reads it since 1.14."""
INPUT, OUTPUT = "frames", "features"
Frames = NDArray[np.uint8]
Features = NDArray[np.float32]


def onnx_runtime() -> Any:
    """`onnxruntime`, if it and the packages that write ONNX are installed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError:
        raise UserError("ONNX requires onnx, onnxscript and onnxruntime: pip install 'manicap[onnx]'") from None
    return onnxruntime


def export_program(encoder: PretrainedEncoder) -> ExportedProgram:
    """The encoder in evaluation mode as a graph with a batch of any size."""
    with torch.no_grad():
        return torch.export.export(encoder.eval(), _example(encoder), dynamic_shapes=({0: Dim("batch")},))


def write_torch_export(encoder: PretrainedEncoder, path: Path) -> None:
    """Write a file for `torch.export.load(path).module()`."""
    content = io.BytesIO()
    torch.export.save(export_program(encoder), content)
    path.write_bytes(content.getvalue())


def write_onnx(encoder: PretrainedEncoder, path: Path) -> None:
    """Write an ONNX model with the input `frames` and the output `features`; its metadata hold the encoder's card."""
    onnx_runtime()
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            encoder.eval(),
            _example(encoder),
            dynamo=True,
            dynamic_shapes=({0: Dim("batch")},),
            input_names=[INPUT],
            output_names=[OUTPUT],
            opset_version=OPSET,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    for key, value in (("layer", encoder.layer), ("card", json.dumps(encoder.card.to_dict()))):
        entry = model.metadata_props.add()
        entry.key, entry.value = f"manicap.{key}", value
    path.write_bytes(model.SerializeToString())


class OnnxEncoder:
    """An ONNX file as a function from uint8 frames to features, on the CPU."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        runtime = onnx_runtime()
        runtime.disable_telemetry_events()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads or torch.get_num_threads()
        options.log_severity_level = 3  # errors only
        self.session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def __call__(self, frames: Frames) -> Features:
        [features] = self.session.run([OUTPUT], {INPUT: frames})
        found: Features = features
        return found


def run_torch(encoder: torch.nn.Module, frames: Frames) -> Features:
    with torch.inference_mode():
        found: Features = encoder(torch.from_numpy(frames)).numpy()
    return found


def _example(encoder: PretrainedEncoder) -> tuple[torch.Tensor]:
    """Two frames, because a batch size of 1 would be taken for a constant."""
    return (torch.zeros(2, *encoder.input_shape, dtype=torch.uint8),)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporter's messages about packages that this network does not need."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
