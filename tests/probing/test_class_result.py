import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from manicap.core.errors import UserError
from manicap.domains.evaluation import FORMAT
from manicap.domains.images.evaluation import majority
from manicap.probing.class_result import CLASS, ClassEvaluation, ClassPredictions, ClassScores, score_classes
from manicap.probing.reading import Reading

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
    with pytest.raises(UserError, match=f"format 9, but this version reads {FORMAT}"):
        ClassEvaluation.from_dict(evaluation().to_dict() | {"format": 9})


def reading(*draws):
    """Label curves at 100, 200, 400 and 800 labels."""
    return Reading(
        counts=(100, 200, 400, 800),
        curves={CLASS: draws},
        bits={CLASS: 10.0},
        plain_bits=20.0,
        control={},
        components={},
        random={},
        at_end=(),
        unconverged=0,
    )


def with_curves(**floors):
    readings = {"encoder": reading((0.3, 0.5, 0.6, 0.7), (0.3, 0.5, 0.6, None)), **floors}
    scores = ClassScores(0.5, 0.75, dict.fromkeys(NAMES, 0.5))
    return replace(evaluation(), scores=scores, floors={}, readings=readings)


def test_labels_saved_are_read_off_the_curves():
    # With 200 labels the encoder has 0.5; the untrained network has 0.4 with 400 and 0.6 with 800: halfway.
    found = with_curves(untrained=reading((0.1, 0.2, 0.4, 0.6), (0.1, 0.2, 0.4, None)))
    saved = found.saved["untrained"]
    expected = np.sqrt(400 * 800) / 200
    assert saved.at == 200
    assert saved.overall.factor == pytest.approx(expected, rel=1e-12)
    assert saved.overall.low == pytest.approx(expected)  # both draws alike
    assert list(found.metrics) == ["labels_saved", "accuracy", "top5"]
    assert found.metrics["labels_saved"] == saved.overall.factor
    # The probe of the accuracies and that of the curves are both named.
    assert "linear probe on 64 features" in str(found)
    assert "labels saved against untrained: 2.83 x at 200 labels (F1 of a converged logistic regression)" in str(found)
    restored = ClassEvaluation.from_dict(json.loads(json.dumps(found.to_dict())))
    assert restored == found
    assert restored.metrics == found.metrics


def test_without_curves_nothing_is_said_of_labels():
    assert evaluation().saved == {}
    assert list(evaluation().metrics) == ["accuracy", "top5"]
    assert "labels" not in str(evaluation())


def test_a_floor_brings_its_curves():
    found, other = with_curves(), with_curves()
    other.scores = ClassScores(0.1, 0.2, dict.fromkeys(NAMES, 0.1))
    found.add_floor("untrained", other)
    assert found.readings["untrained"] == other.readings["encoder"]
    assert found.saved["untrained"].overall.factor == pytest.approx(1)
    other = replace(other, width=32)
    found.add_floor("pixels", other)
    assert found.readings["pixels (32)"] == other.readings["encoder"]


@pytest.mark.parametrize("counts", [(5, 5, 5), (8, 1, 1)])
def test_knowing_nothing_is_the_better_of_two_guesses(counts):
    true = np.repeat(np.arange(3), counts)
    names = ("a", "b", "c")
    floors = {"majority": majority(true, true, names)}
    found = replace(evaluation(), scores=score_classes(np.eye(3)[true], true, names), floors=floors)
    always = f1_score(true, np.zeros_like(true), average="weighted")
    assert found.knowing_nothing(CLASS) == pytest.approx(max(1 / 3, always), rel=1e-12)
    assert (always > 1 / 3) == (counts == (8, 1, 1))
    assert replace(found, floors={}).knowing_nothing(CLASS) == 1 / 3
