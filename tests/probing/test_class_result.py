import json
from dataclasses import replace

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.domains.images.evaluation import majority
from manicap.probing.class_result import ClassEvaluation, ClassPredictions, ClassScores, score_classes

NAMES = ("a", "b", "c", "d", "e", "f")


def test_accuracies_by_hand():
    # First choices c, a, c, f; the true class of the second image comes fifth, that of the fourth sixth.
    scores = np.array([[0, 1, 9, 2, 3, 4], [9, 1, 5, 6, 7, 0], [0, 0, 1, 0, 0, 0], [1, 2, 3, 4, 5, 6]], float)
    found = score_classes(scores, np.array([2, 1, 2, 0]), NAMES)
    assert (found.accuracy, found.top5) == (0.5, 0.75)
    assert found.classes == {"a": 0.0, "b": 0.0, "c": 1.0}  # classes without a test image have no accuracy


def test_with_five_classes_every_one_is_among_the_first_five_so_nothing_is_said():
    found = score_classes(np.eye(5), np.arange(5), NAMES[:5])
    assert found.top5 is None
    assert found.to_dict() == {"accuracy": 1.0, "classes": dict.fromkeys(NAMES[:5], 1.0)}
    assert ClassScores.from_dict(found.to_dict()) == found
    text = str(replace(evaluation(), scores=found, floors={}))
    assert "accuracy" in text
    assert "top 5" not in text


def test_of_equal_scores_the_first_class_is_chosen():
    found = score_classes(np.zeros((2, 6)), np.array([0, 5]), NAMES)
    assert (found.accuracy, found.top5) == (0.5, 0.5)


def test_the_majority_is_that_of_the_training_images():
    found = majority(np.array([1, 1, 0, 2]), np.array([1, 0, 0, 0]), NAMES)
    assert found.accuracy == 0.25
    assert found.classes == {"a": 0.0, "b": 1.0}


def evaluation():
    scores = ClassScores(0.5, 0.75, {"a": 0.5})
    return ClassEvaluation(
        subject="cifar10",
        protocol="clean",
        probe="linear",
        probe_options={"epochs": 200},
        width=64,
        seed=0,
        store="train-test",
        encoder="abc",
        threads=1,
        counts={"train": 10, "test": 4},
        scores=scores,
        seconds={"probe": 1.0},
        floors={"untrained": ClassScores(0.25, 0.5, {"a": 0.25})},
    )


def test_an_evaluation_survives_json_and_prints_its_numbers():
    restored = ClassEvaluation.from_dict(json.loads(json.dumps(evaluation().to_dict())))
    assert restored == evaluation()
    assert "accuracy      0.500      0.250" in str(restored)


def test_predictions_survive_the_disk(tmp_path):
    arrays = [np.arange(4), np.arange(4)[::-1].copy(), np.array([2]), np.array([[1, 0]]), np.array([[3, 3]])]
    sha256 = ClassPredictions(*arrays).save(tmp_path / "predictions.npz")
    loaded = ClassPredictions.load(tmp_path / "predictions.npz", sha256)
    for name, expected in zip(("true", "decoded", "shown", "nearest", "nearest_labels"), arrays, strict=True):
        np.testing.assert_array_equal(getattr(loaded, name), expected)


def test_another_format_is_refused():
    with pytest.raises(UserError, match="format 9, but this version reads 2"):
        ClassEvaluation.from_dict(evaluation().to_dict() | {"format": 9})
