"""What `bench plan` expects of the ridge probe."""

import time

import numpy as np
import pytest

from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.play import costs
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData


@pytest.fixture
def known_rates(monkeypatch):
    """3 s for a small fit and 1.6 s more with names, 1 ms per equation, 1 ms per frame."""
    monkeypatch.setattr(costs, "_ridge_sample_seconds", lambda width: (3.0, 1.6))
    monkeypatch.setattr(costs, "_solve_seconds", lambda size: size / 1000)
    monkeypatch.setattr(costs, "_product_seconds", lambda width: 0.001)


def test_ridge_counts_the_subsets_that_a_small_fit_does_not_have(known_rates):
    # 400 frames have 50, 100 and 200 labels five times and all 400 once: 16 subsets. 5,600 have 50 to 800 five times,
    # then 1,600 and all: 27. The other 11 are 4 of 400, 5 of 800, 1,600 and all, in 5 folds each. Of 17 ratios 9 are
    # whole decades, and 2 lie beside the best. 256 features are fewer than any of them has frames.
    expected = 3 + 1.6 * 27 / 16 + 11 * 11 * 5 * 0.256 + 8 * 0.256 + 5600 * 0.001
    assert costs.ridge_seconds(5600, 256) == pytest.approx(expected, rel=1e-9)
    # 12,000 have a further subset of 3,200; all of them are more than 10,000 and one fold of them is held out.
    expected = 3 + 1.6 * 28 / 16 + 11 * (11 * 5 + 1) * 0.256 + 8 * 0.256 + 12_000 * 0.001
    assert costs.ridge_seconds(12_000, 256) == pytest.approx(expected, rel=1e-9)


def test_with_more_features_than_frames_the_frames_are_the_equations(known_rates):
    solved = 11 * 5 * (4 * 0.4 + 5 * 0.8 + 1.6 + 3.456)
    expected = 3 + 1.6 * 27 / 16 + solved + 8 * 3.456 + 5600 * 0.001
    assert costs.ridge_seconds(5600, 3456) == pytest.approx(expected, rel=1e-9)


def test_a_probe_is_counted_with_a_floor_of_pixels_and_its_layers(known_rates):
    # Of 8,000 steps 70 % are for training. Five layers are read from 800 labels. The plan doubles everything: there are
    # the untrained network and another floor of pixels too.
    evaluation = AtariEvaluationConfig(probe_steps=8_000, probe="ridge")
    layers = 5 * 11 * 5 * 0.8
    expected = costs.ridge_seconds(5600, 3456) + layers + costs.ridge_seconds(5600, 256)
    assert costs.probe_seconds(evaluation, 3456) == pytest.approx(expected, rel=1e-9)
    narrow = AtariEvaluationConfig(probe_steps=8_000, probe="ridge", width=8)
    assert costs.probe_seconds(narrow, 3456) == pytest.approx(2 * costs.ridge_seconds(5600, 8) + layers, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("width", [256, 1024])
def test_the_estimate_is_right_within_a_factor_of_two(width):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((3000, width), np.float32)
    maps, noise = rng.standard_normal((width, 12), np.float32), rng.standard_normal((3000, 12), np.float32)
    labels = (20 + 10 * (features @ maps / width**0.5 + noise / 2)).clip(0, 39).astype(np.uint8)
    labels[:, :2] //= 8
    data = ProbeData(features, labels, np.arange(3000) // 64, ("class",) * 2 + ("number",) * 10)
    start = time.perf_counter()
    RidgeProbes().fit(data)
    seconds = time.perf_counter() - start
    assert 0.5 < costs.ridge_seconds(3000, width) / seconds < 2
