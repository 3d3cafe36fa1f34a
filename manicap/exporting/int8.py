"""Static quantisation of an ONNX encoder: weights and activations as 8-bit integers, ranges from frames of a store."""

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manicap.core.files import atomic_write
from manicap.exporting.formats import INPUT, Frames, onnx_runtime

CALIBRATION_FRAMES, BATCH = 256, 32
"""Approximate number of the given frames that are used, evenly spaced, and how many at a time."""
QUANTISED = ["Conv", "Gemm"]
"""Operators that are quantised. Matrix products resize images, which stays exact."""


def quantise(source: Path, target: Path, frames: Frames) -> None:
    """Write the int8 model of an ONNX file: per-channel weights, the range of each activation over these frames."""
    onnx_runtime()
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as place:
        prepared, found = Path(place) / "prepared.onnx", Path(place) / "int8.onnx"
        logger = logging.getLogger()
        before = logger.level
        logger.setLevel(logging.ERROR)  # it logs advice to the root logger
        try:
            quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
            quantize_static(
                str(prepared),
                str(found),
                _Batches(frames[:: max(1, len(frames) // CALIBRATION_FRAMES)]),
                quant_format=QuantFormat.QDQ,
                op_types_to_quantize=QUANTISED,
                nodes_to_exclude=_sums(prepared),
                per_channel=True,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                calibrate_method=CalibrationMethod.MinMax,
            )
        finally:
            logger.setLevel(before)
        atomic_write(target, found.read_bytes())


def _sums(path: Path) -> list[str]:
    """Products that are added to something other than a bias, as in a coherence filter: onnxruntime has no integer form
    of them and would convert their weights back to floats in every call."""
    import onnx

    return [
        node.name
        for node in onnx.load(path).graph.node
        if node.op_type == "Gemm" and any(each.name == "beta" and each.f != 1 for each in node.attribute)
    ]


class _Batches:
    """A CalibrationDataReader of onnxruntime, by its methods."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.rewind()

    def rewind(self) -> None:
        self._next: Iterator[Frames] = (self.frames[i : i + BATCH] for i in range(0, len(self.frames), BATCH))

    def get_next(self) -> dict[str, Any] | None:
        batch = next(self._next, None)
        return None if batch is None else {INPUT: batch}

    def __len__(self) -> int:
        return -(-len(self.frames) // BATCH)
