"""What a grid must know of Atari games and of images: names, configs, and how a run of each is made and probed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manicap.atari.games import GAME_LISTS, find_game
from manicap.atari.store import StoreConfig
from manicap.bench import image_run, run
from manicap.bench.checks import AnyEvaluation
from manicap.bench.evaluation import EvaluationConfig, evaluate_run, preset_evaluation
from manicap.bench.image_evaluation import ImageEvaluationConfig, evaluate_image_run
from manicap.images.selection import require_dataset
from manicap.methods.base import Domain, PresetName
from manicap.train.config import preset_config
from manicap.train.image_config import preset_image_config
from manicap.train.run_config import RunConfig


@dataclass(frozen=True)
class BenchDomain:
    find_dataset: Callable[[str], str]
    """The dataset's own name, or a `UserError`."""
    dataset_lists: Mapping[str, Sequence[str]]
    """Names that stand for several datasets."""
    preset: Callable[[PresetName, str, str, Mapping[str, Any]], RunConfig]
    """From preset, dataset, method and the grid's [run] to a config."""
    evaluation_type: type[AnyEvaluation]
    preset_evaluation: Callable[[PresetName], AnyEvaluation]
    shared: tuple[str, ...]
    """Settings of a run that its evaluations take over unless they say otherwise."""
    run_job: Callable[..., list[Path]]
    evaluate_run: Callable[..., dict[str, Any]]


def stores_of(config: Any, evaluations: Sequence[EvaluationConfig]) -> tuple[StoreConfig, ...]:
    """The stores of an Atari run and of its probes, each once."""
    probed = dict.fromkeys(evaluation.store_config(config.game, config.seed) for evaluation in evaluations)
    return (config.store_config, *probed)


def _find_images(name: str) -> str:
    require_dataset(name)
    return name


DOMAINS: dict[Domain, BenchDomain] = {
    "atari": BenchDomain(
        find_dataset=lambda name: find_game(name).name,
        dataset_lists={f"{name}-games": games for name, games in GAME_LISTS.items()},
        preset=lambda preset, dataset, method, settings: preset_config(preset, dataset, method),
        evaluation_type=EvaluationConfig,
        preset_evaluation=preset_evaluation,
        shared=("protocol", "annotation_set"),
        run_job=run.run_job,
        evaluate_run=evaluate_run,
    ),
    "images": BenchDomain(
        find_dataset=_find_images,
        dataset_lists={},
        preset=lambda preset, dataset, method, settings: preset_image_config(
            preset, dataset, method, settings.get("protocol", "clean")
        ),
        evaluation_type=ImageEvaluationConfig,
        preset_evaluation=lambda preset: ImageEvaluationConfig(),
        shared=("protocol",),
        run_job=image_run.run_image_job,
        evaluate_run=evaluate_image_run,
    ),
}
