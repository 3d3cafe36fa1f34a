"""`run.json`: what a run started with and, once finished, the hashes of its logs. Checksummed, unlike `config.toml`.

The config is in both files: `config.toml` is for people, and a value changed there is detected.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.sealed import read_sealed, write_sealed

FORMAT = 1
NAME = "run.json"
REMEDY = "remove the run's directory to start over"


@dataclass(frozen=True)
class RunRecord:
    config: dict[str, Any]
    """As returned by `to_dict`."""
    log_every: int
    diagnose_every: int | None = None
    logs: dict[str, str] = field(default_factory=dict)
    """sha256 of each log of a finished run: `metrics.jsonl`, `diagnostics.jsonl`."""

    def write(self, run_dir: Path) -> None:
        write_sealed(run_dir / NAME, {"format": FORMAT, **asdict(self)})


def is_begun(run_dir: Path) -> bool:
    return (run_dir / NAME).exists()


def read_record(run_dir: Path) -> RunRecord:
    values = read_sealed(run_dir / NAME, "record of a run", REMEDY)
    if values.pop("format", None) != FORMAT:
        raise UserError(f"{run_dir / NAME} does not have format {FORMAT}, which this version reads; {REMEDY}")
    return RunRecord(**values)


def describe_differences(old: object, new: object, name: str = "") -> list[str]:
    """`config.seed was 0, is now 1`, for every leaf that differs."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = sorted({*old, *new})
        return [line for key in keys for line in describe_differences(old.get(key), new.get(key), f"{name}.{key}")]
    return [] if old == new else [f"{name.lstrip('.')} was {_told(old)}, is now {_told(new)}"]


def _told(value: object) -> str:
    return "absent" if value is None else str(value)
