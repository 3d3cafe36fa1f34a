import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from manicap.core.errors import UserError
from manicap.domains.images.evaluation import PROTOCOLS, ImageBench, evaluate_images
from manicap.domains.images.features import AugmentedFeatures, ImageEncoder
from manicap.images.recipes import CIFAR10_TSAI2021
from manicap.images.selection import open_images
from manicap.images.views import normalise
from manicap.probing.classes import CachedFeatures, LinearProbe, LinearProbeConfig
from manicap.probing.votes import NeighborsConfig
from tests.algorithms.small_images import build_small


@pytest.fixture(scope="module")
def train(image_folder):
    return open_images(str(image_folder), "train", image_folder)


@pytest.fixture(scope="module")
def unseen_images(image_folder):
    return open_images(str(image_folder), "test", image_folder)


@pytest.fixture(scope="module")
def method():
    return build_small("simclr", encoder_width=8)


def encoder(method, dataset, moving=False):
    return ImageEncoder(method, CIFAR10_TSAI2021, dataset.mean, dataset.std, moving_statistics=moving)


def buffers(method):
    return {name: value.clone() for name, value in method.named_buffers()}


def test_a_probe_trained_long_enough_is_logistic_regression():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    features = rng.normal(size=(400, 4)) + np.eye(3, 4)[labels]
    config = LinearProbeConfig(batch_size=400, epochs=1500, learning_rate=1e-2, weight_decay=0.0)
    tensor = torch.from_numpy(features).float()
    probe = LinearProbe(config).fit(CachedFeatures(tensor), labels, 3)
    expected = LogisticRegression(C=1e6).fit(features, labels).predict_proba(features)
    np.testing.assert_allclose(probe.scores(tensor).softmax(1).numpy(), expected, atol=1e-3)


def test_the_same_seed_gives_the_same_probe_and_another_one_another():
    generator = torch.Generator().manual_seed(0)
    features, labels = torch.randn(40, 4, generator=generator), np.arange(40) % 3
    config = LinearProbeConfig(batch_size=16, epochs=2)
    first, second, other = (LinearProbe(config, seed).fit(CachedFeatures(features), labels, 3) for seed in (0, 0, 1))
    assert torch.equal(first.scores(features), second.scores(features))
    assert not torch.equal(first.scores(features), other.scores(features))


def test_features_of_plain_images_do_not_depend_on_the_batch_and_are_those_of_the_method(method, train):
    features = encoder(method, train).encode(train)
    images = torch.from_numpy(train.images[[3]])
    with torch.no_grad():
        alone = method.eval().represent(normalise(images.float() / 255, train.mean, train.std))
    torch.testing.assert_close(features[3:4], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("moving", [False, True])
def test_statistics_move_under_views_only_where_they_shall_and_never_in_the_method_given(method, train, moving):
    before = buffers(method)
    source = AugmentedFeatures(encoder(method, train, moving), train, seed=0)
    rows = np.arange(32)
    first = source.take(rows, 0, 0)
    # The same views again. Moving statistics are not what such features are normalised by: the batch's are.
    assert torch.equal(first, source.take(rows, 0, 0))
    assert not torch.equal(first, source.take(rows, 1, 0))  # other views
    assert all(torch.equal(value, before[name]) for name, value in buffers(method).items())
    inside = buffers(source.encoder.method)
    changed = [name for name, value in inside.items() if not torch.equal(value, before[name])]
    assert bool(changed) == moving
    assert all(torch.equal(a, b) for a, b in zip(method.parameters(), source.encoder.method.parameters(), strict=True))


@pytest.mark.parametrize("protocol", ["clean", "tsai2021"])
def test_an_evaluation_carries_what_it_depends_on(protocol, method, train, unseen_images):
    bench = ImageBench(train, unseen_images, CIFAR10_TSAI2021, PROTOCOLS[protocol], linear=LinearProbeConfig(64, 3))
    before = copy.deepcopy(method.state_dict())
    evaluation = evaluate_images(bench, method, "fingerprint", {"untrained": method})
    expected = {"clean": ("cached", "frozen"), "tsai2021": ("augmented", "moving")}[protocol]
    assert (evaluation.probe_options["features"], evaluation.probe_options["statistics"]) == expected
    assert evaluation.counts == {"train": 96, "test": 32}
    assert evaluation.floors["untrained"] == evaluation.scores  # the same network, probed alike
    assert evaluation.floors["majority"].accuracy == 0.25  # four classes, equally many images
    assert evaluation.predictions.nearest.shape == (24, 8)
    wrong = evaluation.predictions.decoded != evaluation.predictions.true
    assert 1 - wrong.mean() == evaluation.scores.accuracy
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())


def test_neighbours_of_training_images_are_themselves(method, train):
    bench = ImageBench(train, train, CIFAR10_TSAI2021, PROTOCOLS["clean"], "knn", neighbors=NeighborsConfig(1))
    evaluation = evaluate_images(bench, method, "fingerprint")
    assert evaluation.scores.accuracy == 1.0
    predictions = evaluation.predictions
    np.testing.assert_array_equal(predictions.nearest[:, 0], predictions.shown)
    np.testing.assert_array_equal(predictions.nearest_labels[:, 0], predictions.true[predictions.shown])


def test_images_without_labels_cannot_be_probed(method, train, unseen_images):
    bench = ImageBench(replace(train, labels=None), unseen_images, CIFAR10_TSAI2021, PROTOCOLS["clean"])
    with pytest.raises(UserError, match="have no labels, which a probe requires"):
        evaluate_images(bench, method, "fingerprint")
