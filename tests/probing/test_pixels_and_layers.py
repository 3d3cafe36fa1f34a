import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from manicap.nn.encoders import ImpalaCNN, NatureCNN
from manicap.probing.layers import Frames, read_layers
from manicap.probing.pixels import COMPONENT_FRAMES, PIXEL_WIDTH, pixel_floors
from manicap.probing.play_bench import Extraction, PlayBench
from manicap.probing.widths import WIDTHS, _leading


@pytest.fixture(scope="module")
def bench(pong_store):
    return PlayBench(pong_store)


def test_pixels_are_projected_and_reduced(bench, pong_store):
    rows = bench.splits.train.rows
    floors = pixel_floors(pong_store, rows, None, seed=0)
    assert list(floors) == ["pixels, random", "pixels, principal"]
    frames = np.array(pong_store.frames[rows[:50]])
    random, principal = (floor(frames) for floor in floors.values())
    assert random.shape == principal.shape == (50, PIXEL_WIDTH)
    # A linear map: of the mean frame of two it is the mean.
    two = frames[:2].astype(np.float64)
    expected = (random[0] + random[1]) / 2
    weights = floors["pixels, random"].encoder.map_PK.double().numpy()
    mean = floors["pixels, random"].encoder.mean_P.double().numpy()
    np.testing.assert_allclose((two.mean(0).ravel() / 255 - mean) @ weights, expected, atol=1e-4)


def test_principal_components_are_those_of_scikit_learn(bench, pong_store):
    rows = bench.splits.train.rows[:300]
    floor = pixel_floors(pong_store, rows, 10, seed=0)["pixels, principal"]
    assert len(rows) < COMPONENT_FRAMES
    frames = np.array(pong_store.frames[rows])
    expected = PCA(10, svd_solver="full").fit_transform(frames.reshape(300, -1).astype(np.float64) / 255)
    found = floor(frames)
    signs = np.sign((found * expected).sum(0))
    np.testing.assert_allclose(found * signs, expected, atol=2e-3)


def test_an_evaluation_by_default_stands_beside_the_pixels(bench):
    from manicap.probing.encoders import FrameEncoder

    def corner(frames):
        return frames[:, 0, ::21, ::16].reshape(len(frames), -1).astype(np.float32)

    found = bench.evaluate(FrameEncoder(corner, arrays="numpy"), extraction=Extraction(quiet=True))
    assert found.probe == "ridge"
    assert set(found.floors) == {"majority", "pixels, random (256)", "pixels, principal (256)"}
    assert set(found.readings) == {"encoder", "pixels, random (256)", "pixels, principal (256)"}
    assert set(found.saved) == {"pixels, random (256)", "pixels, principal (256)"}
    assert found.readings["encoder"].layers == {}
    assert type(found).from_dict(found.to_dict()).to_dict() == found.to_dict()


@pytest.mark.parametrize("width", [10, PIXEL_WIDTH + 44])
def test_pixels_stay_as_they_are_beside_an_encoder_that_is_projected(bench, pong_store, width):
    from manicap.probing.encoders import FrameEncoder

    def grid(frames):
        return frames[:, 0, ::7, ::8].reshape(len(frames), -1).astype(np.float32)  # 600 features

    narrow = Extraction(width=width, quiet=True)
    found = bench.evaluate(FrameEncoder(grid, arrays="numpy"), "discriminant", extraction=narrow)
    assert found.width == width
    shown = "pixels, principal" + (f" ({PIXEL_WIDTH})" if width > PIXEL_WIDTH else "")
    principal = pixel_floors(pong_store, bench.splits.train.rows, width, bench.seed)["pixels, principal"]
    alone = bench.evaluate(principal, "discriminant", floors={}, extraction=Extraction(quiet=True))
    assert found.floors[shown] == alone.scores


@pytest.mark.parametrize("network", [NatureCNN, ImpalaCNN])
def test_layers_end_with_what_the_encoder_returns(network):
    encoder = network(1, 84, 84).eval()
    frames = torch.randint(0, 256, (2, 1, 84, 84), dtype=torch.uint8)
    with torch.no_grad():
        layers, encoded = encoder.layers(frames), encoder(frames)
    torch.testing.assert_close(layers["backbone"].flatten(1), encoded.features_BF)
    if network is NatureCNN:
        assert list(layers) == ["convolution 1", "convolution 2", "local map", "backbone"]
        local = layers["local map"].flatten(2).transpose(1, 2)
        torch.testing.assert_close(local, encoded.local_BPC)


def test_leading_directions_are_those_of_the_eigenvectors():
    rng = np.random.default_rng(0)
    basis = torch.linalg.qr(torch.from_numpy(rng.standard_normal((1300, 1300), np.float32))).Q
    variances = 0.98 ** torch.arange(1300)
    covariance = (basis * variances) @ basis.T
    directions, found = _leading(lambda q: covariance @ q, 1300, seed=0)
    assert directions.shape == (1300, WIDTHS[-1])
    torch.testing.assert_close(found[:256], variances[:256], rtol=1e-3, atol=1e-5)
    # The same directions, up to their signs.
    torch.testing.assert_close((directions[:, :64] * basis[:, :64]).sum(0).abs(), torch.ones(64), rtol=1e-3, atol=1e-3)


def test_a_layer_that_holds_the_label_is_read_and_one_of_noise_is_not():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (400, 1, 4, 4), dtype=np.uint8)
    labels = frames[:, 0, 0, :1]
    split = Frames(frames[:300], labels[:300], np.arange(300)), Frames(frames[300:], labels[300:], np.arange(100))

    def layers(frames):
        return {"pixels": frames.float(), "last row": frames[:, :, 3].float()}

    found = read_layers(layers, *split, ("number",), seed=0)
    assert [width for width, _ in found.values()] == [16, 4]
    assert found["pixels"][1] > 0.99
    assert found["last row"][1] < 0.1
