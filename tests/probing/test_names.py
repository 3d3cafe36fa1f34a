"""Names and exact values: logistic regression and discriminants, compared with scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from manicap.probing.discriminant import Discriminant
from manicap.probing.names import L2, NamesFit, fit_names
from manicap.probing.subsets import FOLDS


def make_names(count, num_features, num_classes=3, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(num_classes, size=count)
    centres = rng.standard_normal((num_classes, num_features))
    features = centres[labels] + spread * rng.standard_normal((count, num_features))
    return torch.from_numpy(features).float(), labels.astype(np.uint8)[:, None] * 5, rng.integers(FOLDS, size=count)


def variances(features):
    return features.var(0, correction=0)


@pytest.mark.parametrize(("count", "num_features"), [(200, 10), (60, 100)], ids=["primal", "fewer frames"])
def test_probabilities_are_those_of_scikit_learn_at_the_chosen_l2(count, num_features):
    features, labels, folds = make_names(count, num_features, spread=2.0)
    fit = fit_names(features, variances(features), labels, folds)
    assert fit.converged
    model = LogisticRegression(C=1 / (count * fit.l2[0]), tol=1e-8, max_iter=10_000)
    model.fit(features.double().numpy(), labels[:, 0])
    expected = model.predict_proba(features.numpy())[np.arange(count), labels[:, 0] // 5]
    np.testing.assert_allclose(fit.probabilities(features, labels)[:, 0], expected, atol=2e-3)
    assert (fit.predict(features)[:, 0] == model.predict(features.numpy())).mean() > 0.99


def held_out_bits(features, labels, folds, l2):
    """By scikit-learn: the code length of each fold by the fit to the others."""
    total = 0
    for fold in range(FOLDS):
        rest = folds != fold
        model = LogisticRegression(C=1 / (rest.sum() * l2), tol=1e-8, max_iter=10_000)
        model.fit(features[rest].double().numpy(), labels[rest, 0])
        p = model.predict_proba(features[~rest].numpy())[np.arange((~rest).sum()), labels[~rest, 0] // 5]
        escape = 1 / (rest.sum() + 2)
        total -= np.log2((1 - escape) * p + escape / 256).sum()
    return total


def test_the_l2_is_the_one_with_the_shortest_code_for_held_out_labels():
    features, labels, folds = make_names(150, 10, spread=3.0)
    lengths = [held_out_bits(features, labels, folds, l2) for l2 in L2]
    [chosen] = fit_names(features, variances(features), labels, folds).l2
    # The search stops early: a neighbour whose code is as short within half a percent is as good.
    assert lengths[L2.index(chosen)] <= min(lengths) * 1.005


def test_variables_are_fitted_each_for_itself():
    features, labels, folds = make_names(150, 10, spread=2.0)
    other = np.random.default_rng(1).permutation(labels)
    alone = fit_names(features, variances(features), labels, folds)
    both = fit_names(features, variances(features), np.concatenate([labels, other], 1), folds)
    assert both.l2[0] == alone.l2[0]
    found, expected = (fit.probabilities(features, labels)[:, 0] for fit in (_first(both), alone))
    np.testing.assert_allclose(found, expected, atol=2e-3)


def _first(fit):
    columns = fit.columns.select([0])
    rows = fit.columns.row_indices([0])
    return NamesFit(columns, fit.weights[rows], fit.bias[rows], fit.l2[:1], fit.gradient)


def test_a_value_that_never_occurs_in_training_has_probability_0_and_one_value_is_always_predicted():
    features, labels, folds = make_names(60, 5)
    labels[:] = 7
    fit = fit_names(features, variances(features), labels, folds)
    assert set(fit.predict(features)[:, 0]) == {7}
    assert fit.probabilities(features, labels).tolist() == [[1.0]] * 60
    assert fit.probabilities(features, np.full_like(labels, 9)).tolist() == [[0.0]] * 60


def test_a_fit_that_was_stopped_says_so(monkeypatch):
    monkeypatch.setattr("manicap.probing.names.MAX_ITERATIONS", 1)
    features, labels, folds = make_names(150, 10, spread=2.0)
    assert not fit_names(features, variances(features), labels, folds).converged


def test_discriminants_of_the_fitted_values_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    values = np.array([3, 8, 9])
    places = rng.integers(3, size=400)
    fitted = torch.from_numpy(rng.standard_normal((400, 3)) + 1.5 * np.eye(3)[places])
    found = Discriminant(values, fitted, values[places]).predict(fitted)
    expected = LinearDiscriminantAnalysis(solver="lsqr").fit(fitted.numpy(), values[places]).predict(fitted.numpy())
    # The shrinkage of a thousandth moves hardly a frame.
    assert (found == expected).mean() > 0.995
