import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from manicap.core.errors import UserError
from manicap.probing.knn import NearestNeighbors, NeighborsConfig
from manicap.probing.logistic import LogisticConfig, LogisticProbes
from manicap.probing.majority import MajorityClass
from manicap.probing.sampling import ProbeData


def test_logistic_regression_equals_scikit_learn(pong_parts):
    train, _, test = pong_parts
    # A tenth of the frames, so that scikit-learn converges in seconds; the variable with most classes and one with few.
    thin = ProbeData(train.features[::10], train.labels[::10][:, [1, 4]], train.episodes[::10])
    config = LogisticConfig(l2=1e-2, max_iterations=500, tolerance=1e-5)
    probes = LogisticProbes(config).fit(thin)
    assert probes.gradient_ < 1e-4
    decoded = probes.predict(test.features)
    mean, std = thin.features.astype(np.float64).mean(0), thin.features.astype(np.float64).std(0)
    std[std < 1e-6] = 1
    for v in range(2):
        theirs = LogisticRegression(C=1 / (len(thin) * config.l2), tol=1e-6, max_iter=2000)
        theirs.fit((thin.features - mean) / std, thin.labels[:, v])
        rows = probes.columns_.rows(v)
        assert theirs.classes_.tolist() == probes.columns_.classes[v].tolist()
        np.testing.assert_allclose(probes.weights_[rows], theirs.coef_, atol=5e-3)
        assert (decoded[:, v] == theirs.predict((test.features - mean) / std)).mean() > 0.99


@pytest.mark.parametrize("k", [1, 5])
def test_neighbours_equal_the_literal_loop(pong_parts, k):
    train, _, test = pong_parts
    queries = test.features[::40]
    decoded = NearestNeighbors(NeighborsConfig(k)).fit(train).predict(queries)
    centre = train.features.mean(0, dtype=np.float64)
    directions = (train.features - centre) / np.linalg.norm(train.features - centre, axis=1, keepdims=True)
    agree = []
    for query, found in zip(queries - centre, decoded, strict=True):
        nearest = np.argsort(-directions @ query, kind="stable")[:k]
        for labels, label in zip(train.labels[nearest].T, found, strict=True):
            counts = np.bincount(labels)
            # Of the most frequent labels, the one that comes first.
            agree.append(label == next(each for each in labels if counts[each] == counts.max()))
    assert np.mean(agree) > 0.995  # float32 may swap two training frames that are equally near


def test_one_neighbour_equals_scikit_learn(pong_parts):
    train, _, test = pong_parts
    decoded = NearestNeighbors(NeighborsConfig(1)).fit(train).predict(test.features)
    centre = train.features.mean(0)
    theirs = KNeighborsClassifier(1, metric="cosine").fit(train.features - centre, train.labels)
    assert (decoded == theirs.predict(test.features - centre)).mean() > 0.99


def test_training_frames_are_their_own_neighbours():
    features = np.random.default_rng(0).standard_normal((600, 8)).astype(np.float32)
    labels = np.random.default_rng(1).integers(0, 256, (600, 3)).astype(np.uint8)
    data = ProbeData(features, labels, np.zeros(600, np.int64))
    np.testing.assert_array_equal(NearestNeighbors(NeighborsConfig(1)).fit(data).predict(features), labels)


def test_k_is_checked(pong_parts):
    with pytest.raises(UserError, match="k must be at least 1, got 0"):
        NearestNeighbors(NeighborsConfig(0))
    data = ProbeData(np.ones((2, 1), np.float32), np.ones((2, 1), np.uint8), np.zeros(2, np.int64))
    with pytest.raises(UserError, match="got 2"):
        NearestNeighbors(NeighborsConfig(3)).fit(data)


def test_majority_is_the_most_frequent_training_label():
    labels = np.array([[3, 255], [3, 7], [9, 255]], np.uint8)
    data = ProbeData(np.zeros((3, 2), np.float32), labels, np.zeros(3, np.int64))
    np.testing.assert_array_equal(MajorityClass().fit(data).predict(np.zeros((2, 2), np.float32)), [[3, 255]] * 2)
