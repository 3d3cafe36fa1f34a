import numpy as np
import pytest
from scipy.linalg import inv, sqrtm
from scipy.stats import entropy

from manicap.diagnostics.spectrum import decay_exponent, effective_rank, lidar, participation_ratio


def test_effective_rank_by_hand():
    # Singular values 3 and 1: p = 3/4, 1/4, and exp(H) = 4 / 3^(3/4). The epsilon of 1e-7 moves the seventh digit.
    assert effective_rank(np.diag([3.0, 1.0])) == pytest.approx(4 / 3**0.75, rel=1e-6)
    assert effective_rank(np.eye(8)) == pytest.approx(8, rel=1e-5)


def test_one_direction_has_rank_one_and_nothing_has_rank_zero():
    line = np.outer(np.arange(1, 30), np.ones(5))
    assert effective_rank(line) == pytest.approx(1, rel=1e-4)
    assert effective_rank(np.ones((4, 3)), centered=True) == 0


def test_the_mean_is_a_direction_unless_it_is_taken_out():
    x = np.random.default_rng(0).standard_normal((400, 4)) + 100
    assert effective_rank(x) < 1.5
    assert effective_rank(x, centered=True) > 3.9


def test_lidar_equals_the_discriminant_matrix_formed_literally():
    groups = np.random.default_rng(0).standard_normal((12, 5, 4)) * [1, 2, 3, 4] + np.arange(12)[:, None, None]
    means = groups.mean(1)
    between = np.cov(means.T, bias=True)
    within = np.mean([np.cov(group.T, bias=True) for group in groups], axis=0) + 1e-4 * np.eye(4)
    root = inv(sqrtm(within)).real
    eigenvalues = np.linalg.eigvalsh(root @ between @ root)
    assert lidar(groups) == pytest.approx(np.exp(entropy(eigenvalues)), rel=1e-4)


def test_lidar_counts_the_directions_that_tell_groups_apart():
    # Three of ten axes differ between groups, all ten vary within: RankMe sees ten, LiDAR three.
    rng = np.random.default_rng(0)
    centres = np.zeros((500, 1, 10))
    centres[..., :3] = 30 * rng.standard_normal((500, 1, 3))
    groups = centres + rng.standard_normal((500, 20, 10))
    assert lidar(groups) == pytest.approx(3, abs=0.05)
    assert effective_rank(groups.reshape(-1, 10)) > 3.5


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0, 2.5])
def test_the_decay_exponent_of_a_power_law_is_its_own(alpha):
    # Orthogonal columns of squared length j^-alpha, and a zero mean: the eigenvalues follow the law exactly.
    basis = np.linalg.qr(np.column_stack([np.ones(64), np.random.default_rng(0).standard_normal((64, 40))]))[0][:, 1:]
    features = basis * np.arange(1, 41) ** (-alpha / 2)
    assert decay_exponent(features) == pytest.approx(alpha, abs=1e-9)


def test_one_direction_decays_without_end():
    assert decay_exponent(np.outer(np.arange(9), np.ones(3))) == float("inf")


def test_lidar_needs_something_to_vary_within_a_group():
    with pytest.raises(ValueError, match="2 members"):
        lidar(np.ones((3, 1, 2)))


def test_the_participation_ratio_counts_directions():
    # Eigenvalues 4, 1, 1 (up to a factor): 6^2 / 18 = 2. Equal ones count as many as there are.
    cross = np.concatenate([np.diag([2.0, 1, 1]), -np.diag([2.0, 1, 1])])
    assert participation_ratio(cross) == pytest.approx(2, rel=1e-12)
    assert participation_ratio(np.concatenate([np.eye(5), -np.eye(5)]) + 7) == pytest.approx(5, rel=1e-9)
    assert participation_ratio(np.ones((4, 3))) == 0
