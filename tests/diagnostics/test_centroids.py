import numpy as np
import pytest
import torch

from manicap.diagnostics.centroids import centroid_norm
from manicap.losses.capacity import centroids
from manicap.losses.nuclear_norm import nuclear_norm


def test_orthogonal_samples_reach_the_bound():
    # Three orthonormal rows: singular values 1, 1, 1, and sqrt(3 min(3, 5)) = 3.
    found = centroid_norm(7 * np.eye(3, 5))
    assert (found.norm, found.bound) == pytest.approx((3, 3), abs=1e-12)
    assert found.percent_error == pytest.approx(0, abs=1e-10)


def test_equal_samples_have_one_singular_value():
    # Four equal unit rows: one singular value of sqrt(4) = 2 against a bound of sqrt(4 x 3).
    found = centroid_norm(np.ones((4, 3)))
    assert found.norm == pytest.approx(2, abs=1e-12)
    assert found.percent_error == pytest.approx(100 * (1 - 2 / np.sqrt(12)), abs=1e-10)


def test_opposite_heads_cancel():
    heads = np.stack([np.eye(3), -np.eye(3)], 1)
    assert centroid_norm(heads).norm == 0


def test_it_is_the_norm_that_training_maximises():
    heads = torch.randn(20, 4, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert centroid_norm(heads.numpy()).norm == pytest.approx(float(nuclear_norm(centroids(heads))), rel=1e-12)
