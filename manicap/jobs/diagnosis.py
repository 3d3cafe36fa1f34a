"""Diagnostics of a finished run, kept beside it as `diagnostics.json`."""

from pathlib import Path
from typing import Any

from manicap.core.config import check_config
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.diagnostics.runs import RunDiagnosis
from manicap.domains.base import find_domain
from manicap.train.device import set_threads
from manicap.train.finished import FinishedRun


def diagnose_run(
    run_dir: Path,
    config: Any = None,
    data_dir: Path = DATA_DIR,
    threads: int | None = None,
    quiet: bool = False,
) -> RunDiagnosis:
    """Measure a finished run, write `diagnostics.json` beside it, and return what it holds.

    `config` says what to measure on; the domain's default if omitted.
    """
    run = FinishedRun(run_dir)
    domain = find_domain(run.config.domain)
    config = domain.diagnosis_type() if config is None else config
    if not isinstance(config, domain.diagnosis_type):
        raise UserError(f"{run_dir} is a run on {domain.title}, which requires a {domain.diagnosis_type.__name__}")
    check_config(config)
    set_threads(threads)
    found: RunDiagnosis = domain.diagnose(run, run.config, config, data_dir, quiet)
    found.write(run_dir / "diagnostics.json")
    return found
