"""Where metrics go: `metrics.jsonl` always; TensorBoard and Weights & Biases when asked for and installed."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from manicap.core.errors import UserError

SinkName = Literal["tensorboard", "wandb"]
Metrics = Mapping[str, float | int | str]


class Sink(Protocol):
    def write(self, metrics: Metrics) -> None: ...
    def close(self) -> None: ...


class MetricsFile:
    """One JSON object a line. Holds no times, so that a resumed run's file equals an uninterrupted one's."""

    def __init__(self, path: Path, keep_bytes: int) -> None:
        """Cut the file to what the checkpoint knew; later lines will be written again, the same."""
        path.touch()
        os.truncate(path, min(keep_bytes, path.stat().st_size))
        self.file = path.open("a")

    def write(self, metrics: Metrics) -> None:
        self.file.write(json.dumps(metrics) + "\n")

    def flush(self) -> int:
        """Put everything on disk; the file's size."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return os.fstat(self.file.fileno()).st_size

    def close(self) -> None:
        self.file.close()


class TensorBoard:
    def __init__(self, run_dir: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError("TensorBoard is not installed: pip install 'manicap[tensorboard]'") from None
        self.writer = SummaryWriter(str(run_dir / "tensorboard"))

    def write(self, metrics: Metrics) -> None:
        split, step = metrics["split"], int(metrics["step"])
        for name, value in metrics.items():
            if isinstance(value, float):
                self.writer.add_scalar(f"{split}/{name}", value, step)

    def close(self) -> None:
        self.writer.close()


class WandB:
    def __init__(self, run_dir: Path) -> None:
        try:
            import wandb
        except ImportError:
            raise UserError("Weights & Biases is not installed: pip install 'manicap[wandb]'") from None
        self.run = wandb.init(project="manicap", name=run_dir.name, id=run_dir.name, dir=str(run_dir), resume="allow")

    def write(self, metrics: Metrics) -> None:
        values = {f"{metrics['split']}/{name}": value for name, value in metrics.items() if isinstance(value, float)}
        self.run.log(values, step=int(metrics["step"]))

    def close(self) -> None:
        self.run.finish()


def open_sinks(names: tuple[SinkName, ...], run_dir: Path) -> list[Sink]:
    kinds: dict[str, type[TensorBoard] | type[WandB]] = {"tensorboard": TensorBoard, "wandb": WandB}
    return [kinds[name](run_dir) for name in names]
