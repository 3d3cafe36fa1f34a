"""Ridge regression and the choice of its regularization, compared with scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from manicap.probing.ridge import FEW, HELD, MANY, RATIOS, GrowingRidge, fit_frames
from manicap.probing.subsets import FOLDS


def make_data(count, num_features, num_targets=3, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    # Correlated features, as those of a network are.
    z = rng.standard_normal((count, num_features)) @ rng.standard_normal((num_features, num_features)) / 10
    y = z @ rng.standard_normal((num_features, num_targets)) + noise * rng.standard_normal((count, num_targets)) + 7
    folds = rng.integers(FOLDS, size=count)
    return torch.from_numpy(z).float(), torch.from_numpy(y).float(), folds


def scikit_learn_choice(z, y, folds, held, variance):
    """The ratio with the smallest squared error over the held-out folds, and the fit to all frames with it."""
    z, y = z.double().numpy(), y.double().numpy()
    errors = []
    for ratio in RATIOS:
        error = 0
        for fold in held:
            rest = folds != fold
            model = Ridge(alpha=rest.sum() * ratio * variance, solver="cholesky").fit(z[rest], y[rest])
            error += np.square(model.predict(z[~rest]) - y[~rest]).sum()
        errors.append(error)
    ratio = RATIOS[int(np.argmin(errors))]
    return ratio, Ridge(alpha=len(z) * ratio * variance, solver="cholesky").fit(z, y)


def pieces_of(z, y, folds):
    return lambda fold: [(z[torch.from_numpy(folds == fold)], y[torch.from_numpy(folds == fold)])]


@pytest.mark.parametrize(("count", "num_features"), [(60, 100), (60, 20)], ids=["dual", "primal"])
def test_few_frames_are_fitted_as_by_scikit_learn(count, num_features):
    z, y, folds = make_data(count, num_features)
    variance = float(z.var(0, correction=0).sum())
    for target in range(y.shape[1]):
        ratio, model = scikit_learn_choice(z, y[:, target], folds, range(FOLDS), variance)
        fit = fit_frames(z, y[:, [target]], torch.tensor([0]), folds, variance)
        assert fit.ratios == [ratio]
        np.testing.assert_allclose(fit(z)[:, 0].numpy(), model.predict(z.numpy()), rtol=1e-3, atol=1e-3)


def test_targets_of_a_group_share_a_ratio_and_other_groups_do_not_matter():
    z, y, folds = make_data(80, 30, num_targets=4, noise=3.0)
    variance = float(z.var(0, correction=0).sum())
    together = fit_frames(z, y, torch.tensor([0, 0, 1, 2]), folds, variance)
    pair, alone = (
        fit_frames(z, y[:, :2], torch.tensor([0, 0]), folds, variance),
        fit_frames(z, y[:, 3:], torch.tensor([0]), folds, variance),
    )
    assert together.ratios[0] == pair.ratios[0] == scikit_learn_choice(z, y[:, :2], folds, range(FOLDS), variance)[0]
    assert together.ratios[2] == alone.ratios[0]
    torch.testing.assert_close(together.weights[:, 3:], alone.weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("many", [1000, 250, 100], ids=["every fold", "every fold, then one", "one fold"])
def test_sums_over_frames_grow_and_hold_folds_out(monkeypatch, many):
    monkeypatch.setattr("manicap.probing.ridge.FEW", 60)
    monkeypatch.setattr("manicap.probing.ridge.MANY", many)
    z, y, folds = make_data(300, 20)
    variance = float(z.var(0, correction=0).sum())
    groups = torch.tensor([0, 1, 2])
    problem = GrowingRidge(20, 3, variance)
    for count in (200, 300):
        start = 0 if count == 200 else 200
        held_folds = range(FOLDS) if count <= many else [HELD]
        problem.add(z[start:count], y[start:count], folds[start:count])
        fit = problem.fit(groups, pieces_of(z[:count], y[:count], folds[:count]))
        for target in range(3):
            expected, model = scikit_learn_choice(z[:count], y[:count, target], folds[:count], held_folds, variance)
            assert fit.ratios[target] == expected
            np.testing.assert_allclose(fit(z)[:, target].numpy(), model.predict(z.numpy()), rtol=1e-3, atol=1e-3)
        # The error that a description length counts with: on the held-out frames, by the fits without them.
        missed = []
        for fold in held_folds:
            rest = folds[:count] != fold
            alone = Ridge(alpha=rest.sum() * fit.ratios[0] * variance).fit(z[:count][rest], y[:count, 0][rest])
            missed += np.square(alone.predict(z[:count][~rest]) - y[:count, 0][~rest].numpy()).tolist()
        assert fit.errors[0] == pytest.approx(np.mean(missed), rel=1e-3)


@pytest.mark.parametrize("grows", [False, True], ids=["dual", "growing"])
def test_one_fold_chooses_for_the_targets_that_it_is_enough_for(monkeypatch, grows):
    monkeypatch.setattr("manicap.probing.ridge.FEW", 60)
    z, y, folds = make_data(90, 20 if grows else 120, noise=3.0)
    variance, groups, single = float(z.var(0, correction=0).sum()), torch.arange(3), torch.tensor([False, True, False])
    if grows:
        problem = GrowingRidge(20, 3, variance)
        problem.add(z, y, folds)
        fit = problem.fit(groups, pieces_of(z, y, folds), single_fold=single)
    else:
        fit = fit_frames(z, y, groups, folds, variance, single_fold=single)
    chosen = {}
    for held in ((HELD,), tuple(range(FOLDS))):
        chosen[held] = [scikit_learn_choice(z, y[:, target], folds, held, variance) for target in range(3)]
    one, every = chosen.values()
    assert one[1][0] != every[1][0]  # or the test could not tell
    assert one[0][0] != every[0][0] or one[2][0] != every[2][0]
    for target, (ratio, model) in enumerate((every[0], one[1], every[2])):
        assert fit.ratios[target] == ratio
        np.testing.assert_allclose(fit(z)[:, target].numpy(), model.predict(z.numpy()), rtol=1e-3, atol=1e-2)


def test_fewer_features_are_the_first_ones():
    z, y, folds = make_data(300, 20)
    problem, narrow = GrowingRidge(20, 3, 1.0), GrowingRidge(5, 3, float(z[:, :5].var(0, correction=0).sum()))
    problem.add(z, y, folds)
    narrow.add(z[:, :5], y, folds)
    groups, pieces = torch.arange(3), pieces_of(z[:, :5], y, folds)
    found, expected = (each.fit(groups, pieces) for each in (problem.first_features(5), narrow))
    torch.testing.assert_close(found.weights, expected.weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("grows", [False, True], ids=["few", "growing"])
def test_predictions_are_limited_to_the_targets_that_were_seen(grows):
    # y = 2 z for z from -1 to 1. At z = 10 the line is near 20; no target was above 2 or below -2.
    z = torch.linspace(-1, 1, 101)[:, None]
    y, folds, groups = torch.cat([2 * z, -z], 1), np.arange(101) % FOLDS, torch.arange(2)
    if grows:
        problem = GrowingRidge(1, 2, 1 / 3)
        problem.add(z[:60], y[:60], folds[:60])
        problem.add(z[60:], y[60:], folds[60:])
        fit = problem.fit(groups, pieces_of(z, y, folds))
    else:
        fit = fit_frames(z, y, groups, folds, 1 / 3)
    far = torch.tensor([[10.0], [-10.0], [0.5]])
    assert float(fit(far)[0, 0]) == pytest.approx(20, rel=1e-2)
    expected = [[2.0, -1.0], [-2.0, 1.0], [1.0, -0.5]]
    np.testing.assert_allclose(fit.limit(fit(far)).numpy(), expected, atol=1e-2)
    second = fit.columns(slice(1, 2))
    np.testing.assert_allclose(second.limit(second(far)).numpy()[:, 0], [-1.0, 1.0, -0.5], atol=1e-2)


def test_pure_noise_gets_the_largest_ratio_and_says_that_it_is_at_the_end():
    rng = np.random.default_rng(0)
    z, y = (torch.from_numpy(rng.standard_normal((60, size))).float() for size in (40, 1))
    fit = fit_frames(z, y, torch.tensor([0]), rng.integers(FOLDS, size=60), 40.0)
    assert fit.at_end.tolist() == [True]
    assert fit.ratios[0] == RATIOS[-1]
    z, y, folds = make_data(60, 20, 1, noise=0.5)
    assert fit_frames(z, y, torch.tensor([0]), folds, float(z.var(0).sum())).at_end.tolist() == [False]


def test_frames_of_one_stretch_are_still_cross_validated():
    z, y, _ = make_data(60, 20, 1, noise=0.5)
    fit = fit_frames(z, y, torch.tensor([0]), np.full(60, 3), float(z.var(0).sum()))
    _, model = scikit_learn_choice(z, y[:, 0], np.arange(60) % FOLDS, range(FOLDS), float(z.var(0).sum()))
    np.testing.assert_allclose(fit(z)[:, 0].numpy(), model.predict(z.numpy()), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("case", ["duplicate", "constant", "none"])
def test_degenerate_features_do_not_break_a_fit(case):
    z, y, folds = make_data(60, 20, 1, noise=0.5)
    expected = fit_frames(z, y, torch.tensor([0]), folds, 20.0)(z)
    if case == "duplicate":  # halves every weight; with half the variance for each copy the predictions stay
        z = torch.cat([z, z], 1)
        found = fit_frames(z, y, torch.tensor([0]), folds, 40.0)(z)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    elif case == "constant":
        z = torch.cat([z, torch.zeros(60, 1)], 1)
        torch.testing.assert_close(fit_frames(z, y, torch.tensor([0]), folds, 20.0)(z), expected, rtol=1e-4, atol=1e-4)
    else:
        found = fit_frames(torch.zeros(60, 0), y, torch.tensor([0]), folds, 0.0)(torch.zeros(60, 0))
        torch.testing.assert_close(found, y.mean().expand(60, 1), rtol=1e-5, atol=1e-5)


def test_the_boundary_between_few_and_many_is_no_count_of_labels():
    # Counts are 50 times a power of two: none of them lies so close to a boundary that its method would be in doubt.
    assert 1600 < FEW < 3200
    assert 6400 < MANY < 12800


def test_ratios_of_fewer_frames_are_a_place_to_begin_and_no_more():
    """Whatever it begins with, the search ends where all decades lead to; and it tries fewer."""
    rng = np.random.default_rng(0)
    z = torch.from_numpy(rng.standard_normal((600, 30), np.float32))
    weights, noise = rng.standard_normal((30, 3)), rng.standard_normal((600, 3)) * [0.01, 2, 40]
    y = torch.from_numpy(z.numpy() @ weights + noise).float()
    folds, groups = np.arange(600) // 60 % 5, torch.arange(3)
    everything = fit_frames(z, y, groups, folds, 30.0)
    assert len(set(everything.ratios.tolist())) == 3  # from hardly any penalty to the largest but one or two
    for near in (1e-7, 1e-3, 10.0):
        found = fit_frames(z, y, groups, folds, 30.0, np.full(3, near))
        np.testing.assert_array_equal(found.ratios, everything.ratios)
        torch.testing.assert_close(found.weights, everything.weights)


def test_products_in_float32_cost_less_than_a_hundredth_of_the_smallest_penalty():
    """On features as a network gives them: few strong directions, many weak ones, 512 in all."""
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((9000, 512)) * np.geomspace(30, 1e-3, 512) @ rng.standard_normal((512, 512))
    z = torch.from_numpy((mixed / mixed.std(0)).astype(np.float32))
    problem = GrowingRidge(512, 1, 512.0)
    folds = np.arange(9000) // 128 % FOLDS
    for start in range(0, 9000, 4096):
        piece = slice(start, start + 4096)
        problem.add(z[piece], z[piece, :1], folds[piece])
    exact = np.cov(z.numpy().T.astype(np.float64), bias=True)
    error = np.linalg.norm(problem.covariance().numpy() - exact, 2)
    assert error < 0.01 * RATIOS[0] * 512


def test_sums_in_blocks_are_the_sums_of_all_features(monkeypatch):
    """Products with earlier features are not summed but follow by symmetry."""
    rng = np.random.default_rng(0)
    z = torch.from_numpy(rng.standard_normal((2500, 20), np.float32))
    z[:, 1:] += z[:, :-1]
    y, folds = z[:, :2] - z[:, 5:7] + 1, np.arange(2500) // 50 % FOLDS
    covariances = []
    for block in (1024, 7):
        monkeypatch.setattr("manicap.probing.ridge.BLOCK", block)
        problem = GrowingRidge(20, 2, 40.0)
        problem.add(z, y, folds)
        covariances.append(problem.covariance())
    # Products of 2,500 frames in float32: 2^-24 for each of them, some sqrt(2,500) of these in all, 3e-6.
    close = {"rtol": 1e-5, "atol": 1e-5}
    expected = torch.from_numpy(np.cov(z.numpy().T.astype(np.float64), bias=True))
    torch.testing.assert_close(covariances[1], expected, **close)
    torch.testing.assert_close(covariances[0], covariances[1], **close)
