"""`manicap.load` gives a module that takes raw frames, knows what it is, and behaves as any other."""

import copy
import shutil

import pytest
import torch

import manicap
from manicap.core.sealed import read_sealed, write_sealed
from manicap.domains.images.data import open_split
from manicap.domains.images.features import ImageEncoder
from manicap.domains.result import RunResult
from manicap.nn.image_input import ImageInput, ImageView
from manicap.train.finished import FinishedRun
from tests.algorithms.small import small_config
from tests.image_folder import small_image_config
from tests.train.runner import run_to_end


@pytest.fixture(scope="module")
def image_run(image_folder, tmp_path_factory):
    """Of images of 16 x 16, seen at 12 x 12."""
    run_dir = tmp_path_factory.mktemp("images") / "run"
    run_to_end(small_image_config(image_folder, "simclr", view_size=12, max_epochs=1), run_dir, run_dir)
    return run_dir


def random_frames(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_the_card_says_what_the_result_says(probed):
    encoder, result = manicap.load(probed), RunResult.read(probed / "result.json")
    card = encoder.card
    assert (card.method, card.domain, card.subject, card.steps, card.seed) == ("st-dim", "atari", "pong", 2, 0)
    assert card.view.shape == encoder.input_shape == (1, 210, 160)
    assert card.score.metrics == result.evaluation.metrics
    assert {"majority", "untrained"} <= set(card.score.floors)
    assert card.score.floors["untrained"] == result.evaluation.floors["untrained"].metrics
    assert (card.score.layer, card.score.width, card.score.annotation_set) == ("output", 8, "corrected")
    assert (card.score.probe, card.score.protocol) == (result.evaluation.probe, "fixed")
    assert card.score.versions["torch"] == torch.__version__


def test_a_score_of_other_weights_is_not_on_the_card(probed, tmp_path):
    run_dir = shutil.copytree(probed, tmp_path / "run")
    result = read_sealed(run_dir / "result.json", "result", "")
    write_sealed(run_dir / "result.json", {**result, "encoder": "0" * 64 + "-output"})
    assert manicap.load(run_dir).card.score is None


def test_only_the_files_of_the_encoder_are_needed(probed, tmp_path):
    for name in ("encoder.json", "encoder.safetensors"):
        shutil.copy(probed / name, tmp_path)
    encoder, frames = manicap.load(tmp_path), random_frames(2, 1, 210, 160)
    assert (encoder.card.subject, encoder.card.seed, encoder.card.score) == (None, None, None)
    assert torch.equal(encoder(frames), manicap.load(probed)(frames))


def test_a_layer_is_chosen_by_name(probed):
    frames = random_frames(2, 1, 210, 160)
    layers = FinishedRun(probed).encoder().layers(frames)
    for name in ("convolution 1", "local map", "backbone"):
        encoder = manicap.load(probed, name)
        assert torch.equal(encoder(frames), layers[name].flatten(1))
        assert encoder.num_features == layers[name][0].numel()
    # 11 x 8 positions of 128 channels, before 9 x 6 of 64.
    assert (manicap.load(probed, "local").num_features, encoder.num_features) == (11 * 8 * 128, 9 * 6 * 64)
    assert manicap.load(probed).num_features == 8
    with pytest.raises(manicap.UserError, match=r"unknown layer 'backbon'; did you mean 'backbone'\?"):
        manicap.load(probed, "backbon")


def test_it_is_compiled_copied_and_fine_tuned_as_any_module(probed):
    encoder, frames = manicap.load(probed), random_frames(2, 1, 210, 160)
    expected = encoder(frames)
    compiled = torch.compile(encoder, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(frames), expected)
    tuned = copy.deepcopy(encoder).train().requires_grad_(True)
    optimizer = torch.optim.SGD(tuned.parameters(), lr=0.1)
    tuned(frames).square().mean().backward()
    assert all(parameter.grad is not None for parameter in tuned.parameters())
    optimizer.step()
    assert not torch.equal(tuned(frames), expected)
    assert torch.equal(encoder(frames), expected)
    tuned.load_state_dict(encoder.state_dict())
    assert torch.equal(tuned(frames), expected)


def test_raw_images_are_seen_as_a_probe_saw_them(image_run, image_folder):
    config = FinishedRun(image_run).config
    encoder, dataset = manicap.load(image_run, weights="last"), open_split(config, "test", image_folder)
    assert encoder.input_shapes == ((3, 16, 16), (3, 12, 12))
    images = torch.from_numpy(dataset.images[:5])
    probed = ImageEncoder(encoder.method, config.view_recipe, dataset.mean, dataset.std)
    torch.testing.assert_close(encoder(images), probed.encode(dataset)[:5], rtol=1e-4, atol=1e-5)
    assert encoder(images[:, :, 2:14, 2:14]).shape == (5, encoder.num_features)


def test_an_image_is_resized_cropped_and_normalised():
    # A ramp of 8 columns halved by a triangle of width 2: inside, each output is the mean of its two inputs, the two
    # outer inputs with a quarter of their neighbours; of the 4 outputs, the 2 in the middle are kept.
    view = ImageView((1, 8, 8), 2, 4, "bilinear", (0.5,), (0.25,))
    ramp = torch.arange(8, dtype=torch.uint8).mul(10).expand(1, 1, 8, 8)
    columns = torch.tensor([25.0, 45.0])  # weights 1 3 3 1 over 10 20 30 40 and over 30 40 50 60
    expected = ((columns / 255 - 0.5) / 0.25).expand(1, 1, 2, 2)
    torch.testing.assert_close(ImageInput(view)(ramp), expected)
    small = torch.full((1, 1, 2, 2), 255, dtype=torch.uint8)
    torch.testing.assert_close(ImageInput(view)(small), torch.full((1, 1, 2, 2), 2.0))


@pytest.mark.parametrize("shape", [(2, 1, 84, 84), (1, 210, 160), (2, 3, 210, 160)])
def test_frames_of_another_size_are_refused_in_one_sentence(shape, probed):
    with pytest.raises(manicap.UserError, match=r"takes uint8 frames \[B, 1, 210, 160\], got uint8 \[") as error:
        manicap.load(probed)(random_frames(*shape))
    assert "\n" not in str(error.value)


def test_frames_that_are_no_tensor_or_not_scaled_are_refused(probed):
    encoder = manicap.load(probed)
    frames = torch.full((1, *encoder.input_shape), 200, dtype=torch.uint8)
    torch.testing.assert_close(encoder(frames.float() / 255), encoder(frames))
    with pytest.raises(manicap.UserError, match=r"floats must lie in \[0, 1\], got 200: give uint8 frames"):
        encoder(frames.float())
    with pytest.raises(manicap.UserError, match="takes a torch tensor, got ndarray"):
        encoder(frames.numpy())


def test_what_is_no_encoder_is_told(probed, tmp_path):
    with pytest.raises(manicap.UserError, match="loaded from a directory or a hub's name, got 3"):
        manicap.load(3)
    with pytest.raises(manicap.UserError, match=r"config\.toml is a file, not an encoder: give the directory"):
        manicap.load(probed / "config.toml")
    with pytest.raises(manicap.UserError, match="weights must be chosen or last, got 'first'"):
        manicap.load(probed, weights="first")
    run_dir = shutil.copytree(probed, tmp_path / "newer")
    description = read_sealed(run_dir / "encoder.json", "encoder", "")
    write_sealed(run_dir / "encoder.json", {**description, "format": 99})
    with pytest.raises(manicap.UserError, match="format 99, but this version reads 3; install a newer manicap"):
        manicap.load(run_dir)
    write_sealed(run_dir / "encoder.json", {**description, "input_shape": [1, 30, 30]})
    with pytest.raises(manicap.UserError, match="NatureCNN needs frames of at least 84 x 84|at least"):
        manicap.load(run_dir)


def test_a_plug_in_is_imported_only_if_the_caller_names_it(data_dir, tmp_path):
    description = {"method": "nowhere.methods:Mine", "settings": {}}
    run_dir = tmp_path / "run"
    run_to_end(small_config("random-cnn"), run_dir, data_dir)
    found = read_sealed(run_dir / "encoder.json", "encoder", "")
    (run_dir / "config.toml").unlink()
    write_sealed(run_dir / "encoder.json", {**found, **description})
    with pytest.raises(manicap.UserError, match=r"nowhere\.methods:Mine is not part of manicap, and a file cannot"):
        manicap.load(run_dir)
    with pytest.raises(manicap.UserError, match=r"cannot import nowhere\.methods:Mine: .*; is its package installed"):
        manicap.load(run_dir, plugins=["nowhere.methods:Mine"])
