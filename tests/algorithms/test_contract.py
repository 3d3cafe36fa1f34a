"""What every method promises, checked over the whole of METHODS; those on images have also test_image_contract."""

import ast
import inspect
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from manicap.algorithms import METHODS, find_method
from manicap.algorithms.base import Batch, MethodContext
from manicap.algorithms.cpc import CPCSettings
from manicap.core.config import write_toml
from manicap.core.errors import UserError
from manicap.domains.atari.config import atari_preset
from manicap.domains.play.samples import FrameSamples
from manicap.play.protocol import FIXED
from manicap.play.splits import Part
from manicap.train.config_file import read_run_config
from manicap.train.device import cpu_survives_bfloat16
from tests.algorithms.small import ATARI, SMALL, TRAINED, small_config, small_settings

CONTEXT = MethodContext(num_variables=3)


def build(name, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return METHODS[name](small_settings(name), CONTEXT)


@pytest.fixture(scope="module")
def make_batch(pong_store):
    """Real frames of Pong, as a method needs them."""

    def make(method, size=6, dtype=torch.uint8):
        lane = pong_store.episodes[0]
        part = Part("train", np.arange(lane["length"]), np.zeros(lane["length"], np.int64))
        samples = FrameSamples(pong_store, part, FIXED, method.frames_per_sample)
        rows = samples.rows(np.linspace(40, len(samples.first) - 1, size).astype(int))
        frames = torch.from_numpy(pong_store.frames[rows.ravel()]).unflatten(0, rows.shape).unsqueeze(2)
        if dtype.is_floating_point:
            frames = frames.to(dtype) / 255
        labels = torch.from_numpy(pong_store.ram[rows[:, 0]][:, [49, 51, 54]]).long()
        return Batch(frames, labels, torch.Generator().manual_seed(0))

    return make


def test_the_local_input_is_the_whole_feature_map(make_batch):
    method = build("st-dim")
    frames = make_batch(method).frames_BTCHW[:, 0]
    with torch.no_grad():
        found, encoded = method.represent(frames, "local"), method.encoder(frames)
    assert found.shape == (len(frames), 11 * 8 * 128)
    assert torch.equal(found.view(len(frames), 88, 128), encoded.local_BPC)


@pytest.mark.parametrize("name", TRAINED)
def test_the_loss_is_a_finite_scalar_and_its_parts_add_up(name, make_batch):
    method = build(name)
    loss = method.loss(make_batch(method))
    assert loss.total.shape == ()
    assert torch.isfinite(loss.total)
    # Added one by one in the order they come, as a person would.
    by_hand = 0.0
    for part in loss.parts.values():
        by_hand += float(part.detach())
    assert float(loss.total.detach()) == pytest.approx(by_hand, rel=1e-6)
    assert not any(isinstance(value, torch.Tensor) and value.requires_grad for value in loss.metrics.values())


@pytest.mark.parametrize("name", TRAINED)
def test_every_method_learns_as_quick_trains_it(name, make_batch):
    """Frames scaled and standardised; both directions, triples and a reconstruction where there are pairs."""
    usual, small = METHODS[name].settings_type.preset("quick"), SMALL.get(name, {"units": 8})
    statistics = (torch.full((1, 210, 160), 0.3), torch.full((1, 210, 160), 0.2))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = METHODS[name](replace(usual, **small), replace(CONTEXT, pixel_statistics=statistics))
    assert usual.input == "both"
    assert torch.equal(method.encoder.deviation, statistics[1])
    loss = method.loss(make_batch(method))
    loss.total.backward()
    assert torch.isfinite(loss.total)
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in method.encoder.parameters())


def test_only_the_supervised_method_needs_labels():
    assert [name for name, method in METHODS.items() if method.needs_labels] == ["supervised"]


def test_methods_that_see_single_frames_ask_for_single_frames():
    assert {name for name in TRAINED if build(name).frames_per_sample == 1} == {"dim", "supervised", "vae"}


@pytest.mark.parametrize("name", ["cpc", "dim", "global-t-dim", "pixel-pred", "random-cnn", "supervised"])
def test_one_head_is_built_where_one_is_used(name):
    assert build(name).head.num_heads == 1


def test_cpc_predicts_from_one_step_ahead_to_the_last():
    for first, ok in ((1, True), (2, True), (3, False)):
        assert (CPCSettings(sequence_frames=3, first_step=first).problems() == []) == ok


@pytest.mark.parametrize("name", TRAINED)
def test_every_parameter_gets_a_gradient(name, make_batch):
    method = build(name)
    method.loss(make_batch(method)).total.backward()
    without = [name for name, parameter in method.named_parameters() if parameter.grad is None]
    assert without == []
    for parameter in method.encoder.parameters():
        assert parameter.grad.abs().sum() > 0


@pytest.fixture(scope="module")
def survives_bfloat16():
    if not cpu_survives_bfloat16():
        pytest.skip("this CPU dies of bfloat16")


@pytest.mark.parametrize("name", TRAINED)
def test_a_network_in_bfloat16_has_a_loss_in_float32(name, make_batch, survives_bfloat16):
    method = build(name)
    expected = method.loss(make_batch(method)).parts
    with torch.autocast("cpu", torch.bfloat16):
        found = method.loss(make_batch(method)).parts
    assert {part.dtype for part in found.values()} == {torch.float32}
    # Features of 8 bits, and a loss whose own sums add nothing to their error.
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.01)


