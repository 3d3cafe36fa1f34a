"""The page of a run on images, from the files in its directory: `report.html`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.bench.published import IMAGE_SOURCE, published_image_accuracy
from manicap.core.files import atomic_write
from manicap.core.results import read_result
from manicap.evaluate.image_result import ImagePredictions
from manicap.images.dataset import ImageRows
from manicap.images.selection import has_images, open_images
from manicap.report.contents import Fact
from manicap.report.curves import training_charts
from manicap.report.diagnostics import observation_charts, read_diagnosis
from manicap.report.image_contents import ImagePage, ImageScore, NeighborRow, Picture
from manicap.report.page import build_page
from manicap.report.png import image_text
from manicap.train.logs import METRICS, read_log

LARGEST_PICTURE = 48


def write_image_page(run_dir: Path, data_dir: Path) -> Path:
    """Build `report.html` from `result.json`, `metrics.jsonl`, `predictions.npz`, `diagnostics.json` and the images."""
    result = read_result(run_dir / "result.json")
    evaluation = result["evaluation"]
    differences = result["differences_from_paper"]
    page = ImagePage(
        title=f"{result['dataset']}: {result['method']}",
        method=result["method"],
        overall=_score("accuracy", evaluation, "accuracy"),
        top5=_score("among the first five", evaluation, "top5") if "top5" in evaluation["scores"] else None,
        classes=tuple(_score(name, evaluation, "classes", name) for name in evaluation["scores"]["classes"]),
        published=tuple(published_image_accuracy(result["dataset"]).items()),
        published_source=IMAGE_SOURCE,
        caveat="; ".join(differences) + "." if differences else "",
        facts=_facts(result),
        charts=(*training_charts(read_log(run_dir, METRICS)), *observation_charts(run_dir)),
        neighbors=_neighbors(run_dir, result, data_dir),
        diagnosis=read_diagnosis(run_dir),
        probe_note=_probe_note(evaluation),
    )
    path = run_dir / "report.html"
    atomic_write(path, build_page(page).encode())
    return path


def _score(name: str, evaluation: Mapping[str, Any], *path: str) -> ImageScore:
    def value(scores: Any) -> float:
        for key in path:
            scores = scores[key]
        return float(scores)

    floors = evaluation["floors"]
    return ImageScore(name, value(evaluation["scores"]), value(floors["untrained"]), value(floors["majority"]))


def _facts(result: Mapping[str, Any]) -> tuple[Fact, ...]:
    config, evaluation = result["pretrain_config"], result["evaluation"]
    settings = ", ".join(f"{name} {value}" for name, value in config["settings"].items())
    options = ", ".join(f"{name} {value}" for name, value in evaluation["probe_options"].items())
    entries = {
        "Dataset": result["dataset"],
        "Method": f"{result['method']} ({settings})",
        "Seed": str(result["seed"]),
        "Trained": f"{result['training']['epochs']:,} epochs, {result['training']['steps']:,} steps of"
        f" {config['batch_size']} images, views {config['recipe']}",
        "Probed": f"{evaluation['probe']} probe on {evaluation['width']:,} features ({options})",
        "Images": f"{evaluation['counts']['train']:,} training, {evaluation['counts']['test']:,} test",
        "Protocol": f"{evaluation['protocol']}, {'last' if evaluation['protocol'] == 'clean' else 'best'} weights",
        "Versions": ", ".join(f"{name} {number}" for name, number in sorted(result["versions"].items())),
    }
    return tuple(Fact(name, value) for name, value in entries.items())


def _probe_note(evaluation: Mapping[str, Any]) -> str:
    options = evaluation["probe_options"]
    if evaluation["probe"] == "knn":
        return f"The {options['k']} training images nearest to a test image, by frozen features, vote for its class."
    if options["features"] == "cached":
        return "The probe is trained on labelled training images and sees frozen features."
    statistics = "follow these views" if options["statistics"] == "moving" else "are frozen too"
    return (
        "The probe is trained on new views of labelled training images in every epoch."
        f" The encoder's weights are frozen; its batch statistics {statistics}."
    )


def _neighbors(run_dir: Path, result: Mapping[str, Any], data_dir: Path) -> tuple[NeighborRow, ...]:
    """Test images with their nearest training images; nothing if the images are no longer the same."""
    config = result["pretrain_config"]
    if not has_images(config["dataset"], data_dir):
        return ()
    train = open_images(config["dataset"], "train", data_dir, config.get("num_images"))
    test = open_images(config["dataset"], "test", data_dir)
    if f"{train.fingerprint}-{test.fingerprint}" != result["evaluation"]["store"]:
        return ()
    predictions = ImagePredictions.load(run_dir / "predictions.npz", result["predictions_sha256"])
    names = test.class_names

    def picture(images: ImageRows, row: int, label: int) -> Picture:
        return Picture(image_text(shrink(images[row])), names[label])

    return tuple(
        NeighborRow(
            picture(test.images, row, predictions.true[row]),
            names[predictions.decoded[row]],
            tuple(picture(train.images, n, label) for n, label in zip(nearest, labels, strict=True)),
        )
        for row, nearest, labels in zip(predictions.shown, predictions.nearest, predictions.nearest_labels, strict=True)
    )


def shrink(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Means of squares of pixels where the shorter side has twice 48 or more: a page of large images stays small."""
    factor = max(1, min(image.shape[1:]) // LARGEST_PICTURE)
    height, width = (size // factor * factor for size in image.shape[1:])
    squares = image[:, :height, :width].reshape(3, height // factor, factor, width // factor, factor)
    return squares.mean((2, 4)).round().astype(np.uint8)
