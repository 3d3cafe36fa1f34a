"""Checks of a job before hours of training, in one place for `run` and the cells of a grid."""

from collections.abc import Sequence
from pathlib import Path

from manicap.core.config import config_problems
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.domains.base import find_domain
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.run_config import RunConfig


def check_job(config: RunConfig, evaluations: Sequence[EvaluationConfig], data_dir: Path = DATA_DIR) -> None:
    """Raise one `UserError` with everything wrong in the settings of a run and of its probes."""
    problems = job_problems(config, evaluations, data_dir)
    if problems:
        raise UserError("; ".join(problems))


def job_problems(config: RunConfig, evaluations: Sequence[EvaluationConfig], data_dir: Path = DATA_DIR) -> list[str]:
    """Problems of the settings alone; takes milliseconds, or the first steps of an environment not yet recorded."""
    found = [problem for each in (config, *evaluations) for problem in config_problems(each)]
    domain = find_domain(config.domain)
    for evaluation in () if found else evaluations:  # values that are valid one by one may not go together
        found += domain.problems(config, evaluation, data_dir)
    return list(dict.fromkeys(found))
