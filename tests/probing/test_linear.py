import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from manicap.core.errors import UserError
from manicap.play.protocol import FIXED, REFERENCE
from manicap.probing.linear import LinearConfig, LinearProbes
from manicap.probing.metrics import accuracy, weighted_f1
from manicap.probing.sampling import ProbeData, epoch_order, scored_rows, training_batches
from manicap.probing.schedules import EarlyStopping, Plateau


def train_plainly(train, val, variable, config, seed, protocol, zero):
    """One nn.Linear, one torch Adam, one ReduceLROnPlateau: the plain form, for one variable."""
    torch.manual_seed(1)
    model = nn.Linear(train.features.shape[1], 256)
    if zero:
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, eps=1e-5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.2, patience=5, min_lr=1e-5)
    x, y = torch.from_numpy(train.features), torch.from_numpy(train.labels[:, variable].astype(np.int64))
    x_val, y_val = torch.from_numpy(val.features), torch.from_numpy(val.labels[:, variable].astype(np.int64))
    best, waited, epoch, weights = -1.0, 0, 0, None
    while epoch < config.max_epochs and waited < config.patience:
        for batch in training_batches(train, protocol, config.batch_size, seed, epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
        rows = scored_rows(val, protocol, config.batch_size, seed, "validation", epoch)
        share = (model(x_val[rows]).argmax(1) == y_val[rows]).double().mean().item()
        scheduler.step(share)
        waited = 0 if share > best else waited + 1
        if share > best or protocol.probe_weights == "last":
            weights = {name: value.clone() for name, value in model.state_dict().items()}
        best = max(best, share)
        epoch += 1
    model.load_state_dict(weights)
    return model, epoch, best, optimizer.param_groups[0]["lr"]


@pytest.fixture(scope="module")
def small_parts():
    """Gaussian classes in 6 dimensions, three variables of 3, 5 and 9 classes, of which one is learnt at once."""
    generator = np.random.default_rng(0)

    def data(count, offset):
        hidden = generator.integers(0, 45, count)
        labels = np.stack([hidden % 3 + 7, hidden % 5, hidden // 5 + 200], 1).astype(np.uint8)
        centres = np.random.default_rng(1).standard_normal((45, 6))
        features = (centres[hidden] + 0.3 * generator.standard_normal((count, 6))).astype(np.float32)
        features = np.insert(features, [2, 4], 0, axis=1)  # two dead features
        return ProbeData(features, labels, np.sort(generator.integers(offset, offset + 4, count)))

    return data(300, 0), data(150, 10), data(150, 20)


# A patience of 3 makes the variables stop at different epochs, so that the matmul shrinks on the way.
CONFIG = LinearConfig(learning_rate=0.02, patience=3, max_epochs=25, init="zero")


@pytest.mark.parametrize("protocol", [FIXED, REFERENCE], ids=["fixed", "reference"])
def test_the_joint_probe_equals_one_classifier_a_variable(small_parts, protocol):
    train, val, test = small_parts
    probes = LinearProbes(CONFIG, protocol, seed=5).fit(train, val)
    assert len(set(probes.epochs_)) > 1, "the case must let variables stop at different epochs"
    decoded = probes.predict(test.features)
    for v in range(3):
        model, epochs, best, rate = train_plainly(train, val, v, CONFIG, 5, protocol, zero=True)
        assert probes.epochs_[v] == epochs
        assert probes.val_accuracy_[v] == best
        assert probes.learning_rates_[v] == pytest.approx(rate)
        weights, bias = (each[probes.columns_.rows(v)] for each in (probes.weights_, probes.bias_))
        classes = torch.from_numpy(probes.columns_.classes[v])
        # The last row stands for all classes that training lacks: equal to every one of them.
        unseen = np.setdiff1d(np.arange(256), train.labels[:, v])
        theirs = model.weight.detach()[:, probes.features_]
        np.testing.assert_allclose(weights, theirs[classes], atol=2e-5)
        np.testing.assert_allclose(bias, model.bias.detach()[classes], atol=2e-5)
        np.testing.assert_allclose(weights[-1:].expand(len(unseen), -1), theirs[unseen], atol=2e-5)
        assert not model.weight[:, [2, 5]].any(), "the dead features' weights do not move"
        assert (decoded[:, v] == model(torch.from_numpy(test.features)).argmax(1).numpy()).mean() > 0.99


STILL = 1e-30
"""A learning rate that leaves weights where they start, or at 1e-29 in the place of 0."""


def test_uniform_start_keeps_all_classes_and_features(small_parts):
    train, val, _ = small_parts
    config = LinearConfig(init="uniform", max_epochs=1, learning_rate=STILL)
    weights = LinearProbes(config, seed=0).fit(train, val).weights_
    assert weights.shape == (3 * 256, 8)
    # nn.Linear starts uniform in +-1/sqrt(8): variance 1/24.
    assert weights.abs().max() <= 8**-0.5
    assert weights.var().item() == pytest.approx(1 / 24, rel=0.05)


@pytest.mark.parametrize(("protocol", "init"), [(FIXED, "zero"), (REFERENCE, "uniform")], ids=["fixed", "reference"])
def test_the_protocol_decides_what_the_probe_starts_from(small_parts, protocol, init):
    train, val, _ = small_parts
    own = LinearProbes(LinearConfig(max_epochs=1, learning_rate=STILL), protocol, seed=5).fit(train, val)
    asked = LinearProbes(LinearConfig(max_epochs=1, learning_rate=STILL, init=init), protocol, seed=5).fit(train, val)
    assert own.config.init == init  # what a result records
    assert torch.equal(own.weights_, asked.weights_)
    assert bool((own.weights_.abs() > 1e-20).any()) == (init == "uniform")


def test_on_real_frames_the_scores_are_those_of_plain_classifiers(pong_parts):
    # Random start against zero start, another order of sums: equal up to what a handful of test frames moves.
    train, val, test = pong_parts
    config = LinearConfig(max_epochs=12, learning_rate=0.03)
    decoded = LinearProbes(config, seed=0).fit(train, val).predict(test.features)
    plain = np.empty_like(decoded)
    for v in range(decoded.shape[1]):
        model = train_plainly(train, val, v, config, 0, FIXED, zero=False)[0]
        plain[:, v] = model(torch.from_numpy(test.features)).argmax(1).numpy()
    assert accuracy(test.labels, decoded).mean() > 0.3, "the case must be one that learns"
    np.testing.assert_allclose(weighted_f1(test.labels, decoded), weighted_f1(test.labels, plain), atol=0.05)
    assert weighted_f1(test.labels, decoded).mean() == pytest.approx(weighted_f1(test.labels, plain).mean(), abs=0.02)


def test_the_same_seed_trains_to_the_same_bytes(small_parts):
    train, val, _ = small_parts
    first, second = (LinearProbes(CONFIG, seed=1).fit(train, val).weights_ for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, LinearProbes(CONFIG, seed=2).fit(train, val).weights_)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=60))
def test_plateau_equals_torch(accuracies):
    ours = Plateau(2, 3e-4, 0.2, 5, 1e-5)
    optimizers = [torch.optim.SGD([torch.zeros(1)], lr=3e-4) for _ in range(2)]
    theirs = [
        torch.optim.lr_scheduler.ReduceLROnPlateau(each, "max", factor=0.2, patience=5, min_lr=1e-5)
        for each in optimizers
    ]
    for pair in accuracies:
        ours.step(np.arange(2), np.array(pair))
        for scheduler, value in zip(theirs, pair, strict=True):
            scheduler.step(value)
        np.testing.assert_allclose(ours.learning_rates, [each.param_groups[0]["lr"] for each in optimizers])


def test_early_stopping_counts_from_the_best_epoch():
    stopping = EarlyStopping(2, patience=3)
    for value in (0.5, 0.4, 0.5):
        stopping.step(np.array([0, 1]), np.array([value, value + 0.1 * value]))
    assert not stopping.stopped.any()  # two epochs without a better one: an equal one is not better
    assert stopping.step(np.array([0, 1]), np.array([0.5, 0.9])).tolist() == [False, True]
    assert stopping.stopped.tolist() == [True, False]


def test_fixed_sees_every_frame_once_and_reference_every_episode_alike(small_parts):
    labels = np.zeros((1000, 1), np.uint8)
    # An episode of 100 frames and one of 900.
    data = ProbeData(np.zeros((1000, 1), np.float32), labels, np.repeat([3, 8], [100, 900]))
    batches = list(training_batches(data, FIXED, 64, seed=0, epoch=0))
    assert [len(batch) for batch in batches] == [64] * 15 + [40]
    assert sorted(np.concatenate(batches)) == list(range(1000))
    drawn = epoch_order(data, REFERENCE, np.random.default_rng(0))
    # Half of 1,000 draws from the short episode: 500 +- 16, here five deviations; in it all frames alike.
    assert abs((drawn < 100).sum() - 500) < 80
    assert drawn[drawn < 100].mean() == pytest.approx(49.5, abs=7)
    # Both ends are reached: 500 draws all miss the first 10 of 100 frames, or the last 50 of 900, once in 1e12.
    assert 0 <= drawn.min() < 10
    assert 950 <= drawn.max() < 1000
    assert [len(batch) for batch in training_batches(data, REFERENCE, 64, seed=0, epoch=0)] == [64] * 15
    assert scored_rows(data, FIXED, 64, 0, "test").tolist() == list(range(1000))
    assert len(scored_rows(data, REFERENCE, 64, 0, "test")) == 960
    other_epoch = np.concatenate(list(training_batches(data, FIXED, 64, seed=0, epoch=1)))
    assert not np.array_equal(other_epoch, np.concatenate(batches))


def test_reference_needs_a_whole_batch():
    data = ProbeData(np.zeros((63, 1), np.float32), np.zeros((63, 1), np.uint8), np.zeros(63, np.int64))
    with pytest.raises(UserError, match="full batch of 64 validation frames, got 63"):
        scored_rows(data, REFERENCE, 64, 0, "validation")
