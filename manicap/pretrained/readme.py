"""README.md of a saved encoder: the head that hubs read, how to load it, and its score beside the floors."""

import json
from collections.abc import Sequence
from typing import Any

from manicap.pretrained.card import EncoderCard, ProbedScore

WORDS = {"labels_saved": "labels saved", "r2": "R²", "f1": "F1", "macro_f1": "macro F1", "top5": "top 5"}
PICTURE = "label-curves.png"


def write_readme(
    card: EncoderCard, name: str, layer: str, num_features: int, input_shape: Sequence[int], license: str | None
) -> str:
    """The README in Markdown. `name` is its name on a hub, or that of its directory."""
    shape = ", ".join(map(str, input_shape))
    parts = [
        _head(card, license),
        f"# {_title(card)}",
        f"An encoder of manicap ([arXiv 2405.13848](https://arxiv.org/abs/2405.13848)): uint8 frames [B, {shape}] to"
        f" {num_features:,} features (`{layer}`).",
        f"""```python
import manicap
import torch

encoder = manicap.load({json.dumps(name)})  # pip install "manicap[hub]"
features = encoder(torch.zeros(1, {shape}, dtype=torch.uint8))  # [1, {num_features}]
```""",
        *_score(card.score),
        f"## Training\n\n{_training(card)}",
    ]
    return "\n\n".join(parts) + "\n"


def _title(card: EncoderCard) -> str:
    return card.method if card.subject is None else f"{card.method} on {card.subject}"


def _head(card: EncoderCard, license: str | None) -> str:
    """YAML, with every value as JSON, which is also YAML."""
    tags = ["manicap", "self-supervised", "state-representation", card.domain, card.method]
    values: dict[str, Any] = {"library_name": "manicap", "pipeline_tag": "image-feature-extraction"}
    values["tags"] = tags + ([] if card.subject is None else [card.subject])
    if license is not None:
        values["license"] = license
    if card.score is not None:
        values["model-index"] = [_index(card, card.score)]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---"])


def _index(card: EncoderCard, score: ProbedScore) -> dict[str, Any]:
    metrics = [{"type": key, "name": _word(key), "value": value} for key, value in score.metrics.items()]
    result = {
        "task": {"type": "image-feature-extraction"},
        "dataset": {"type": card.domain, "name": card.subject or card.domain},
        "metrics": metrics,
    }
    return {"name": _title(card), "results": [result]}


def _score(score: ProbedScore | None) -> list[str]:
    if score is None:
        return ["## Score\n\nIt was not probed."]
    metrics = list(score.metrics)
    rows = [["**this encoder**", *(_value(score, key) for key in metrics)]]
    for name, floor in sorted(score.floors.items(), key=lambda item: (item[0] != "untrained", item[0])):
        rows.append([name, *(f"{floor[key]:.3f}" if key in floor else "–" for key in metrics)])
    lines = ["| | " + " | ".join(map(_word, metrics)) + " |", "|---" * (len(metrics) + 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    sets = "" if score.annotation_set is None else f", annotations `{score.annotation_set}`"
    counts = ", ".join(f"{count:,} {name}" for name, count in score.counts.items())
    how = (
        f"Measured with the `{score.probe}` probe on {score.width:,} features (`{score.layer}`), protocol"
        f" `{score.protocol}`{sets}, seed {score.seed}; samples: {counts}. The untrained network is the same network"
        " with its initial weights."
    )
    found = ["## Score", "\n".join(lines), how]
    return [*found, f"![Score by number of labels]({PICTURE})"] if score.curves else found


def _value(score: ProbedScore, key: str) -> str:
    number = f"{score.metrics[key]:.3g}" if key == "labels_saved" else f"{score.metrics[key]:.3f}"
    return f"**{score.bounds[key]} {number}**" if key in score.bounds else f"**{number}**"


def _training(card: EncoderCard) -> str:
    facts = {
        "method": f"`{card.method}`",
        "learned from": card.subject or "not recorded",
        "steps": f"{card.steps:,}",
        "weights": card.weights,
        "seed": "not recorded" if card.seed is None else str(card.seed),
    }
    if card.view is not None:
        facts["frames"] = str(card.view)
    if card.score is not None and card.score.differences_from_paper:
        facts["differences from the paper"] = "; ".join(card.score.differences_from_paper)
    versions = card.versions if card.score is None else card.score.versions
    facts["versions"] = ", ".join(f"{name} {number}" for name, number in sorted(versions.items())) or "not recorded"
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())


def _word(metric: str) -> str:
    return WORDS.get(metric, metric.replace("_", " "))
