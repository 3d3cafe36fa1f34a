"""Results are reported only for the data on which they were learned and measured.

A finished run and its results carry fingerprints of their data, which are compared with the data on disk. If the data
is not on disk there is nothing to compare, and the results stand for the data that they name.
"""

from pathlib import Path

from manicap.core.errors import UserError
from manicap.domains.base import find_domain
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.result import RunResult
from manicap.domains.run_config import RunConfig
from manicap.pretrained.encoder_files import read_description


def is_of_data(result: RunResult, config: RunConfig, evaluation: EvaluationConfig, data_dir: Path) -> bool:
    """Whether a result was measured on the data on disk, or there is no data on disk."""
    now = find_domain(config.domain).probing_fingerprint(config, evaluation, data_dir)
    return now is None or now == result.evaluation.store


def require_same_data(config: RunConfig, run_dir: Path, data_dir: Path) -> None:
    """Refuse a finished run whose training data has changed since: its scores would refer to different data."""
    if not (run_dir / "encoder.json").is_file():
        return
    now = find_domain(config.domain).training_fingerprint(config, data_dir)
    before = read_description(run_dir)["identity"].get("data")
    if now is not None and now != before:
        raise UserError(
            f"the data of {run_dir} has changed since the run was trained on it (fingerprint {before}, now {now});"
            " restore the old data, or remove the run's directory to train it again"
        )
