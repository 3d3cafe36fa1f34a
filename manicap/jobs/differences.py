"""How a result differs from the setting of the published numbers, so that nobody takes a quick run for a reproduction.

Every field of the run's config, of its method's settings and of the evaluation's config is compared with the paper's.
Fields that need not agree are listed here; a field added to a config is compared automatically.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from manicap.domains.result import RunResult

PAPER = "arXiv 2405.13848"
NOT_COMPARED_RUN = {
    "domain": "which run it is",
    "game": "which run it is",
    "dataset": "which run it is",
    "method": "which run it is",
    "seed": "which run it is",
    "annotation_set": "labels to learn from, which no method of the paper uses",
}
NOT_COMPARED_EVALUATION = {
    "neighbors": "of the knn probe, whose difference from the paper's probe is already listed",
    "neighbor_temperature": "likewise",
}
PAPER_PRECISION = "float32"
"""A Tesla V100 has no bfloat16, and the published code does not use float16."""


def differences_from_paper(result: RunResult, num_seeds: int) -> list[str]:
    """Every setting that is not the paper's, in words; empty for a result that the paper has no number for."""
    domain = result.domain
    paper = domain.paper_setting(result.config.full_subject, result.method)
    if paper is None:
        return []
    ours, trained = (_flat(domain.run_values(each)) for each in (result.config, paper.config))
    found = _differing(ours, trained, NOT_COMPARED_RUN, result)
    asked, theirs = (
        domain.evaluation_values(each, paper.evaluation, result.config)
        for each in (result.evaluation_config, paper.evaluation)
    )
    found += _differing(asked, theirs, NOT_COMPARED_EVALUATION, result)
    precision = result.training.precision
    if precision != PAPER_PRECISION:
        found.append(f"trained in {precision}, not {PAPER_PRECISION}")
    if paper.num_seeds is not None and num_seeds != paper.num_seeds:
        found.append(f"{num_seeds} seed{'s' * (num_seeds != 1)}, not {paper.num_seeds}")
    return found


def setting_sentence(result: RunResult) -> str:
    """One sentence on how a result, with its `differences_from_paper`, relates to the published numbers."""
    subject = result.config.full_subject
    if result.domain.paper_setting(subject, result.method) is None:
        return f"{PAPER} has no number for {result.method} on {subject}."
    if result.differences_from_paper:
        return f"Not the paper's setting: {'; '.join(result.differences_from_paper)}."
    return "The paper's setting."


def _differing(
    ours: Mapping[str, Any], paper: Mapping[str, Any], not_compared: Iterable[str], result: RunResult
) -> list[str]:
    names = [name for name in {**paper, **ours} if name not in not_compared]
    return [
        _tell(name, ours.get(name), paper.get(name), paper, result)
        for name in names
        if ours.get(name) != paper.get(name)
    ]


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """A run's settings together with its method's."""
    flat = {key: value for key, value in values.items() if key not in ("settings", "protocol")}
    flat |= {"pretraining_protocol": values.get("protocol")}  # the evaluation has one of its own
    return flat | {f"settings.{key}": value for key, value in values["settings"].items()}


def _tell(name: str, ours: Any, paper: Any, others: Mapping[str, Any], result: RunResult) -> str:
    if name == "collect_steps":
        return f"{ours:,} frames of play, not {paper:,}"
    if name == "probe_steps":
        return f"probed on {ours:,} frames, not {paper:,}"
    if name == "num_images":
        return f"{ours:,} training images, not all"
    if name == "max_steps":
        return f"{result.training.steps:,} training steps, not up to {others['max_epochs']} epochs"
    words = name.removeprefix("settings.").removeprefix("max_").replace("_", " ")
    return f"{words} {_shown(ours)}, not {_shown(paper)}"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
