"""The last linear layer: what persists from one frame to the next is amplified."""

import itertools

import numpy as np
import pytest
import torch
from scipy.linalg import sqrtm

from manicap.nn.coherence_filter import CoherenceFilter

SIGNS = (-1.0, 1.0)


def moving(num_frames, num_features, lasting, seed=0):
    """A mixture of independent signals, each with its own autocorrelation; frames in order."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((num_frames, num_features))
    for t in range(1, num_frames):
        signal[t] = lasting * signal[t - 1] + np.sqrt(1 - lasting**2) * signal[t]
    return signal @ rng.standard_normal((num_features, num_features)) + rng.standard_normal(num_features)


def pairs(frames):
    return torch.from_numpy(frames[:-1].astype(np.float32)), torch.from_numpy(frames[1:].astype(np.float32))


def literal(frames, x):
    """The docstring's formula by matrix square roots, in float64: C^1/2 Q (0.3 + rho^8) Q^T C^-1/2 z."""
    both = np.concatenate([frames[:-1], frames[1:]])
    mean, std = both.mean(0), both.std(0)
    scale = 1 / np.maximum(std, 0.3 * np.quantile(std, 0.5, method="lower"))
    z, now, after = ((each - mean) * scale for each in (both, frames[:-1], frames[1:]))
    covariance = z.T @ z / len(z)
    covariance += 0.01 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    lagged = (now.T @ after + after.T @ now) / (2 * len(now))
    root = np.real(sqrtm(covariance))
    inverse = np.linalg.inv(root)
    rho, q = np.linalg.eigh(inverse @ lagged @ inverse)
    return ((x - mean) * scale) @ inverse @ q @ np.diag(0.3 + np.clip(rho, 0, 1) ** 8) @ q.T @ root


@pytest.mark.parametrize("num_frames", [400, 5])
def test_it_is_the_formula_with_more_and_with_fewer_frames_than_features(num_frames):
    frames = moving(num_frames, 12, np.linspace(0, 0.99, 12))
    new = moving(7, 12, np.linspace(0, 0.99, 12), seed=1)
    built = CoherenceFilter(12)
    built.fit(*pairs(frames))
    expected = literal(frames, new)
    # float32 products of 400 frames, through the inverse of a matrix with eigenvalues from 0.01 of the mean.
    np.testing.assert_allclose(built(torch.from_numpy(new.astype(np.float32))), expected, rtol=1e-3, atol=1e-3)


def test_what_stays_is_kept_and_what_is_drawn_anew_falls_to_the_floor():
    # x is the same in both frames; y of the two frames takes all four combinations equally often. Standardised, C' has
    # 1 for x and 0 for y, C is 1 + 0.01 for both: rho is 1 / 1.01 and 0.
    rows = [((x, y), (x, after)) for x, y, after in itertools.product(SIGNS, SIGNS, SIGNS)]
    now, after = (torch.tensor([row[i] for row in rows]) for i in range(2))
    built = CoherenceFilter(2)
    rho = built.fit(now, after)
    torch.testing.assert_close(rho, torch.tensor([1 / 1.01, 0.0], dtype=torch.float64), rtol=1e-6, atol=1e-6)
    out = built(torch.tensor([[3.0, 5.0]]))
    torch.testing.assert_close(out, torch.tensor([[3 * (0.3 + 1.01**-8), 1.5]]), rtol=1e-5, atol=1e-6)


def test_the_order_of_time_does_not_matter():
    frames = moving(200, 6, np.linspace(0.2, 0.95, 6))
    forward, backward = CoherenceFilter(6), CoherenceFilter(6)
    forward.fit(*pairs(frames))
    backward.fit(*pairs(frames[::-1].copy()))
    x = torch.from_numpy(frames[:5].astype(np.float32))
    torch.testing.assert_close(forward(x), backward(x), rtol=1e-3, atol=1e-3)


def test_constant_features_are_silent():
    frames = moving(100, 4, np.full(4, 0.9))
    frames[:, 2] = 7
    built = CoherenceFilter(4)
    built.fit(*pairs(frames))
    out = built(torch.full((1, 4), 100.0))
    assert torch.isfinite(out).all()
    assert abs(out[0, 2]) < 1e-4
    built.fit(torch.ones(3, 4), torch.ones(3, 4))
    assert torch.equal(built(torch.ones(1, 4)), torch.zeros(1, 4))


def test_as_built_it_changes_nothing_but_the_scale():
    features = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(CoherenceFilter(5)(features), 0.3 * features)


@pytest.mark.parametrize(("now", "after"), [((0, 4), (0, 4)), ((3, 4), (2, 4))])
def test_it_needs_pairs(now, after):
    with pytest.raises(ValueError, match="features of at least one frame and of the next"):
        CoherenceFilter(4).fit(torch.zeros(now), torch.zeros(after))


def test_it_keeps_as_many_directions_as_documented():
    # docs/training.md: 256 directions; 7 MB in an encoder of 3456 features: 2 x 3456 x 256 floats of 4 bytes.
    found = CoherenceFilter(3456)
    assert found.reading.shape == (3456, 256)
    assert found.writing.shape == (256, 3456)
    assert sum(4 * tensor.numel() for tensor in found.buffers()) / 1e6 == pytest.approx(7.1, abs=0.1)


def test_features_that_hardly_vary_are_divided_by_0_3_of_the_median_deviation():
    # Deviations 0.1, 5, 10, 20, 0: the median of those that vary is torch's lower one, 5, and 0.3 of it is 1.5.
    deviations = torch.tensor([0.1, 5.0, 10.0, 20.0, 0.0])
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0])[:, None]
    found = CoherenceFilter(5)
    found.fit(signs * deviations, -signs * deviations)
    expected = torch.tensor([1 / 1.5, 1 / 5, 1 / 10, 1 / 20, 0.0])
    torch.testing.assert_close(found.scale, expected, rtol=1e-5, atol=0)
