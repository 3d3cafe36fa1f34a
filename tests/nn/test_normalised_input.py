"""What an encoder behind normalised input sees, by NumPy."""

import numpy as np
import pytest
import torch

from manicap.nn.encoders import NatureCNN
from manicap.nn.normalised_input import NormalisedInput

SHAPE = (1, 76, 100)


@pytest.fixture(scope="module")
def encoder():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return NatureCNN(*SHAPE)


def by_hand(frames, mean, deviation):
    return torch.from_numpy(((frames / 255 - mean) / deviation).astype(np.float32))


@pytest.mark.parametrize("name", ["centred", "standardised"])
def test_pixels_are_centred_and_divided_by_their_deviation_or_a_tenth(name, encoder):
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (4, *SHAPE), np.uint8)
    mean, deviation = rng.random(SHAPE, np.float32), rng.random(SHAPE, np.float32) * 0.3
    deviation[0, 0] = 0  # pixels that never change
    normalised = NormalisedInput(encoder)
    normalised.set_statistics((torch.from_numpy(mean), torch.from_numpy(deviation)), name)
    divisor = np.maximum(deviation, 0.1) if name == "standardised" else 1
    expected = encoder(by_hand(frames, mean, divisor))
    found = normalised(torch.from_numpy(frames))
    for ours, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)
    as_floats = normalised(torch.from_numpy(frames.astype(np.float32) / 255))
    torch.testing.assert_close(as_floats.features_BF, found.features_BF, rtol=1e-4, atol=1e-4)
    assert normalised(torch.from_numpy(frames), features_of=1).features_BF.shape == (1, encoder.num_features)
    torch.testing.assert_close(normalised.layers(torch.from_numpy(frames))["backbone"].flatten(1), found.features_BF)


def test_both_inputs_stand_side_by_side_scaled_ones_first():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (3, 2, 76, 80), np.uint8)  # two channels, such as a stack of two
    mean, deviation = rng.random((2, 76, 80), np.float32), 0.05 + 0.3 * rng.random((2, 76, 80), np.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        inner = NatureCNN(4, 76, 80)
    both = NormalisedInput(inner, channels=2)
    both.set_statistics((torch.from_numpy(mean), torch.from_numpy(deviation)), "both")
    scaled = torch.from_numpy((frames / 255).astype(np.float32))
    expected = inner(torch.cat([scaled, by_hand(frames, mean, np.maximum(deviation, 0.1))], 1)).features_BF
    torch.testing.assert_close(both(torch.from_numpy(frames)).features_BF, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(both(scaled).features_BF, expected, rtol=1e-4, atol=1e-4)
    assert (both.channels, both.num_features) == (2, inner.num_features)


def test_an_encoder_of_other_channels_is_refused(encoder):
    with pytest.raises(ValueError, match="an encoder of 1 channels does not fit frames of 3"):
        NormalisedInput(encoder, channels=3)


def test_without_statistics_it_is_the_encoder_itself(encoder):
    frames = torch.randint(0, 256, (2, *SHAPE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    normalised = NormalisedInput(encoder)
    torch.testing.assert_close(normalised(frames).features_BF, encoder(frames).features_BF, rtol=1e-5, atol=1e-5)
    assert normalised.num_features == encoder.num_features
    sizes = ("local_channels", "local_height", "local_width", "channels", "height", "width")
    assert [getattr(normalised, size) for size in sizes] == [getattr(encoder, size) for size in sizes]


def test_frames_of_another_size_are_refused_and_not_broadcast(encoder):
    with pytest.raises(ValueError, match=r"built for frames \[B, 1, 76, 100\], got \[2, 1, 1, 1\]"):
        NormalisedInput(encoder)(torch.zeros(2, 1, 1, 1, dtype=torch.uint8))
