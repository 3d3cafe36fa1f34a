"""`manicap export`: an encoder for other programs."""

from pathlib import Path
from typing import Annotated

import tyro

from manicap.core.paths import DATA_DIR
from manicap.core.ranges import Count, Threads
from manicap.exporting.exports import FormatName
from manicap.exporting.exports import export as write_export
from manicap.train.device import set_threads

Source = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(metavar="RUN", help="Directory of a run or of a saved encoder, or user/name on a hub."),
]


def export(
    source: Source,
    format: FormatName = "onnx",
    layer: str | None = None,
    output: Path | None = None,
    int8: bool = False,
    frames: Count = 1000,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Write an encoder as ONNX or as a torch.export program: uint8 frames in, any number at a time, features out.

    The file is read back and compared with torch; the largest difference and the speed are printed.

    As 8-bit integers too, with their cost in score: manicap export runs/pong-dim-c+-s0-1a2b3c4d --int8

    Args:
        source: Directory of a run or of a saved encoder, or user/name on a hub.
        format: onnx (requires manicap[onnx]) or torch-export.
        layer: Features to return: output, backbone, local, or a layer by its name; output if omitted.
        output: The file; if omitted, encoder.onnx or encoder.pt2 in the directory of the run or encoder, or in the
            current directory if the encoder is from a hub.
        int8: Also write an ONNX file of 8-bit integers, calibrated and probed on the run's probe frames.
        frames: Number of frames to compare on: the run's own if they are on disk, noise otherwise.
        threads: CPU threads; OMP_NUM_THREADS or all cores if omitted.
        data_dir: Where stores and datasets are kept.
    """
    set_threads(threads)
    print(write_export(source, format, layer=layer, output=output, int8=int8, num_frames=frames, data_dir=data_dir))
