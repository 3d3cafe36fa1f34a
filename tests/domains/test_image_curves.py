"""Label curves of images: what is read from few labelled images and from all."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from manicap.bench.cell import Job, run_cell
from manicap.bench.grid import build_grid
from manicap.bench.scores import gather_scores
from manicap.domains.images.evaluation import PROTOCOLS, ImageBench, evaluate_any, evaluate_images
from manicap.domains.images.label_curves import read_classes
from manicap.images.recipes import CIFAR10_TSAI2021
from manicap.images.selection import open_images
from manicap.probing.class_result import CLASS, ClassEvaluation
from manicap.probing.classes import LinearProbeConfig
from manicap.probing.encoders import FrameEncoder
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData
from manicap.probing.votes import NeighborsConfig
from manicap.report.grid_report import write_grid_report
from manicap.report.pages import write_page
from manicap.train.setup import Execution
from tests.algorithms.small_images import build_small


def blobs(num_images, distance, seed, width=6, num_classes=3):
    """Gaussian features around a corner of a simplex for each class, and the classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, num_images)
    features = distance * np.eye(num_classes, width)[labels] + rng.standard_normal((num_images, width))
    return features.astype(np.float32), labels


def read(train, test):
    """The reading of an encoder, from the features and classes of both splits."""
    return read_classes({"encoder": (train[0], test[0])}, train[1], test[1], seed=0, quiet=True)


def test_classes_that_are_far_apart_need_the_fewest_labels():
    # Corners 20 standard deviations from each other: fifty labels show them all.
    (reading,) = read(blobs(400, 14, 0), blobs(100, 14, 1)).values()
    assert reading.counts == (50, 100, 200, 400)
    assert np.nanmin(reading.scores((CLASS,))) == 1
    assert [sum(value is not None for value in draw) for draw in reading.curves[CLASS]] == [4, 3, 3, 3, 3]


def test_shuffled_labels_are_guessed():
    rng = np.random.default_rng(2)
    splits = (blobs(800, 3, 0, num_classes=4), blobs(4000, 3, 1, num_classes=4))
    (reading,) = read(*((features, rng.permutation(labels)) for features, labels in splits)).values()
    # Whatever is said, a quarter is right, with a deviation of sqrt(3/16 / 4000) = 0.007; F1 is at most that.
    assert np.nanmax(reading.scores((CLASS,))) < 0.25 + 4 * 0.007
    assert np.nanmin(reading.scores((CLASS,))) >= 0


def test_all_labels_give_the_logistic_regression_of_scikit_learn():
    # Correlated features of other scales, as networks have them: what tells the classes apart varies little.
    mix = np.linalg.qr(np.random.default_rng(2).standard_normal((40, 40)))[0] * np.geomspace(0.05, 5, 40)[:, None]
    n = 1000
    (x, y), (x_test, y_test) = blobs(n, 2, 0, width=40), blobs(2000, 2, 1, width=40)
    x, x_test = ((each @ mix + 3).astype(np.float32) for each in (x, x_test))
    (reading,) = read((x, y), (x_test, y_test)).values()
    (l2,) = RidgeProbes(seed=0, curves=False).fit(ProbeData(x, y[:, None], np.arange(n), ("class",))).names_[0, n].l2
    deviation = x.std(0)
    scale = np.maximum(deviation, 0.3 * np.median(deviation))
    # The mean loss plus l2 / 2 |W|^2 is the summed loss times C plus 1/2 |W|^2, divided by C n, with C = 1 / (l2 n).
    expected = LogisticRegression(C=1 / (l2 * n), tol=1e-8, max_iter=10_000).fit((x - x.mean(0)) / scale, y)
    f1 = f1_score(y_test, expected.predict((x_test - x.mean(0)) / scale), average="weighted")
    assert 0.5 < f1 < 0.95
    assert reading.curves[CLASS][0][-1] == pytest.approx(f1, abs=0.002)


