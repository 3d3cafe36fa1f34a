"""The page of a run that is probed for classes, built from the files in its directory: `report.html`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.core.config import to_dict
from manicap.core.files import atomic_write
from manicap.domains.result import RunResult
from manicap.probing.class_result import ClassEvaluation, ClassPredictions, ClassScores
from manicap.report.class_labels import PUBLISHED_NOTE, class_labels, is_probed_as_published
from manicap.report.contents import Fact
from manicap.report.curves import training_charts
from manicap.report.diagnostics import observation_charts, read_diagnosis
from manicap.report.image_contents import ImagePage, ImageScore, NeighborRow, Picture
from manicap.report.page import build_page
from manicap.report.png import image_text
from manicap.train.logs import METRICS, read_log

LARGEST_PICTURE = 48


def write_class_page(run_dir: Path, data_dir: Path) -> Path:
    """Build `report.html` from `result.json`, `metrics.jsonl`, `predictions.npz`, `diagnostics.json` and the images."""
    result = RunResult.read(run_dir / "result.json")
    evaluation: ClassEvaluation = result.evaluation
    differences = result.differences_from_paper
    page = ImagePage(
        title=f"{result.subject}: {result.method}",
        method=result.method,
        overall=_score("accuracy", evaluation, lambda scores: scores.accuracy),
        top5=_score("top-5", evaluation, lambda scores: scores.top5 or 0.0)
        if evaluation.scores.top5 is not None
        else None,
        classes=tuple(_class_score(name, evaluation) for name in evaluation.scores.classes),
        published=tuple((entry.method, entry.scores["accuracy"][0]) for entry in result.published),
        published_source=result.domain.source,
        caveat="; ".join(differences) + "." if differences else "",
        facts=_facts(result),
        charts=(*training_charts(read_log(run_dir, METRICS)), *observation_charts(run_dir)),
        neighbors=_neighbors(run_dir, result, data_dir),
        diagnosis=read_diagnosis(run_dir),
        probe_note=_probe_note(evaluation),
        probe=evaluation.probe,
        published_note="" if is_probed_as_published(evaluation) else PUBLISHED_NOTE,
        labels=class_labels(evaluation),
    )
    path = run_dir / "report.html"
    atomic_write(path, build_page(page).encode())
    return path


def _score(name: str, evaluation: ClassEvaluation, value: Callable[[ClassScores], float]) -> ImageScore:
    floors = evaluation.floors
    return ImageScore(name, value(evaluation.scores), value(floors["untrained"]), value(floors["majority"]))


def _class_score(name: str, evaluation: ClassEvaluation) -> ImageScore:
    return _score(name, evaluation, lambda scores: scores.classes[name])


def _facts(result: RunResult) -> tuple[Fact, ...]:
    config, evaluation, training = result.config, result.evaluation, result.training
    settings = ", ".join(f"{name} {value}" for name, value in to_dict(config.settings).items())
    options = ", ".join(f"{name} {value}" for name, value in evaluation.probe_options.items())
    views = f", views {config.recipe}" if hasattr(config, "recipe") else ""
    entries = {
        "Dataset": result.subject,
        "Method": f"{result.method} ({settings})",
        "Seed": str(result.seed),
        "Trained": f"{training.epochs:,} epochs, {training.steps:,} steps of {config.batch_size} images{views}",
        "Probed": f"{evaluation.probe} probe on {evaluation.width:,} features ({options})",
        "Images": f"{evaluation.counts['train']:,} training, {evaluation.counts['test']:,} test",
        "Protocol": f"{evaluation.protocol}, {'best' if evaluation.protocol == 'tsai2021' else 'last'} weights",
        "Versions": ", ".join(f"{name} {number}" for name, number in sorted(result.versions.items())),
    }
    return tuple(Fact(name, value) for name, value in entries.items())


def _probe_note(evaluation: ClassEvaluation) -> str:
    options = evaluation.probe_options
    if evaluation.probe == "knn":
        return f"The {options['k']} training images with the nearest frozen features vote on the class of a test image."
    if options.get("features", "cached") == "cached":
        return "The probe is trained on labelled training images and sees frozen features."
    statistics = "follow these views" if options["statistics"] == "moving" else "are frozen too"
    return (
        "In every epoch the probe is trained on new views of labelled training images."
        f" The encoder's weights are frozen; its batch statistics {statistics}."
    )


def _neighbors(run_dir: Path, result: RunResult, data_dir: Path) -> tuple[NeighborRow, ...]:
    """Test images with their nearest training images; empty if the images have changed since."""
    seen = result.domain.pictures(result.config, data_dir)
    if seen is None or seen.fingerprint != result.evaluation.store:
        return ()
    predictions = ClassPredictions.load(run_dir / "predictions.npz", result.predictions_sha256)

    def picture(image: NDArray[np.uint8], label: int) -> Picture:
        return Picture(image_text(shrink(image)), seen.class_names[label])

    return tuple(
        NeighborRow(
            picture(seen.test[row], predictions.true[row]),
            seen.class_names[predictions.decoded[row]],
            tuple(picture(seen.train[n], label) for n, label in zip(nearest, labels, strict=True)),
        )
        for row, nearest, labels in zip(predictions.shown, predictions.nearest, predictions.nearest_labels, strict=True)
    )


def shrink(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Average square blocks of pixels if the shorter side has at least twice 48, so that the page stays small."""
    factor = max(1, min(image.shape[1:]) // LARGEST_PICTURE)
    height, width = (size // factor * factor for size in image.shape[1:])
    squares = image[:, :height, :width].reshape(len(image), height // factor, factor, width // factor, factor)
    return squares.mean((2, 4)).round().astype(np.uint8)
