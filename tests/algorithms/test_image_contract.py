"""What every method on images promises, checked over the whole of METHODS."""

import copy
from dataclasses import replace

import pytest
import torch

from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, MethodContext
from manicap.algorithms.image_base import view_features
from manicap.core.config import check_config, write_toml
from manicap.core.errors import UserError
from manicap.domains.images.config import ImageConfig
from manicap.losses.redundancy import barlow_twins
from manicap.nn.heads import Heads
from manicap.train.config_file import read_run_config
from tests.algorithms.small import IMAGES
from tests.algorithms.small_images import build_small, make_views, small_image_settings
from tests.literal import mmcr, norm
from tests.literal_networks import head_outputs

EVERY = [pytest.param(name, {}, id=name) for name in IMAGES]
THREE_VIEWS = [
    pytest.param(name, {"num_views": 3}, id=f"{name}-three-views")
    for name in ("simclr-c+", "simclr-ua", "barlow-twins", "vicreg", "byol-c+", "simsiam", "tico-c+")
]


def train(method, steps, first_step=0):
    """Steps on one batch; the losses. The optimizer forgets nothing that matters here: it is plain descent."""
    optimizer = torch.optim.SGD(method.parameters(), lr=0.01)
    losses = []
    for step in range(first_step, first_step + steps):
        loss = method.loss(make_views(method)).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        method.after_step((step + 1) / 12)
        losses.append(float(loss.detach()))
    return losses


def test_the_predictors_of_byol_are_normalised_over_the_batch():
    """arXiv 2006.07733, section 3.3: linear, batch normalisation, ReLU, linear. Without it BYOL may collapse."""
    names = [name for name, _ in build_small("byol").predictors.named_buffers()]
    assert any("running_mean" in name for name in names), names


@pytest.mark.parametrize(("name", "changes"), EVERY + THREE_VIEWS)
def test_the_loss_is_a_finite_scalar_and_its_parts_add_up(name, changes):
    method = build_small(name, **changes)
    loss = method.loss(make_views(method))
    assert loss.total.shape == ()
    assert torch.isfinite(loss.total)
    by_hand = sum(float(part.detach()) for part in loss.parts.values())
    assert float(loss.total.detach()) == pytest.approx(by_hand, rel=1e-6)
    assert not any(isinstance(value, torch.Tensor) and value.requires_grad for value in loss.metrics.values())
    assert ("capacity" in loss.parts) == (name.endswith("-c+") or name == "mmcr")


@pytest.mark.parametrize(("name", "changes"), EVERY + THREE_VIEWS)
def test_every_trained_parameter_gets_a_gradient_and_no_other_does(name, changes):
    method = build_small(name, **changes)
    method.loss(make_views(method)).total.backward()
    for key, parameter in method.named_parameters():
        # Only the slow copies of BYOL and TiCo stand still.
        assert parameter.requires_grad == (not key.startswith("target.")), key
        assert (parameter.grad is not None) == parameter.requires_grad, key
    for parameter in method.encoder.parameters():
        assert parameter.grad.abs().sum() > 0


@pytest.mark.parametrize("name", IMAGES)
def test_the_same_seed_and_batch_give_the_same_loss(name):
    first, second = (build_small(name) for _ in range(2))
    assert torch.equal(first.loss(make_views(first)).total, second.loss(make_views(second)).total)


@pytest.mark.parametrize("name", IMAGES)
def test_the_loss_falls_on_a_small_batch(name):
    # TiCo's covariance starts at zero and the penalty grows with it: here it has no memory.
    losses = train(build_small(name, **{"covariance_decay": 0.0} if name.startswith("tico") else {}), 12)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(("name", "changes"), EVERY + THREE_VIEWS)
def test_a_method_saved_in_the_middle_goes_on_as_if_it_had_not_been(name, changes):
    whole = build_small(name, **changes)
    losses = train(whole, 4)
    half = build_small(name, **changes)
    train(half, 2)
    resumed = build_small(name, seed=1, **changes)
    resumed.load_state_dict(copy.deepcopy(half.state_dict()))
    assert train(resumed, 2, first_step=2) == losses[2:]
    for key, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[key], value), key


