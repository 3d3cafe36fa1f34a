"""A method takes any regularizer by name, and without one is what it was."""

from dataclasses import replace

import pytest
import torch

from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, LossOutput, MethodContext
from manicap.algorithms.regularization import RegularizedSettings, regularized
from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError
from manicap.losses import REGULARIZERS, SIGRegularizer
from tests.algorithms.small import small_settings
from tests.algorithms.small_images import build_small, make_views

TAKING = [name for name, method in METHODS.items() if issubclass(method.settings_type, RegularizedSettings)]
ON_FRAMES = [name for name in TAKING if METHODS[name].kind == "frames"]
ON_VIEWS = [name for name in TAKING if METHODS[name].kind == "views"]
OWN = {"dim-c+", "dim-uac+"}
ACTIVE = [name for name in REGULARIZERS if name != "none"]


def build(name, **changes):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return METHODS[name](replace(small_settings(name), **changes), MethodContext())


@pytest.fixture(scope="module")
def make_batch():
    frames = torch.randint(0, 256, (4, 2, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return lambda method: Batch(frames[:, : method.frames_per_sample])


def test_every_method_with_heads_takes_a_regularizer():
    assert set(ON_FRAMES) == {
        *("dim-c+", "dim-uac+", "dim-ua", "dim-ua-weighted", "st-dim", "jsd-st-dim", "global-t-dim", "dim")
    }
    assert set(ON_VIEWS) == {name for name, method in METHODS.items() if method.kind == "views"} - {"mmcr"}


@pytest.mark.parametrize("name", ON_FRAMES)
def test_any_method_on_frames_takes_sigreg_at_a_fraction_of_its_loss(name, make_batch):
    plain = build(name, regularizer="none")
    method = build(name, regularizer="sigreg", target_ratio=0.02)
    before, loss = plain.loss(make_batch(plain)), method.loss(make_batch(method))
    assert list(loss.parts) == [*before.parts, "sigreg"]
    torch.testing.assert_close(dict(list(loss.parts.items())[:-1]), before.parts, rtol=0, atol=0)
    assert loss.parts["sigreg"].item() == pytest.approx(0.02 * before.total.item(), rel=1e-5)
    assert loss.metrics["sigreg_ratio"] == pytest.approx(0.02, rel=1e-5)
    # Of the heads of the first frame.
    encoded = method.encoder(make_batch(method).frames_BTCHW[:, 0]).features_BF
    heads = method.heads(encoded) if hasattr(method, "heads") else method.head(encoded)
    expected = SIGRegularizer(1.0).penalty(heads)
    torch.testing.assert_close(loss.metrics["sigreg_penalty"], expected.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ON_VIEWS)
def test_any_method_on_views_takes_sigreg_with_one_head_too(name):
    method = build_small(name, num_heads=1, regularizer="sigreg", target_ratio=0.02)
    loss = method.loss(make_views(method))
    parts = [float(part.detach()) for part in loss.parts.values()]
    assert list(loss.parts)[-1] == "sigreg"
    assert parts[-1] == pytest.approx(0.02 * abs(sum(parts[:-1])), rel=1e-4)
    assert not build_small(name, num_heads=1, target_ratio=0.02).charts.regularizer  # the paper's plain method


@pytest.mark.parametrize("regularizer", ACTIVE)
def test_every_regularizer_reaches_the_encoder(regularizer, make_batch):
    method = build("dim-c+", regularizer=regularizer, target_ratio=0.2)
    term = method.loss(make_batch(method)).parts[REGULARIZERS[regularizer].term]
    term.backward()
    assert all(weight.grad.abs().sum() > 0 for weight in method.encoder.parameters())


@pytest.mark.parametrize("name", sorted(OWN))
def test_capacity_is_what_c_plus_has_by_default(name, make_batch):
    default, named = build(name), build(name, regularizer="capacity")
    losses = [method.loss(make_batch(method)) for method in (default, named)]
    assert torch.equal(losses[0].total, losses[1].total)
    assert "capacity" in losses[0].parts
    assert "capacity" not in build(name, regularizer="none").loss(make_batch(default)).parts


@pytest.mark.parametrize("name", TAKING)
def test_a_config_that_names_no_regularizer_is_written_as_before(name):
    # A run's directory is named by the hash of what is written: runs of before are found again.
    settings = METHODS[name].settings_type()
    assert not {"regularizer", "target_ratio", "ratio_smoothing"} & set(to_dict(settings))
    named = replace(settings, regularizer="none")
    assert from_dict(type(settings), to_dict(named)) == named


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("st-dim", {"regularizer": "sigreg"}, "regularizer sigreg needs a weight: give target_ratio"),
        ("simclr", {"regularizer": "barlow"}, "regularizer barlow needs a weight: give target_ratio"),
        ("st-dim", {"target_ratio": 0.1}, "weights of a regularizer: name one"),
        ("dim", {"epsilon": 0.1}, "weights of a regularizer: name one"),
        ("dim-c+", {"regularizer": "none", "target_ratio": 0.1}, "weights of a regularizer: name one"),
        ("dim-c+", {"regularizer": "capasity"}, "did you mean 'capacity'"),
    ],
)
def test_a_regularizer_without_weight_and_a_weight_without_regularizer_are_mistakes(name, changes, sentence):
    settings = METHODS[name].settings_type
    with pytest.raises(UserError, match=sentence):
        from_dict(settings, to_dict(settings()) | changes)


@pytest.mark.parametrize("changes", [{"regularizer": "none"}, {"regularizer": "vicreg"}, {"epsilon": 0.0}])
def test_c_plus_needs_no_more_than_a_name(changes):
    settings = METHODS["dim-c+"].settings_type
    found = from_dict(settings, to_dict(settings()) | changes)
    assert {name: getattr(found, name) for name in changes} == changes


def test_the_memory_of_the_automatic_weight_is_a_setting():
    assert build("st-dim", regularizer="sigreg", target_ratio=0.1).regularizer.smoothing == 0.99
    settings = {"regularizer": "sigreg", "target_ratio": 0.1, "ratio_smoothing": 0.5}
    assert build("st-dim", **settings).regularizer.smoothing == 0.5
    assert build_small("simclr", **settings).charts.regularizer.smoothing == 0.5


def test_a_term_does_not_replace_a_part_of_the_same_name():
    loss = LossOutput({"sigreg": torch.tensor(1.0)})
    with pytest.raises(ValueError, match="already has a part 'sigreg'"):
        regularized(loss, SIGRegularizer(1.0), torch.randn(4, 2, 3))
