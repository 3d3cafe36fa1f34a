import math

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from manicap.core.errors import UserError
from manicap.probing.votes import NeighborsConfig, vote


def test_votes_by_hand():
    # The query points along the first axis; its cosines to the training images are 1, 0 and -1. k = 2 leaves the last.
    train = torch.tensor([[3.0, 0.0], [0.0, 2.0], [-1.0, 0.0]], dtype=torch.float64)
    found = vote(
        torch.tensor([[5.0, 0.0]], dtype=torch.float64), train, torch.tensor([1, 0, 2]), 3, NeighborsConfig(2), 2
    )
    expected = torch.tensor([[1.0, math.exp(2), 0.0]], dtype=torch.float64)  # exp(0 / 0.5), exp(1 / 0.5)
    torch.testing.assert_close(found.votes_BK, expected, rtol=1e-14, atol=0)
    assert found.nearest_BN.tolist() == [[0, 1]]


def test_votes_are_scikit_learns():
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(300, 7)), rng.normal(size=(600, 7))  # more than one piece of queries
    labels = rng.integers(0, 4, 300)
    found = vote(
        torch.from_numpy(test), torch.from_numpy(train), torch.from_numpy(labels), 4, NeighborsConfig(20)
    ).votes_BK
    reference = KNeighborsClassifier(20, metric="cosine", weights=lambda distance: np.exp((1 - distance) / 0.5))
    expected = reference.fit(train, labels).predict_proba(test)
    np.testing.assert_allclose(found / found.sum(1, keepdim=True), expected, rtol=1e-9, atol=1e-12)


def test_the_length_of_features_does_not_matter():
    generator = torch.Generator().manual_seed(0)
    train, test = (torch.randn(30, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    labels = torch.arange(30) % 3
    votes = [vote(scale * test, train, labels, 3, NeighborsConfig(5)).votes_BK for scale in (1, 100)]
    torch.testing.assert_close(votes[0], votes[1], rtol=1e-12, atol=0)


def test_more_neighbours_than_images_is_a_clear_error():
    with pytest.raises(UserError, match="200 nearest neighbours require as many training images, got 3"):
        vote(torch.ones(1, 2), torch.ones(3, 2), torch.zeros(3, dtype=torch.int64), 2)