@pytest.mark.parametrize("name", TRAINED)
def test_a_batch_gives_the_same_loss_twice(name, make_batch):
    method = build(name)
    first, second = (method.loss(make_batch(method)).total for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", TRAINED)
def test_the_loss_falls_on_a_small_batch(name, make_batch):
    method = build(name)
    optimizer = torch.optim.Adam(method.parameters(), lr=1e-3, eps=1e-5)
    losses = []
    for _ in range(12):
        loss = method.loss(make_batch(method)).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", sorted(ATARI))
def test_the_representation_is_one_row_of_floats_a_frame(name, make_batch):
    method = build(name).eval()
    frames = make_batch(method).frames_BTCHW[:, 0]
    with torch.inference_mode():
        output = method.represent(frames)
        backbone = method.represent(frames, "backbone")
        alone = torch.cat([method.represent(frame[None]) for frame in frames])
    assert output.shape[0] == backbone.shape[0] == len(frames)
    assert output.dtype == torch.float32
    # A frame's features do not depend on the others in its batch.
    torch.testing.assert_close(output, alone, rtol=1e-5, atol=1e-5)
    assert backbone.shape[1] == (1 if name == "majority" else 3456)


def test_the_probe_widths_are_the_papers():
    # ST-DIM's probe sees 256 features, DIM-UA's 4096, DIM-C+'s 3456 (arXiv 2405.13848, section 4).
    expected = {"st-dim": 256, "cpc": 256, "vae": 256, "dim-ua": 4096, "dim-uac+": 4096, "dim-c+": 3456}
    for name, width in expected.items():
        with torch.device("meta"):
            method = METHODS[name](METHODS[name].settings_type(), MethodContext())
        frames = torch.zeros(2, 1, 210, 160, dtype=torch.uint8, device="meta")
        assert method.represent(frames).shape == (2, width), name


@pytest.mark.parametrize("name", sorted(ATARI))
def test_the_config_survives_toml(name, tmp_path):
    config = small_config(name)
    write_toml(tmp_path / "config.toml", config)
    assert read_run_config(tmp_path) == config


def own_settings(cls):
    """The settings that a class declares, and those of them that have a docstring under them."""
    body = ast.parse(inspect.getsource(cls)).body[0].body
    declared = {node for node in body if isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.unparse(node)}
    texts = {node for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    explained = {node.target.id for node, below in pairwise(body) if node in declared and below in texts}
    return {node.target.id for node in declared}, explained


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_setting_is_explained(name):
    settings = METHODS[name].settings_type
    found = set()
    for cls in settings.__mro__[:-1]:
        declared, explained = own_settings(cls)
        assert declared - explained == set(), cls.__name__
        found |= declared
    assert found == {field.name for field in fields(settings)}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_has_a_page_with_its_command(name, request):
    page = (request.config.rootpath / "docs" / "methods" / f"{name}.md").read_text()
    command = "pretrain --game pong" if METHODS[name].kind == "frames" else "run --dataset cifar10"
    assert f"manicap {command} --method {name}" in page
    for heading in ("## Deviations", "## Logged parts"):
        assert heading in page


def test_the_paper_preset_is_tables_3_and_4():
    for name in ("dim-ua", "dim-uac+", "dim-c+"):
        config = atari_preset("paper", "pong", name)
        # Table 3, and the text of section 4: four heads of 4096 units, hidden layer of 2048.
        assert (config.batch_size, config.max_epochs, config.learning_rate) == (64, 100, 3e-4)
        assert config.max_steps is None
        # 8e4 pretraining steps are the 80 % training share of 1e5.
        assert config.collect_steps * 0.8 == 8e4
        assert (config.settings.num_heads, config.settings.units) == (4, 4096)
        assert config.settings.encoder == "nature"
    assert atari_preset("paper", "pong", "dim-ua").settings.unbalance_weight == 0.1
    assert atari_preset("paper", "pong", "dim-uac+").settings.epsilon == 0.0005
    assert atari_preset("paper", "pong", "dim-c+").settings.epsilon == 0.0005
    assert atari_preset("paper", "pong", "dim-c+").settings.hidden_units == 2048


def test_an_unknown_method_suggests_the_nearest():
    with pytest.raises(UserError, match=r"unknown method 'dimc\+'; did you mean 'dim-c\+'"):
        find_method("dimc+")


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_setting_has_a_line_on_the_methods_page_or_on_the_shared_one(name, request):
    pages = request.config.rootpath / "docs" / "methods"
    text = (pages / f"{name}.md").read_text() + (pages / "README.md").read_text()
    flags = [f"| `--{field.name.replace('_', '-')}` |" for field in fields(METHODS[name].settings_type)]
    assert [flag for flag in flags if flag not in text] == []


def test_the_shared_page_has_the_steps_of_the_presets(request):
    quick, standard = (atari_preset(preset, "pong", "dim-c+").max_steps for preset in ("quick", "standard"))
    page = (request.config.rootpath / "docs" / "methods" / "README.md").read_text()
    assert f"| `--max-steps` | none | {quick} in quick, {standard:,} in standard |" in page
