"""What is wrong with a job, found before the hours of training: one place for `run`, `images` and the cells of a grid.

job_problems(config, evaluations)        of the settings alone, in milliseconds
prepare_data(config, evaluations, ...)   of the data to probe on, which is collected or opened for it
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch

from manicap.atari.annotations import annotations
from manicap.atari.collect import collect
from manicap.atari.games import find_game
from manicap.atari.protocol import find_protocol
from manicap.bench.evaluation import EvaluationConfig
from manicap.bench.image_evaluation import ImageEvaluationConfig, open_bench
from manicap.core.config import config_problems
from manicap.core.errors import UserError
from manicap.evaluate.evaluation import require_probe_data
from manicap.evaluate.image_evaluation import require_labels
from manicap.images.selection import require_dataset
from manicap.methods import find_method
from manicap.methods.base import MethodContext, ProbeInput, Settings
from manicap.train.config import PretrainConfig
from manicap.train.image_config import ImageConfig
from manicap.train.run_config import RunConfig

AnyEvaluation = EvaluationConfig | ImageEvaluationConfig


def check_job(config: RunConfig, evaluations: Sequence[AnyEvaluation]) -> None:
    """One `UserError` with everything that the settings of a run and of its probes have wrong."""
    problems = job_problems(config, evaluations)
    if problems:
        raise UserError("; ".join(problems))


def job_problems(config: RunConfig, evaluations: Sequence[AnyEvaluation]) -> list[str]:
    found = [problem for each in (config, *evaluations) for problem in config_problems(each)]
    for evaluation in () if found else evaluations:  # of values that are sound one by one: do they go together?
        if isinstance(config, PretrainConfig) and isinstance(evaluation, EvaluationConfig):
            found += _atari_problems(config, evaluation)
        if isinstance(config, ImageConfig) and isinstance(evaluation, ImageEvaluationConfig):
            found += _image_problems(config, evaluation)
    return list(dict.fromkeys(found))


def _atari_problems(config: PretrainConfig, evaluation: EvaluationConfig) -> list[str]:
    found = []
    needed = {evaluation.annotation_set: None}
    if find_method(config.method).needs_labels:
        needed[config.annotation_set] = None
    for name in needed:
        try:
            annotations(find_game(config.game), name)
        except UserError as error:
            found.append(str(error))
    if evaluation.width is not None:
        width = feature_width(config.method, config.settings, evaluation.probe_input)
        if evaluation.width > width:
            found.append(f"width must be at most the {width} features of {config.method}, got {evaluation.width}")
    return found


def _image_problems(config: ImageConfig, evaluation: ImageEvaluationConfig) -> list[str]:
    if evaluation.protocol == "tsai2021" and (config.protocol, config.weights) != ("tsai2021", "best"):
        return [
            "an evaluation by tsai2021 probes the weights that scored best on the test images:"
            " train by protocol tsai2021 and keep weights 'best'"
        ]
    return []


@cache
def feature_width(
    method: str, settings: Settings, probe_input: ProbeInput, input_shape: tuple[int, int, int] = (1, 210, 160)
) -> int:
    """Features that a probe of the method sees; shapes alone are computed."""
    with torch.device("meta"):
        built = find_method(method)(settings, MethodContext(input_shape, num_variables=1)).eval()
        frames = torch.zeros((1, *input_shape), dtype=torch.uint8)
        return int(built.represent(frames, probe_input).shape[1])


def prepare_data(
    config: RunConfig, evaluations: Sequence[AnyEvaluation], data_dir: Path, workers: int | None, quiet: bool
) -> None:
    """Collect or open what a run and its probes need, and split it as they will: too small a store is refused here."""
    if isinstance(config, ImageConfig):
        require_dataset(config.dataset)
        for image_evaluation in evaluations:
            assert isinstance(image_evaluation, ImageEvaluationConfig)
            require_labels(open_bench(config, image_evaluation, data_dir, quiet))
        return
    assert isinstance(config, PretrainConfig)
    collect(config.store_config, data_dir, workers, quiet=quiet)
    checked = set()
    for evaluation in evaluations:
        assert isinstance(evaluation, EvaluationConfig)
        store_config = evaluation.store_config(config.game, config.seed)
        asked = (store_config, evaluation.protocol, evaluation.annotation_set)
        if asked not in checked:
            checked.add(asked)
            store = collect(store_config, data_dir, workers, quiet=quiet)
            require_probe_data(store, find_protocol(evaluation.protocol), evaluation.annotation_set, config.seed)
