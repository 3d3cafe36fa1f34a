"""Where metrics go besides `metrics.jsonl` (see `logs`): TensorBoard and Weights & Biases, if requested."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from manicap.core.errors import UserError

SinkName = Literal["tensorboard", "wandb"]
Metrics = Mapping[str, float | int | str]


class Sink(Protocol):
    def write(self, metrics: Metrics) -> None: ...
    def close(self) -> None: ...


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
