"""The one loop on images: views, checks, exact resume."""

import json
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from manicap import load
from manicap.algorithms.simclr import SimCLR
from manicap.core.config import config_problems, write_toml
from manicap.core.errors import UserError
from manicap.core.seeding import stream_seed
from manicap.domains.images.check import ImageCheck
from manicap.domains.images.config import ImageConfig, image_preset
from manicap.domains.images.data import ImageData, image_context, open_split
from manicap.domains.images.features import ImageEncoder
from manicap.images.views import make_views, normalise
from manicap.train.config_file import read_run_config
from manicap.train.loop import pretrain
from manicap.train.setup import build_method
from tests.algorithms.small_images import small_image_settings
from tests.image_folder import small_image_config
from tests.train.runner import EXECUTION, in_process, result_bytes, run_to_end, run_until_killed

CPU = torch.device("cpu")


def read_metrics(run_dir, split):
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["split"] == split]


# Beside weights: heads with capacity and a second network that follows (byol-c+), and a matrix that does (tico).
@pytest.mark.parametrize("method", [pytest.param("byol-c+", marks=pytest.mark.slow), "tico"])
def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(method, image_folder, tmp_path):
    config = small_image_config(image_folder, method)
    run_to_end(config, tmp_path / "whole", tmp_path)
    kills = 0
    for attempt in range(20):
        code = in_process(run_until_killed, config, tmp_path / "killed", tmp_path, f"{method} {attempt}", 0.3)
        assert code in (0, -signal.SIGKILL)
        kills += code == -signal.SIGKILL
        if kills == 2:
            break
        if code == 0:
            (tmp_path / "killed").rename(tmp_path / f"done-{attempt}")
    assert kills == 2
    assert in_process(run_to_end, config, tmp_path / "killed", tmp_path) == 0
    assert result_bytes(tmp_path / "killed") == result_bytes(tmp_path / "whole")


def image_data(config, folder, rank=0):
    return ImageData(config, open_split(config, "pretrain", folder), CPU, rank)


def test_a_batch_is_made_of_views_of_its_own_step(image_folder):
    config = small_image_config(image_folder, seed=3)
    data = image_data(config, image_folder)
    (samples,) = data.splits(2).values()
    assert samples.per_epoch == 96
    rows = samples.rows(samples.order(np.random.default_rng(0)))[:16]
    batch = data.batch(rows, "train", 7)
    assert batch.frames_BTCHW.shape == (16, 2, 3, 16, 16)
    assert torch.equal(batch.frames_BTCHW, data.batch(rows, "train", 7).frames_BTCHW)
    assert not torch.equal(batch.frames_BTCHW, data.batch(rows, "train", 8).frames_BTCHW)
    other_seed = image_data(replace(config, seed=4), image_folder)
    other_seed.splits(2)
    assert not torch.equal(batch.frames_BTCHW, other_seed.batch(rows, "train", 7).frames_BTCHW)


def test_a_run_sees_as_many_views_as_its_settings_say_in_the_size_that_its_config_says(
    image_folder, tmp_path, monkeypatch
):
    seen, own = [], SimCLR.loss
    monkeypatch.setattr(SimCLR, "loss", lambda self, batch: seen.append(batch.frames_BTCHW.shape) or own(self, batch))
    settings = small_image_settings("simclr", num_views=4)
    config = small_image_config(image_folder, "simclr", view_size=8, settings=settings, max_steps=2)
    run_to_end(config, tmp_path / "run", tmp_path)
    assert set(seen) == {(16, 4, 3, 8, 8)}
    assert read_run_config(tmp_path / "run") == config
    assert load(tmp_path / "run")(torch.zeros(2, 3, 16, 16, dtype=torch.uint8)).shape == (2, 64)


