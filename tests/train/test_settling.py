"""What is fitted once, after the last step."""

import numpy as np
import pytest
import torch

import manicap
from manicap.atari.collect import collect
from manicap.atari.store import StoreConfig
from manicap.play.protocol import find_protocol
from manicap.play.splits import pretrain_splits
from manicap.pretrained.weights import inference_state
from manicap.train.distributed import join_processes
from manicap.train.loop import Run, pretrain
from manicap.train.setup import Execution, prepare
from tests.algorithms.small import like_quick, small_config

EXECUTION = Execution(threads=1, quiet=True)


def frames_fitted_to(data_dir):
    """Those of 7 stretches of 64 pairs, evenly spaced over the 79 pairs of each of 6 lives: [2 x 448, 1, 210, 160]."""
    store = collect(StoreConfig("pong", steps=640), data_dir, quiet=True)
    rows = pretrain_splits(store, find_protocol("fixed"), 0).train.rows
    first = rows.reshape(6, 80)[:, :-1].ravel()
    # 0, 1/6, ..., 6/6 of 474 - 64
    chosen = np.concatenate([first[start : start + 64] for start in (0, 68, 136, 205, 273, 341, 410)])
    return torch.from_numpy(np.ascontiguousarray(store.frames[np.concatenate([chosen, chosen + 1])]))[:, None]


def test_the_last_weights_and_the_best_have_each_a_filter_of_their_own_features(data_dir, tmp_path):
    frames = frames_fitted_to(data_dir)
    with join_processes(use_cuda=False) as processes:
        run = Run(prepare(like_quick("dim-c+"), EXECUTION, data_dir, processes), tmp_path)
    method = run.setup.method
    with torch.no_grad():
        features = torch.cat([method.encoder(part).features_BF for part in frames.split(128)])
        best = inference_state(method)
        method.encoder.encoder.conv4.weight.mul_(2)  # biases are 0: twice the features
    settled = run.settle(best)
    expected = features.mean(0)
    torch.testing.assert_close(settled["coherence_filter.mean"], expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(method.coherence_filter.mean, 2 * expected, rtol=1e-4, atol=1e-5)
    assert method.training
    # Twice the features are the same standardised.
    z = (features[:4] - expected) * settled["coherence_filter.scale"]
    turned_up = z @ settled["coherence_filter.reading"] @ settled["coherence_filter.writing"]
    with torch.no_grad():
        outputs = method.represent(frames[:4])
    torch.testing.assert_close(outputs, 0.3 * z + turned_up, rtol=1e-3, atol=1e-3)
    assert run.settle(None) is None


@pytest.fixture(scope="module")
def run(data_dir, tmp_path_factory):
    config = like_quick("st-dim", max_steps=2)
    return pretrain(config, tmp_path_factory.mktemp("settled") / "run", EXECUTION, data_dir)


def test_a_finished_run_has_its_filter_and_its_untrained_network_none(run):
    opened, frames = manicap.open_run(run), torch.randint(256, (2, 1, 210, 160), dtype=torch.uint8)
    fitted = manicap.load(run).method.coherence_filter
    assert fitted.writing.abs().sum() > 0
    assert opened.untrained().method.coherence_filter is None
    encoder = manicap.load(run)
    plain = encoder.method.output(encoder.method.encoder(frames))
    assert torch.equal(encoder(frames), fitted(plain))
    assert torch.equal(encoder.layers(frames)["output"], encoder(frames))


def test_without_the_setting_there_is_none(data_dir, tmp_path):
    path = pretrain(small_config("dim-c+", max_steps=1), tmp_path / "run", EXECUTION, data_dir)
    frames = torch.randint(256, (2, 1, 210, 160), dtype=torch.uint8)
    assert torch.equal(manicap.load(path)(frames), manicap.load(path, layer="backbone")(frames))