def test_constant_features_name_one_class():
    labels = np.arange(100) % 4
    features = np.ones((100, 4), np.float32)
    (reading,) = read((features, labels), (features, labels)).values()
    # F1 of the class that is always named is 2 x 25 / (25 + 100) = 0.4, for a quarter of the images.
    assert np.nanmin(reading.scores((CLASS,))) == np.nanmax(reading.scores((CLASS,))) == pytest.approx(0.1)


def test_fewer_images_than_the_fewest_labels_have_no_curve():
    assert read(blobs(49, 3, 0), blobs(20, 3, 1)) == {}
    (reading,) = read(blobs(50, 3, 0), blobs(20, 3, 1)).values()
    assert reading.counts == (50,)


@pytest.fixture(scope="module")
def bench(image_folder):
    train, test = (open_images(str(image_folder), split, image_folder) for split in ("train", "test"))
    few = NeighborsConfig(k=5)
    return ImageBench(train, test, CIFAR10_TSAI2021, PROTOCOLS["clean"], linear=LinearProbeConfig(32, 2), neighbors=few)


def test_an_encoder_that_is_its_own_floor_saves_nothing(bench):
    method = build_small("simclr", encoder_width=8)
    found = evaluate_images(bench, method, "simclr", {"untrained": method})
    assert set(found.readings) == {"encoder", "untrained"}
    assert found.readings["encoder"] == found.readings["untrained"]
    saved = found.saved["untrained"]
    # 96 images: curves of 50 and 96 labels, compared at the largest that is not above 200. It rises.
    assert saved.at == 96
    assert saved.overall.factor == pytest.approx(1, rel=1e-12)
    assert saved.overall.bound == ""
    assert found.metrics["labels_saved"] == saved.overall.factor
    assert next(iter(found.metrics)) == "labels_saved"
    assert found.seconds["curves"] > 0
    restored = ClassEvaluation.from_dict(json.loads(json.dumps(found.to_dict())))
    assert restored == found
    assert restored.saved == found.saved


def test_neighbours_and_new_views_have_no_curves(bench):
    method = build_small("simclr", encoder_width=8)
    views = replace(PROTOCOLS["clean"], augmented=True)
    for other in (replace(bench, probe="knn"), replace(bench, protocol=views)):
        found = evaluate_images(other, method, "simclr", {"untrained": method})
        assert (found.readings, found.saved) == ({}, {})
        assert "labels_saved" not in found.metrics


def test_functions_have_curves_and_floors_too(bench):
    # The mean of each colour, by which stripes of three colours are told apart, against a corner of the picture.
    def colours(images):
        return images.mean((2, 3)).astype(np.float32)

    def corner(images):
        return images[:, :, 0, 0].astype(np.float32)

    found = evaluate_any(bench, FrameEncoder(colours), {"corner": FrameEncoder(corner)})
    own, floor = (found.readings[name].scores((CLASS,)) for name in ("encoder", "corner"))
    assert np.nanmean(own) > np.nanmean(floor)
    saved = found.saved["corner"].overall
    # With 96 labels the corner is worse than the colours: it would need more than there are.
    assert (saved.factor, saved.bound) == (1, "at least")
    assert "labels_saved" not in found.metrics  # which is against the untrained network
    assert "labels saved against corner: at least 1 x at 96 labels" in str(found)


def test_a_grid_reports_labels_saved_and_accuracy(image_folder, tmp_path):
    values = {
        "domain": "images",
        "datasets": [str(image_folder)],
        "methods": ["simclr"],
        "run": {"encoder_width": 8, "units": 8, "hidden_units": 8, "batch_size": 16, "max_steps": 2, "max_epochs": 1},
        "evaluations": [{"probe_epochs": 2}],
    }
    grid = build_grid(values, "images")
    (cell,) = grid.cells
    execution = Execution(threads=1, quiet=True)
    assert run_cell(Job(cell, execution, tmp_path / "runs", tmp_path), show=write_page).status == "done"
    (score,) = gather_scores(grid, tmp_path / "runs").scores
    assert list(score.metrics) == ["labels_saved", "accuracy"]
    page = write_grid_report(grid, tmp_path / "runs", tmp_path / "report").read_text()
    assert "Labels saved" in page
    assert "accuracy" in page
