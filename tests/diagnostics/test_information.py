import numpy as np
import pytest
from sklearn.metrics import log_loss

from manicap.diagnostics.information import cosine_infonce_bound, infonce_bound


def gaussian_scores(rng, correlation, dimension, batch, batches):
    """log p(y|x) / p(y) of correlated Gaussians, the best critic there is, for all pairs of each batch."""
    x = rng.standard_normal((batches, batch, dimension))
    y = correlation * x + np.sqrt(1 - correlation**2) * rng.standard_normal(x.shape)
    variance = 1 - correlation**2
    distance = ((y[:, None] - correlation * x[:, :, None]) ** 2).sum(-1)
    return (y**2).sum(-1)[:, None] / 2 - distance / (2 * variance) - dimension / 2 * np.log(variance)


def test_the_bound_of_two_candidates_by_hand():
    # L = log(1 + e^-1) for scores (1, 0), and log 2 - L = log(2 / (1 + 1/e)).
    found = infonce_bound(np.eye(2))
    assert found.bound == pytest.approx(np.log(2 / (1 + np.exp(-1))), abs=1e-15)
    assert found.ceiling == np.log(2)


def test_the_loss_is_the_cross_entropy_of_picking_the_partner():
    scores = np.random.default_rng(0).standard_normal((7, 7))
    softmax = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    loss = log_loss(np.arange(7), softmax)
    assert infonce_bound(scores).bound == pytest.approx(np.log(7) - loss, abs=1e-12)


def test_scores_without_a_difference_show_nothing():
    assert infonce_bound(np.full((3, 5, 5), 1e4)).bound == pytest.approx(0, abs=1e-12)


def test_with_the_best_critic_the_bound_stays_under_truth_and_ceiling_and_tightens_with_the_batch():
    # Four independent pairs of correlation 0.9: I = -4/2 log(1 - 0.81) = 3.32 nats.
    truth = -2 * np.log(1 - 0.9**2)
    rng = np.random.default_rng(0)
    bounds = []
    for batch in (4, 16, 64, 256):
        found = infonce_bound(gaussian_scores(rng, 0.9, 4, batch, 8192 // batch))
        assert found.bound < min(truth, found.ceiling)
        bounds.append(found.bound)
    assert bounds == sorted(bounds)
    assert bounds[-1] > 0.9 * truth


def test_independent_variables_share_nothing():
    rng = np.random.default_rng(0)
    assert infonce_bound(gaussian_scores(rng, 0.0, 3, 32, 64)).bound == pytest.approx(0, abs=1e-12)


def test_cosine_scores_find_the_information_of_equal_features_and_none_in_unrelated_ones():
    rng = np.random.default_rng(0)
    x, other = rng.standard_normal((2, 512, 100))
    same = cosine_infonce_bound(x, x, batch_size=64)
    assert same.ceiling == np.log(64)
    assert 0.99 * same.ceiling < same.bound <= same.ceiling
    assert cosine_infonce_bound(x, other, batch_size=64).bound < 0.01


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4), (1, 1)])
def test_scores_that_are_not_square_are_named(shape):
    with pytest.raises(ValueError, match=r"\[K, K\]"):
        infonce_bound(np.zeros(shape))