@pytest.mark.parametrize("encoder", ["plain", "resnet18"])
def test_views_may_be_smaller_than_what_is_probed(encoder, image_folder, tmp_path, monkeypatch):
    seen, own = [], SimCLR.loss
    monkeypatch.setattr(SimCLR, "loss", lambda self, batch: seen.append(batch.frames_BTCHW.shape) or own(self, batch))
    settings = small_image_settings("simclr", encoder=encoder)
    config = small_image_config(
        image_folder, "simclr", view_size=12, probe_size=16, settings=settings, max_steps=2, check_every=1
    )
    run_to_end(config, tmp_path / "run", tmp_path)
    assert set(seen) == {(16, 2, 3, 12, 12)}
    assert read_run_config(tmp_path / "run") == config
    found = load(tmp_path / "run")
    assert found.input_shapes == ((3, 16, 16),)
    images = image_data(config, image_folder).dataset
    probed = ImageEncoder(found.method, config.view_recipe, images.mean, images.std)
    some = torch.from_numpy(images.images[:4])
    torch.testing.assert_close(probed.encode(images)[:4], found(some), rtol=1e-4, atol=1e-5)
    assert probed.encode_views(images.images[:4], 0).shape == (4, found.num_features)


def test_two_processes_see_the_views_of_one(image_folder):
    config = small_image_config(image_folder)
    whole, *halves = (image_data(config, image_folder, rank) for rank in (0, 0, 1))
    for data in (whole, *halves):
        data.splits(2)
    rows = torch.randperm(96, generator=torch.Generator().manual_seed(0))[:16].numpy()
    together = whole.batch(rows, "train", 5).frames_BTCHW
    apart = [
        half.batch(share, "train", 5).frames_BTCHW for half, share in zip(halves, (rows[:8], rows[8:]), strict=True)
    ]
    assert torch.equal(together, torch.cat(apart))


def test_views_are_normalised_with_the_datasets_statistics(image_folder):
    config = small_image_config(image_folder)
    data = image_data(config, image_folder)
    data.splits(1)
    rows = torch.arange(16).numpy()
    generator = torch.Generator().manual_seed(stream_seed(0, "views", "train", 0))
    views = make_views(torch.from_numpy(data.dataset.images[rows]), config.view_recipe, 1, generator)
    expected = normalise(views, data.dataset.mean, data.dataset.std)
    assert torch.equal(data.batch(rows, "train", 0).frames_BTCHW, expected)


def test_the_method_hears_of_every_step_and_of_how_far_the_run_is(image_folder, tmp_path, monkeypatch):
    heard = []
    monkeypatch.setattr(SimCLR, "after_step", lambda self, progress: heard.append(progress))
    run_to_end(small_image_config(image_folder), tmp_path / "run", tmp_path)
    assert heard == [step / 12 for step in range(1, 13)]  # 2 epochs of 96 / 16 steps


def test_without_checks_the_last_weights_are_kept_and_nothing_is_validated(image_folder, tmp_path):
    run_to_end(small_image_config(image_folder), tmp_path / "run", tmp_path)
    assert len(read_metrics(tmp_path / "run", "train")) == 12
    assert read_metrics(tmp_path / "run", "val") == read_metrics(tmp_path / "run", "check") == []
    files = result_bytes(tmp_path / "run")
    assert files["encoder.safetensors"] == files["encoder-last.safetensors"]
    encoder = load(tmp_path / "run")
    assert encoder.num_features == 64  # 8 times the width of the first stage
    assert encoder(torch.zeros(2, 3, 16, 16, dtype=torch.uint8)).shape == (2, 64)


@pytest.mark.parametrize("protocol", ["clean", "tsai2021"])
def test_checks_are_logged_and_choose_the_best_weights(protocol, image_folder, tmp_path):
    changes = {"protocol": protocol, "check_every": 1, "weights": "best", "max_epochs": 3}
    config = small_image_config(image_folder, **changes)
    for name in ("a", "b"):
        pretrain(config, tmp_path / name, EXECUTION, tmp_path)
    assert result_bytes(tmp_path / "a") == result_bytes(tmp_path / "b")
    checks = read_metrics(tmp_path / "a", "check")
    assert [line["epoch"] for line in checks] == [0, 1, 2]
    # 10 of 96 training images are held out; 32 are test images.
    count = {"clean": 10, "tsai2021": 32}[protocol]
    for line in checks:
        assert line["error"] == 1 - line["knn"]
        assert line["knn"] * count == pytest.approx(round(line["knn"] * count), abs=1e-9)
    errors = [line["error"] for line in checks]
    description = json.loads((tmp_path / "a" / "encoder.json").read_text())
    assert description["best_epoch"] == errors.index(min(errors))
    assert description["weights"] == "best"