@pytest.mark.parametrize("name", IMAGES)
def test_the_representation_is_the_pooled_features_one_row_an_image(name):
    method = build_small(name)
    train(method, 1)  # running statistics away from their start
    method.eval()
    images = torch.randint(0, 256, (3, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        output, backbone = method.represent(images), method.represent(images, "backbone")
        alone = torch.cat([method.represent(image[None]) for image in images])
        # By hand: [0, 1], then the dataset's mean and deviation; floats are taken as they come.
        mean, std = (torch.tensor(x)[:, None, None] for x in ((0.49, 0.48, 0.45), (0.25, 0.24, 0.26)))
        by_hand = method.represent((images / 255 - mean) / std)
    # ResNet-18 of width 8 ends with 8 x 8 channels.
    assert output.shape == (3, 64)
    assert torch.equal(output, backbone)
    torch.testing.assert_close(output, by_hand, rtol=1e-6, atol=1e-6)
    # Another batch size sums in another order.
    torch.testing.assert_close(output, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", IMAGES)
def test_what_is_saved_for_inference_gives_the_same_features(name):
    method = build_small(name)
    train(method, 1)
    keep = tuple(f"{part}." for part in method.inference_parts)
    state = {key: value.clone() for key, value in method.state_dict().items() if key.startswith(keep)}
    with torch.device("meta"):
        empty = METHODS[name](small_image_settings(name), MethodContext((3, 16, 16)))
    empty.load_state_dict(state, strict=False, assign=True)
    images = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert torch.equal(empty.eval().represent(images), method.eval().represent(images))


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
def test_presets_are_sound_and_survive_toml(name, preset, tmp_path):
    config = ImageConfig(method=name, settings=METHODS[name].settings_type.preset(preset))
    check_config(config)
    write_toml(tmp_path / "config.toml", config)
    assert read_run_config(tmp_path) == config


@pytest.mark.parametrize(("name", "changes"), THREE_VIEWS)
def test_more_views_survive_toml_and_a_config_without_them_has_two(name, changes, tmp_path):
    config = ImageConfig(method=name, view_size=16, settings=small_image_settings(name, **changes))
    check_config(config)
    write_toml(tmp_path / "config.toml", config)
    assert read_run_config(tmp_path) == config
    lines = (tmp_path / "config.toml").read_text().splitlines(True)
    (tmp_path / "config.toml").write_text("".join(line for line in lines if not line.startswith("num_views")))
    assert read_run_config(tmp_path) == replace(config, settings=small_image_settings(name, num_views=2))


def test_the_paper_preset_is_table_5():
    for name in ("simclr", "simclr-c+", "barlow-twins", "barlow-twins-c+"):
        settings = METHODS[name].settings_type.preset("paper")
        assert (settings.encoder, settings.encoder_width, settings.hidden_units) == ("resnet50", 64, 2048)
        # Section 4: eight charts of 256 against 2048 units in one, the same in sum.
        assert settings.num_heads * settings.units == 2048
        assert settings.num_heads == (8 if name.endswith("-c+") else 1)
        assert settings.epsilon == (0.005 if name.endswith("-c+") else 0)
    assert METHODS["simclr-c+"].settings_type.preset("paper").temperature == 0.5
    assert METHODS["barlow-twins-c+"].settings_type.preset("paper").off_diagonal_weight == 0.005


C_PLUS = [name for name in IMAGES if name.endswith("-c+")]


@pytest.mark.parametrize("name", C_PLUS)
def test_one_head_is_the_plain_method_exactly(name):
    plain, one_head = build_small(name.removesuffix("-c+")), build_small(name, num_heads=1)
    batch = make_views(plain)
    expected, got = plain.loss(batch), one_head.loss(batch)
    assert expected.parts.keys() == got.parts.keys()
    assert torch.equal(expected.total, got.total)


def test_the_capacity_of_simclr_ua_is_that_of_the_first_view():
    method = build_small("simclr-ua", epsilon=0.01).double()
    batch = Batch(make_views(method).frames_BTCHW.double())
    with torch.no_grad():
        features = [method.encoder(view).features_BF for view in batch.frames_BTCHW.unbind(1)]
        outputs = [head_outputs(method.charts.heads, each) for each in features]
        norms = [-float(mmcr(norm(each))) for each in outputs]
        measured = method.loss(batch).metrics["capacity_norm"]
    assert abs(norms[0] - norms[1]) > 1e-3
    assert float(measured) == pytest.approx(norms[0], rel=1e-5)


@pytest.mark.parametrize("name", IMAGES)
def test_every_method_on_images_takes_more_views(name):
    method = build_small(name, num_views=3)
    batch = make_views(method)
    assert batch.frames_BTCHW.shape[1] == method.frames_per_sample == 3
    method.loss(batch).total.backward()


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize(
    ("num_views", "problem"), [(1, "must be at least 2, got 1"), (65, "must be at most 64, got 65")]
)
def test_fewer_than_two_views_are_refused(name, num_views, problem):
    with pytest.raises(UserError, match=f"num_views {problem}"):
        check_config(small_image_settings(name, num_views=num_views))


@pytest.mark.parametrize("name", ["byol", "tico"])
def test_the_target_follows_by_the_momentum(name):
    # m = 1 - (1 - 0.2)(cos(pi/2) + 1)/2 = 0.6 halfway: 0.4 of the way from 0 to the network's weight.
    method = build_small(name, momentum=0.2)
    networks = (method.encoder.resnet.conv1.weight, method.charts.heads.output.weight)
    targets = (method.target.encoder.resnet.conv1.weight, method.target.heads.output.weight)
    before = [weight.detach().clone() for weight in networks]
    for target in targets:
        target.zero_()
    for progress in (0.5, 1.0):  # at the end of a run it stands still
        method.after_step(progress)
        for weight, network, target in zip(before, networks, targets, strict=True):
            torch.testing.assert_close(target, 0.4 * weight, rtol=1e-6, atol=0)
            assert torch.equal(network, weight)


def test_each_weight_of_vicreg_weighs_its_own_term():
    weights = {"invariance": 3.0, "variance": 5.0, "covariance": 7.0}
    plain, weighed = (
        build_small("vicreg", **{f"{name}_weight": value for name, value in chosen.items()})
        for chosen in (dict.fromkeys(weights, 1.0), weights)
    )
    plain, weighed = (method.loss(make_views(method)).parts for method in (plain, weighed))
    for name, weight in weights.items():
        assert plain[name].item() > 0
        torch.testing.assert_close(weighed[name], weight * plain[name])


def test_all_wrong_settings_are_told_together():
    settings = small_image_settings(
        "simclr-c+", num_heads=9, epsilon=-1.0, temperature=0.001, encoder_width=12, num_views=1
    )
    with pytest.raises(UserError) as told:
        check_config(settings)
    for line in (
        "num_heads must not exceed units (8), got 9",
        "num_views must be at least 2, got 1",
        "epsilon must not be negative, got -1.0",
        "temperature must be at least 0.025, got 0.001",
        "encoder_width must be a positive multiple of 8, got 12",
    ):
        assert line in str(told.value)


def test_as_many_heads_as_units_are_allowed_and_no_units_are_one_mistake():
    assert small_image_settings("simclr-c+", num_heads=8, units=8).problems() == []
    assert small_image_settings("simclr-c+", num_heads=2, units=0).problems() == []  # its range says what is wrong
    [problem] = small_image_settings("simclr-c+", num_heads=2, units=1).problems()
    assert "num_heads must not exceed units (1), got 2" in problem


@pytest.mark.parametrize("name", IMAGES)
def test_a_batch_of_one_is_refused(name):
    method = build_small(name)
    with pytest.raises(ValueError, match="batch normalisation needs at least 2 images in each process's batch, got 1"):
        method.loss(make_views(method, size=1))
    assert method.loss(make_views(method, size=2)).total.isfinite()


@pytest.mark.parametrize("name", IMAGES)
def test_hidden_layers_are_normalised_over_the_batch(name):
    # Algorithm 3 of arXiv 2405.13848, and the code of every one of these methods.
    heads = [
        module for module in build_small(name).modules() if isinstance(module, Heads) and module.hidden is not None
    ]
    assert heads != []
    assert all(isinstance(each.norm, torch.nn.BatchNorm1d) for each in heads)


def test_images_of_another_size_are_refused():
    method = build_small("simclr").eval()
    with pytest.raises(ValueError, match="encoder built for frames .B, 3, 16, 16., got .4, 3, 32, 32"):
        method.represent(torch.zeros(4, 3, 32, 32))


def test_a_mean_for_another_number_of_channels_is_refused():
    with pytest.raises(ValueError, match="mean needs one value for each of 1 channels, got .0.5, 0.5, 0.5."):
        METHODS["simclr"](small_image_settings("simclr"), MethodContext((1, 16, 16), mean=(0.5, 0.5, 0.5)))


@pytest.mark.parametrize("name", ["barlow-twins", "barlow-twins-c+"])
def test_barlow_twins_normalises_outputs_as_the_code_that_the_paper_follows(name):
    assert METHODS[name].settings_type.preset("paper").normalize_outputs
    losses = {}
    for normalize in (True, False):
        method = build_small(name, normalize_outputs=normalize)
        z, other = (method.charts(view) for view in view_features(method.encoder, make_views(method).frames_BTCHW))
        if normalize:  # to length sqrt(D), D = 8 units
            z, other = (8**0.5 * x / x.norm(dim=2, keepdim=True) for x in (z, other))
        fresh = build_small(name, normalize_outputs=normalize)
        losses[normalize] = fresh.loss(make_views(fresh)).parts["redundancy"]
        torch.testing.assert_close(losses[normalize], barlow_twins(z, other), rtol=1e-4, atol=0)
    assert losses[True] != losses[False]
