import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, f1_score, r2_score

from manicap.probing.metrics import Scores, accuracy, explained_variance, score_labels, weighted_f1

shapes = st.tuples(st.integers(1, 40), st.integers(1, 4))
# Few classes, so that hits are common, and all 256, so that the bounds are met.
label_pairs = shapes.flatmap(
    lambda shape: st.sampled_from([st.integers(0, 3), st.integers(0, 255), st.integers(253, 255)]).flatmap(
        lambda classes: st.tuples(*[arrays(np.uint8, shape, elements=classes)] * 2)
    )
)


@settings(max_examples=150, deadline=None)
@given(label_pairs)
def test_f1_and_accuracy_equal_scikit_learn(pair):
    true, predicted = pair
    for v, (f1, share) in enumerate(zip(weighted_f1(true, predicted), accuracy(true, predicted), strict=True)):
        expected = f1_score(true[:, v], predicted[:, v], average="weighted", zero_division=0)
        assert f1 == pytest.approx(expected, abs=1e-12)
        assert share == pytest.approx(accuracy_score(true[:, v], predicted[:, v]), abs=1e-12)


def test_weighted_f1_by_hand():
    # Class 0: true 3, predicted 2, hits 2: F1 4/5. Class 1: true 1, predicted 2, hits 1: F1 2/3. (3 x 4/5 + 2/3) / 4.
    true, predicted = np.array([[0], [0], [0], [1]], np.uint8), np.array([[0], [0], [1], [1]], np.uint8)
    assert weighted_f1(true, predicted)[0] == pytest.approx((3 * 4 / 5 + 2 / 3) / 4, abs=1e-15)


def test_explained_variance_equals_scikit_learn():
    rng = np.random.default_rng(0)
    true = 1e3 + rng.standard_normal((50, 3))
    predicted = true + rng.standard_normal((50, 3)) * [0.1, 1, 10]
    expected = r2_score(true, predicted, multioutput="raw_values")
    np.testing.assert_allclose(explained_variance(true, predicted), expected, rtol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 0.1, 2.7, -5.1, 1e6 + 0.1, 7.0])
def test_of_a_constant_there_is_nothing_to_explain_whether_its_mean_is_rounded_or_not(constant):
    # 0.1 is no binary fraction: the mean of 1,000 of it differs from it by 1e-17, and R2 would be -1e29.
    true = np.full((1000, 1), constant)
    for predicted in (true, true + 0.01):
        assert explained_variance(true, predicted).tolist() == [0.0]


def test_a_variable_counts_in_two_categories_or_in_none():
    # Accuracies: a 1, b 0, c 1/2. Category x has a and b: 1/2; y has b: 0; z only has a dropped variable; c is in none.
    true = np.array([[1, 1, 1], [1, 1, 1]], np.uint8)
    predicted = np.array([[1, 2, 1], [1, 2, 3]], np.uint8)
    scores = score_labels(true, predicted, ("a", "b", "c"), {"x": ("a", "b"), "y": ("b",), "z": ("dropped",)})
    assert {name: score.accuracy for name, score in scores.categories.items()} == {"x": 0.5, "y": 0.0}
    assert scores.accuracy == 0.25
    assert scores.variables["c"].accuracy == 0.5
    assert Scores.from_dict(scores.to_dict()) == scores


@pytest.mark.parametrize(
    ("true", "predicted"),
    [
        (np.zeros(3, np.uint8), np.zeros(3, np.uint8)),
        (np.zeros((3, 1), np.uint8), np.zeros((3, 2), np.uint8)),
        (np.zeros((3, 1), np.float32), np.zeros((3, 1), np.uint8)),
        (np.zeros((0, 1), np.uint8), np.zeros((0, 1), np.uint8)),
    ],
)
def test_wrong_labels_are_named(true, predicted):
    with pytest.raises(ValueError, match=r"whole numbers from 0, \[n, V\]"):
        weighted_f1(true, predicted)
