import numpy as np
import pytest

from manicap.diagnostics.membership import chart_usage, membership_entropy, usage_entropy


def test_usage_counts_the_highest_membership():
    q = np.array([[0.6, 0.4, 0], [0.5, 0.3, 0.2], [0.1, 0.9, 0], [0.9, 0.1, 0]])
    assert chart_usage(q).tolist() == [0.75, 0.25, 0]


def test_entropies_by_hand():
    # Each sample sure of its own chart: H(I|z) = 0, H(I) = log 2. Both undecided: both log 2.
    assert membership_entropy(np.eye(2)) == 0
    assert usage_entropy(np.eye(2)) == pytest.approx(np.log(2), abs=1e-15)
    assert membership_entropy(np.full((3, 2), 0.5)) == pytest.approx(np.log(2), abs=1e-15)
    # All in one chart: nothing is used but it.
    assert usage_entropy(np.array([[1.0, 0], [1, 0]])) == 0


def test_what_is_no_probability_is_named():
    with pytest.raises(ValueError, match="sum to 1"):
        chart_usage(np.array([[0.5, 0.6]]))
