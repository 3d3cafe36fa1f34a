"""An encoder that was trained on normalised frames takes the statistics with it, and so does its untrained network."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from manicap.atari.integrity import open_store
from manicap.atari.store import store_path
from manicap.core.errors import UserError
from manicap.domains.play.data import StoreData
from manicap.nn.encoders import NatureCNN
from manicap.play.protocol import find_protocol
from manicap.play.splits import pretrain_splits
from manicap.train.finished import FinishedRun
from manicap.train.loop import pretrain
from manicap.train.setup import Execution
from tests.algorithms.small import small_config, small_settings
from tests.train.runner import run_to_end

CONFIG = small_config("dim-c+", max_steps=2, settings=replace(small_settings("dim-c+"), input="standardised"))


@pytest.fixture(scope="module")
def run(data_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    run_to_end(CONFIG, run_dir, data_dir)
    return FinishedRun(run_dir)


@pytest.fixture(scope="module")
def store(run, data_dir):
    return open_store(store_path(CONFIG.store_config, data_dir))


def test_the_statistics_are_those_of_the_training_split(run, store):
    train = pretrain_splits(store, find_protocol("fixed"), CONFIG.seed).train.rows
    pixels = store.frames[train][:, None] / 255
    encoder = run.encoder().method.encoder
    np.testing.assert_allclose(encoder.mean.numpy(), pixels.mean(0), atol=1e-5)
    np.testing.assert_allclose(encoder.deviation.numpy(), np.maximum(pixels.std(0), 0.1), atol=1e-5)
    assert (encoder.deviation > 0.1).any()
    assert (encoder.deviation == 0.1).float().mean() > 0.5  # most of Pong never changes


def test_whoever_loads_it_gives_it_plain_frames(run, store):
    frames = torch.from_numpy(store.frames[np.array([3, 50, 600])])[:, None]
    encoder = run.encoder()
    inner = encoder.method.encoder
    plain = NatureCNN()
    plain.load_state_dict(inner.encoder.state_dict())
    expected = plain((frames / 255 - inner.mean) / inner.deviation).features_BF
    torch.testing.assert_close(encoder(frames), expected, rtol=1e-4, atol=1e-4)


def test_the_untrained_network_sees_the_same(run):
    trained, untrained = run.encoder().method.encoder, run.untrained().method.encoder
    assert torch.equal(trained.mean, untrained.mean)
    assert torch.equal(trained.deviation, untrained.deviation)
    assert not torch.equal(trained.encoder.conv1.weight, untrained.encoder.conv1.weight)


def test_only_deviations_are_left_out_by_centring(run, store):
    centred = replace(CONFIG, settings=replace(CONFIG.settings, input="centred"))
    statistics = StoreData(centred, store, torch.device("cpu")).context.pixel_statistics
    encoder = centred.settings.build_encoder(StoreData(centred, store, torch.device("cpu")).context)
    assert torch.equal(encoder.mean, statistics[0])
    assert torch.equal(encoder.deviation, torch.ones(1, 210, 160))


def test_data_without_statistics_are_refused(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(StoreData, "_pixel_statistics", lambda self: None)
    with pytest.raises(UserError, match="give no statistics of pixels; use --input scaled"):
        pretrain(CONFIG, tmp_path / "run", Execution(threads=1, quiet=True), data_dir)


def test_frames_as_in_the_papers_need_no_statistics(store):
    plain = replace(CONFIG, settings=replace(CONFIG.settings, input="scaled"))
    assert StoreData(plain, store, torch.device("cpu")).context.pixel_statistics is None
