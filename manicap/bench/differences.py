"""What separates a result from the setting of the published numbers: nobody shall take a quick run for a reproduction.

Every field of the run's config, of its method's settings and of the evaluation's config is compared with the paper's.
Fields that need not agree are listed here; one that is added to a config is compared without being mentioned.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from manicap.atari.annotations import annotations, sets_with
from manicap.atari.games import find_game
from manicap.bench.evaluation import EvaluationConfig
from manicap.bench.image_evaluation import NUM_IMAGES, ImageEvaluationConfig
from manicap.bench.published import published_image_accuracy, published_score
from manicap.core.config import from_dict, to_dict
from manicap.methods import find_method
from manicap.train.config import preset_config
from manicap.train.image_config import preset_image_config
from manicap.train.run_config import RunConfig

PAPER = "arXiv 2405.13848"
NOT_COMPARED_RUN = {
    "game": "which run it is",
    "dataset": "which run it is",
    "method": "which run it is",
    "seed": "which run it is",
    "annotation_set": "labels to learn from, which no method of the paper does",
}
NOT_COMPARED_EVALUATION = {
    "neighbors": "of the probe knn, which is not the paper's: that is told",
    "neighbor_temperature": "likewise",
}
ANNOTATIONS_OF_2019 = ("vae", "cpc", "st-dim")
"""Columns that the paper took from arXiv 1906.08226. The code of the others has the table of 2020."""
PAPER_SEEDS = 5
PAPER_PRECISION = "float32"
"""A Tesla V100 has no bfloat16, and the codes do not ask for float16."""


@dataclass(frozen=True)
class PaperSetting:
    run: RunConfig
    evaluation: EvaluationConfig | ImageEvaluationConfig
    num_seeds: int | None
    """None where the paper does not say."""


def paper_setting(subject: str, method: str) -> PaperSetting | None:
    """How the paper trained and probed a method on a game or dataset; None where it has no such number."""
    if find_method(method).domain == "atari":
        if published_score(subject, method, "f1") is None:
            return None
        run = replace(preset_config("paper", subject, method), protocol="reference", weights="last")
        annotation_set = "ari-2019" if method in ANNOTATIONS_OF_2019 else "ari-2020"
        probed = EvaluationConfig(protocol="reference", annotation_set=annotation_set, probe_store="per seed")
        return PaperSetting(run, probed, PAPER_SEEDS)
    if method not in published_image_accuracy(subject):
        return None
    trained = preset_image_config("paper", subject, method, "tsai2021")
    return PaperSetting(trained, ImageEvaluationConfig(protocol="tsai2021"), None)


def differences_from_paper(result: Mapping[str, Any], num_seeds: int) -> list[str]:
    """Every setting that is not the paper's, in words; none for a result that the paper has no number for."""
    ours, evaluation = result["pretrain_config"], result["evaluation_config"]
    paper = paper_setting(_subject(ours), ours["method"])
    if paper is None:
        return []
    found = _differing(_run_values(ours), _run_values(to_dict(paper.run)), NOT_COMPARED_RUN, result)
    found += _differing(
        _evaluation_values(evaluation, paper.evaluation, ours),
        _evaluation_values(to_dict(paper.evaluation), paper.evaluation, ours),
        NOT_COMPARED_EVALUATION,
        result,
    )
    precision = result["training"].get("precision", PAPER_PRECISION)
    if precision != PAPER_PRECISION:
        found.append(f"trained in {precision}, not {PAPER_PRECISION}")
    if paper.num_seeds is not None and num_seeds != paper.num_seeds:
        found.append(f"{num_seeds} seed{'s' * (num_seeds != 1)}, not {paper.num_seeds}")
    return found


def setting_sentence(result: Mapping[str, Any]) -> str:
    """How a result with its `differences_from_paper` stands to the published numbers, for people."""
    ours = result["pretrain_config"]
    subject = _subject(ours)
    if paper_setting(subject, ours["method"]) is None:
        return f"{PAPER} has no number for {ours['method']} on {subject}."
    if result["differences_from_paper"]:
        return f"Not the paper's setting: {'; '.join(result['differences_from_paper'])}."
    return "The paper's setting."


def _subject(run: Mapping[str, Any]) -> str:
    return str(run["game"] if "game" in run else run["dataset"])


def _differing(
    ours: Mapping[str, Any], paper: Mapping[str, Any], not_compared: Iterable[str], result: Mapping[str, Any]
) -> list[str]:
    names = [name for name in {**paper, **ours} if name not in not_compared]
    return [
        _tell(name, ours.get(name), paper.get(name), paper, result)
        for name in names
        if ours.get(name) != paper.get(name)
    ]


def _run_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """A run's settings with its method's beside them; as many images as there are means all."""
    flat = {key: value for key, value in values.items() if key not in ("settings", "protocol")}
    flat |= {"pretraining_protocol": values["protocol"]}  # the evaluation has one of its own
    flat |= {f"settings.{key}": value for key, value in values["settings"].items()}
    if flat.get("num_images", 0) >= NUM_IMAGES.get(_subject(values), (10**12,))[0]:
        del flat["num_images"]
    return flat


def _evaluation_values(values: Mapping[str, Any], paper: object, run: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with what `auto` stands for, and the paper's name for an annotation set that equals its own."""
    config = from_dict(type(paper), {key: values[key] for key in values if hasattr(paper, key)})
    if isinstance(config, ImageEvaluationConfig):
        return {**values, "probe_features": "augmented" if config.is_augmented else "cached"}
    assert isinstance(config, EvaluationConfig)
    assert isinstance(paper, EvaluationConfig)
    init = config.resolved_init if config.probe == "linear" else paper.resolved_init  # of the linear probe alone
    known: dict[str, Any] = {"probe_init": init, "probe_store": config.probe_store}
    if _are_equal_sets(run["game"], config.annotation_set, paper.annotation_set):
        known["annotation_set"] = paper.annotation_set
    return {**values, **known}


def _are_equal_sets(game: str, *names: str) -> bool:
    """Whether these annotation sets have the same variables for a game: in most games 2019's and 2020's do."""
    entry = find_game(game)
    return all(name in sets_with(entry) for name in names) and len({annotations(entry, name) for name in names}) == 1


def _tell(name: str, ours: Any, paper: Any, others: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    if name == "collect_steps":
        return f"{ours:,} frames of play, not {paper:,}"
    if name == "probe_steps":
        return f"probed on {ours:,} frames, not {paper:,}"
    if name == "num_images":
        return f"{ours:,} training images, not all"
    if name == "max_steps":
        return f"{result['training']['steps']:,} training steps, not up to {others['max_epochs']} epochs"
    words = name.removeprefix("settings.").removeprefix("max_").replace("_", " ")
    return f"{words} {_shown(ours)}, not {_shown(paper)}"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