def test_a_check_encodes_once_for_both_probes(image_folder, tmp_path, monkeypatch):
    config = small_image_config(image_folder, check_every=1)
    encoded = []
    own = ImageEncoder.encode
    monkeypatch.setattr(
        ImageEncoder, "encode", lambda self, data, quiet: encoded.append(len(data)) or own(self, data, quiet)
    )
    method = build_method(config, image_context(open_split(config, "train", tmp_path), config.view_recipe))
    scores = ImageCheck(config, tmp_path)(method, epoch=0)
    assert set(scores) == {"error", "knn", "linear"}
    assert encoded == [86, 10]  # a tenth of the 96 training images is held out


def test_a_check_does_not_change_what_is_trained(image_folder, tmp_path):
    plain, checked = (small_image_config(image_folder, check_every=every) for every in (None, 2))
    run_to_end(plain, tmp_path / "plain", tmp_path)
    pretrain(checked, tmp_path / "checked", EXECUTION, tmp_path)
    assert [line["epoch"] for line in read_metrics(tmp_path / "checked", "check")] == [1]
    weights = [result_bytes(tmp_path / name)["encoder-last.safetensors"] for name in ("plain", "checked")]
    assert weights[0] == weights[1]


def test_the_config_survives_toml(image_folder, tmp_path):
    config = small_image_config(image_folder, num_images=20, view_size=12, check_every=3)
    write_toml(tmp_path / "config.toml", config)
    assert read_run_config(tmp_path) == config


def test_sizes_that_the_plain_network_cannot_see_are_told(image_folder):
    plain = small_image_settings("simclr", encoder="plain")
    config = small_image_config(image_folder, "simclr", view_size=8, probe_size=4, settings=plain)
    found = "; ".join(config_problems(config))
    for part in ("view_size must be at least 9 for the encoder plain, got 8", "probe_size must be at least 9"):
        assert part in found
    assert config_problems(replace(config, settings=small_image_settings("simclr"))) == []


def test_mistakes_are_told_together(image_folder):
    config = small_image_config(image_folder, batch_size=1, num_images=0, weights="best")
    found = "; ".join(config_problems(config))
    for part in ("batch_size must be at least 2", "num_images must be at least 1", "set how often with check_every"):
        assert part in found


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"recipe": "simcrl"}, "unknown recipe 'simcrl'; did you mean 'simclr'"),
        ({"method": "st-dim"}, "st-dim learns from frames, but images yield views; 'manicap methods' shows what each"),
    ],
)
def test_a_wrong_choice_is_a_clear_error(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        ImageConfig(**changes)


def test_too_few_images_for_a_batch_and_a_batch_that_cannot_be_divided_are_clear_errors(image_folder, tmp_path):
    with pytest.raises(UserError, match=r"the train split has 8 images, fewer than one batch of 16; use more of them"):
        run_to_end(small_image_config(image_folder, num_images=8), tmp_path / "run", tmp_path)


def test_the_paper_preset_is_table_5():
    for method in ("simclr", "simclr-c+", "barlow-twins", "barlow-twins-c+"):
        config = image_preset("paper", "cifar10", method, "clean")
        assert (config.batch_size, config.max_epochs, config.max_steps, config.num_images) == (128, 1000, None, None)
        assert (config.learning_rate, config.weight_decay) == (1e-3, 1e-6)
        assert (config.settings.encoder, config.settings.encoder_width) == ("resnet50", 64)
        assert config.settings.num_heads * config.settings.units == 2048  # 8 x 256, and 1 x 2048 for the baselines
        assert config.settings.hidden_units == 2048
        assert config.settings.epsilon == (0.005 if method.endswith("+") else 0)
        assert config.settings.stem == "cifar"
    assert image_preset("paper", "stl10", "simclr", "clean").settings.stem == "stl10"
    assert image_preset("paper", "cifar10", "simclr", "clean").settings.temperature == 0.5
