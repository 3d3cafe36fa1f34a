import numpy as np
import pytest
import torch

import manicap.rl
from manicap.core.errors import UserError
from manicap.probing.features import project_features
from manicap.rl import feature_map


@pytest.fixture(scope="module")
def frames(pong_store):
    return np.asarray(pong_store.frames[::100])[:, None]


@pytest.mark.parametrize(("layer", "width"), [("output", 256), ("backbone", 3456), ("local", 11 * 8 * 128)])
def test_a_layer_is_the_runs_own(run, frames, layer, width):
    features = feature_map(run, layer=layer)
    expected = manicap.load(run, layer)(torch.from_numpy(frames[:4])).numpy()
    assert features.num_features == width
    assert np.array_equal(features.encode(frames[:4]), expected)
    # From a loaded encoder of another layer, too.
    assert np.array_equal(feature_map(manicap.load(run), layer=layer).encode(frames[:4]), expected)


def test_a_width_is_the_projection_that_probes_use(run, frames):
    whole, projected = feature_map(run), feature_map(run, width=16, seed=3)
    expected = project_features(whole.encode(frames), 16, seed=3)
    assert projected.num_features == 16
    np.testing.assert_allclose(projected.encode(frames), expected, rtol=1e-4, atol=1e-5)


def test_standardised_features_have_mean_0_and_at_most_deviation_1(run, pong_store):
    features = feature_map(run, width=32, standardise=pong_store)
    found = features.encode(np.asarray(pong_store.frames[1::6])[:, None])
    # The statistics are of 1,024 of the 2,400 frames: those of others are off by a few hundredths of a deviation.
    assert np.abs(found.mean(0)).max() < 0.1
    assert found.std(0).max() < 1.1
    assert np.median(found.std(0)) > 0.9


def test_standardising_again_replaces_the_statistics(pong_store):
    # The mean pixel, as it is: its mean and deviation over the 1,024 frames of the store, by NumPy.
    class Brightness(torch.nn.Module):
        def forward(self, frames):
            return frames.double().mean((2, 3))

    features = feature_map(Brightness(), input_shape=(1, 210, 160), standardise=pong_store)
    features.standardise(pong_store)
    rows = np.unique(np.linspace(0, len(pong_store) - 1, 1024).astype(int))
    brightness = np.asarray(pong_store.frames[:])[rows].mean((1, 2))
    expected = (brightness - brightness.mean()) / brightness.std()
    # float32 statistics of numbers around 100 that differ by about 1
    np.testing.assert_allclose(
        features.encode(np.asarray(pong_store.frames[:])[rows[::50], None])[:, 0], expected[::50], atol=1e-4
    )


def test_features_are_clipped_at_ten_deviations(run, pong_store, frames):
    features = feature_map(run, width=8, standardise=pong_store)
    features.scale *= 1e6
    assert np.unique(np.abs(features.encode(frames))).tolist() == [10.0]


def test_any_module_is_an_encoder(frames):
    module = torch.nn.Flatten()
    assert feature_map(module, input_shape=(1, 210, 160)).num_features == 210 * 160
    with pytest.raises(UserError, match="needs the shape of its frames: input_shape="):
        feature_map(module)
    with pytest.raises(UserError, match="layer 'local' is known for encoders of manicap only"):
        feature_map(module, layer="local", input_shape=(1, 210, 160))
    with pytest.raises(UserError, match=r"must return features \[B, F\], got shape \[1, 1, 210, 160\]"):
        feature_map(torch.nn.Identity(), input_shape=(1, 210, 160))
    with pytest.raises(UserError, match=r"the encoder failed on frames uint8 \[1, 1, 8, 8\]"):
        feature_map(torch.nn.Linear(9, 9), input_shape=(1, 8, 8))


def test_what_is_no_encoder_is_refused_in_one_sentence(run, tmp_path):
    (tmp_path / "weights.pt").write_bytes(b"x")
    with pytest.raises(UserError, match="weights.pt is a file, not an encoder: give the directory of a run"):
        feature_map(tmp_path / "weights.pt")
    with pytest.raises(UserError, match="nowhere"):
        feature_map(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"there is no encoder in"):
        feature_map(tmp_path)
    with pytest.raises(
        UserError, match="encoder must be|an encoder is the directory of a run or an nn.Module, got int"
    ):
        feature_map(3)
    with pytest.raises(UserError, match=r"unknown layer 'outptu'; did you mean 'output'\?"):
        feature_map(run, layer="outptu")
    with pytest.raises(UserError, match="width must be between 1 and the encoder's 256 features, got 257"):
        feature_map(run, width=257)
    with pytest.raises(UserError, match="width must be at least 1"):
        feature_map(run, width=0)


def test_three_channels_are_what_the_run_was_trained_on(data_dir, breakout_store, tmp_path):
    # Colours and a stack of three gray frames have one shape: only the run knows.
    quiet, places = manicap.Execution(quiet=True), {"data_dir": data_dir, "runs_dir": tmp_path}
    run = manicap.pretrain("random-cnn", game="breakout", collect_steps=2400, stack=3, execution=quiet, **places)
    features = feature_map(run)
    assert features.input_shape == (3, 210, 160)
    assert (features.view.colour, features.view.stack) == (False, 3)
    envs = manicap.rl.make_env("breakout", features, num_envs=1, num_workers=1)
    frames, _ = manicap.make_vec("breakout", 1, stack=3, num_workers=1).reset(seed=0)
    envs.seed(0)
    assert np.array_equal(envs.reset(), features.encode(frames))
