"""Encoders: sizes by hand, the re-laid first convolution against the plain one, inputs, initialisation, errors."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from manicap.nn.encoders import (
    Encoder,
    FittingCNN,
    ImpalaCNN,
    NatureCNN,
    SmallCNN,
    frame_convolution,
    nature_sizes,
)


def frames(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)


def seeded(kind: type[Encoder], *size: int, seed: int = 0) -> Encoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(*size)


def plain_nature(encoder: NatureCNN, x: Tensor, first_stride: int = 4) -> tuple[Tensor, Tensor]:
    """Table 4 in so many words."""
    x = F.relu(F.conv2d(x, encoder.conv1.weight, encoder.conv1.bias, stride=first_stride))
    x = F.relu(F.conv2d(x, encoder.conv2.weight, encoder.conv2.bias, stride=2))
    local = F.relu(F.conv2d(x, encoder.conv3.weight, encoder.conv3.bias, stride=2))
    features = F.relu(F.conv2d(local, encoder.conv4.weight, encoder.conv4.bias))
    return local.flatten(2).transpose(1, 2), features.flatten(1)


def test_nature_sizes_of_an_atari_frame() -> None:
    # 210: (210-8)/4+1 = 51.5 -> 51, (51-4)/2+1 = 24, (24-4)/2+1 = 11, 11-2 = 9; 160: 39, 18, 8, 6. 64 * 9 * 6 = 3456.
    assert nature_sizes(210) == [210, 51, 24, 11, 9]
    assert nature_sizes(160) == [160, 39, 18, 8, 6]
    encoder = NatureCNN()
    assert (encoder.channels, encoder.height, encoder.width) == (1, 210, 160)
    assert (encoder.local_channels, encoder.local_height, encoder.local_width) == (128, 11, 8)
    assert encoder.num_features == 3456
    encoded = encoder(frames(2, 1, 210, 160))
    assert encoded.local_BPC.shape == (2, 88, 128)
    assert encoded.features_BF.shape == (2, 3456)


@pytest.mark.parametrize("size", [(3, 48, 48), (1, 96, 64), (2, 38, 39)])
def test_the_network_of_small_frames_is_natures_with_a_first_convolution_k4_s2(size: tuple[int, int, int]) -> None:
    encoder = seeded(SmallCNN, *size).double()
    assert isinstance(encoder, SmallCNN)
    x = frames(2, *size)
    ours, plain = encoder(x), plain_nature(encoder, x.double() / 255, first_stride=2)
    for mine, theirs in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)
    assert encoder.conv1.weight.shape == (32, size[0], 4, 4)
    assert ours.local_BPC.shape[1:] == (encoder.local_height * encoder.local_width, 128)
    assert ours.features_BF.shape[1] == encoder.num_features
    torch.testing.assert_close(encoder.layers(x)["backbone"].flatten(1), ours.features_BF)


def test_small_sizes_by_hand() -> None:
    # 96: (96-4)/2+1 = 47, 22, 10, 8; 64 * 8 * 8 = 4096. 38: 18, 8, 3, 1.
    encoder = SmallCNN(3, 96, 96)
    assert (encoder.local_height, encoder.local_width, encoder.num_features) == (10, 10, 4096)
    assert SmallCNN(1, 38, 38).num_features == 64
    with pytest.raises(ValueError, match="SmallCNN needs frames of at least 38 x 38, got 37 x 60"):
        SmallCNN(1, 37, 60)


@pytest.mark.parametrize(("height", "width", "stride"), [(210, 160, 4), (128, 128, 4), (127, 200, 2), (48, 64, 2)])
def test_the_fitting_network_has_a_small_stride_where_a_side_is_short(height: int, width: int, stride: int) -> None:
    fitting = seeded(FittingCNN, 1, height, width)
    kind = NatureCNN if stride == 4 else SmallCNN
    x = frames(2, 1, height, width)
    torch.testing.assert_close(fitting(x).features_BF, seeded(kind, 1, height, width)(x).features_BF)
    assert fitting.conv1.stride == (stride, stride)


def test_nature_parameters_are_those_of_table_4() -> None:
    # 32 (64 + 1) + 64 (512 + 1) + 128 (1024 + 1) + 64 (1152 + 1)
    assert sum(p.numel() for p in NatureCNN().parameters()) == 2080 + 32832 + 131200 + 73792
    assert NatureCNN().conv1.weight.shape == (32, 1, 8, 8)


@pytest.mark.parametrize("size", [(1, 210, 160), (3, 84, 84), (1, 77, 94)])
def test_nature_equals_plain_convolutions_in_value_and_gradient(size: tuple[int, int, int]) -> None:
    encoder = seeded(NatureCNN, *size).double()
    assert isinstance(encoder, NatureCNN)
    for i, bias in enumerate(p for name, p in encoder.named_parameters() if name.endswith("bias")):
        nn.init.constant_(bias, 0.01 * (i + 1))
    x = frames(2, *size)
    ours, plain = encoder(x), plain_nature(encoder, x.double() / 255)
    weights = list(encoder.parameters())
    for mine, theirs in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
    of_ours = torch.autograd.grad(ours[0].square().sum() + ours[1].square().sum(), weights)
    of_plain = torch.autograd.grad(plain[0].square().sum() + plain[1].square().sum(), weights)
    for mine, theirs in zip(of_ours, of_plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize(("kernel", "stride", "channels"), [(8, 4, 1), (8, 4, 3), (4, 2, 2), (3, 3, 2), (6, 2, 1)])
def test_frame_convolution_equals_conv2d(kernel: int, stride: int, channels: int) -> None:
    # 23 and 30 leave rows and columns over that no kernel reaches.
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(5, channels, kernel, kernel, generator=generator, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(5, generator=generator, dtype=torch.float64, requires_grad=True)
    x = frames(2, channels, 23, 30)
    expected = F.conv2d(x.double() / 255, weight, bias, stride)
    of_plain = torch.autograd.grad(expected.square().sum(), (weight, bias))
    for frames_BCHW in (x, x.double() / 255):
        ours = frame_convolution(frames_BCHW, weight, bias, stride)
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)
        for mine, theirs in zip(torch.autograd.grad(ours.square().sum(), (weight, bias)), of_plain, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("kind", [NatureCNN, ImpalaCNN])
def test_bytes_and_floats_encode_alike(kind: type[Encoder]) -> None:
    encoder = seeded(kind, 1, 80, 84)
    x = frames(3, 1, 80, 84)
    for of_bytes, of_floats in zip(encoder(x), encoder(x.float() / 255), strict=True):
        torch.testing.assert_close(of_bytes, of_floats, rtol=1e-4, atol=1e-5)


def test_local_map_is_a_view_in_row_major_order() -> None:
    encoder = seeded(NatureCNN, 1, 84, 96)
    encoded = encoder(frames(2, 1, 84, 96))
    # Contiguous without a copy: the activations are channels last.
    assert encoded.local_BPC.is_contiguous()
    assert encoded.local_BPC.shape == (2, encoder.local_height * encoder.local_width, encoder.local_channels)


@pytest.mark.parametrize(
    ("size", "local", "features"),
    # Pooling halves, rounding up: 210, 105, 53, 27, 14 and 160, 80, 40, 20, 10; 32 channels in the last two blocks.
    [((1, 210, 160), (32, 27, 20), 32 * 14 * 10), ((3, 33, 16), (32, 5, 2), 32 * 3 * 1)],
)
def test_impala_sizes(size: tuple[int, int, int], local: tuple[int, int, int], features: int) -> None:
    encoder = ImpalaCNN(*size)
    assert (encoder.local_channels, encoder.local_height, encoder.local_width) == local
    assert encoder.num_features == features
    encoded = encoder(frames(2, *size))
    assert encoded.local_BPC.shape == (2, local[1] * local[2], local[0])
    assert encoded.features_BF.shape == (2, features)
    assert encoded.local_BPC.min() >= 0
    assert encoded.features_BF.min() >= 0


@pytest.mark.parametrize("kind", [NatureCNN, ImpalaCNN])
def test_every_parameter_gets_a_gradient(kind: type[Encoder]) -> None:
    encoder = seeded(kind, 1, 80, 84)
    encoder(frames(4, 1, 80, 84)).features_BF.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())


@pytest.mark.parametrize("kind", [NatureCNN, ImpalaCNN])
def test_weights_are_orthogonal_with_gain_sqrt_2_and_biases_zero(kind: type[Encoder]) -> None:
    layers = [layer for layer in seeded(kind, 3, 84, 84).modules() if isinstance(layer, nn.Conv2d)]
    # Four, or five in each of four blocks.
    assert len(layers) == {NatureCNN: 4, ImpalaCNN: 20}[kind]
    for layer in layers:
        flat = layer.weight.flatten(1)
        gram = flat @ flat.T if flat.shape[0] <= flat.shape[1] else flat.T @ flat
        torch.testing.assert_close(gram, 2 * torch.eye(len(gram)), rtol=0, atol=1e-4)
        assert layer.bias is not None
        assert not layer.bias.any()


@pytest.mark.parametrize("kind", [NatureCNN, ImpalaCNN])
def test_the_same_seed_gives_the_same_weights(kind: type[Encoder]) -> None:
    one, same, other = (next(seeded(kind, 1, 80, 84, seed=s).parameters()) for s in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_the_first_convolution_of_colour_frames_is_the_plain_one() -> None:
    x, weight = frames(2, 3, 44, 36), torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    expected = F.conv2d(x / 255, weight, None, stride=4)
    torch.testing.assert_close(frame_convolution(x, weight, None, stride=4), expected, rtol=1e-4, atol=1e-4)


def test_layers_are_those_of_the_forward_pass() -> None:
    encoder, x = seeded(NatureCNN, 1, 84, 92), frames(3, 1, 84, 92)
    found, encoded = encoder.layers(x), encoder(x)
    assert list(found) == ["convolution 1", "convolution 2", "local map", "backbone"]
    first = F.relu(F.conv2d(x / 255, encoder.conv1.weight, encoder.conv1.bias, stride=4))
    torch.testing.assert_close(found["convolution 1"], first, rtol=1e-4, atol=1e-5)
    second = F.relu(F.conv2d(first, encoder.conv2.weight, encoder.conv2.bias, stride=2))
    torch.testing.assert_close(found["convolution 2"], second, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found["local map"].flatten(2).mT, encoded.local_BPC, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found["backbone"].flatten(1), encoded.features_BF, rtol=1e-5, atol=1e-6)


def test_impala_in_so_many_words() -> None:
    """Convolution, pooling, and twice x + conv(relu(conv(relu(x)))); ReLU at the end of what is returned."""
    encoder, x = seeded(ImpalaCNN, 1, 40, 24, (5, 6, 7)).double(), frames(3, 1, 40, 24)
    hidden, outputs = x.double() / 255, []
    for block in encoder.blocks:
        hidden = F.max_pool2d(F.conv2d(hidden, block.conv.weight, block.conv.bias, padding=1), 3, 2, 1)
        for i in (0, 2):
            one, two = block.residuals[i], block.residuals[i + 1]
            inner = F.relu(F.conv2d(F.relu(hidden), one.weight, one.bias, padding=1))
            hidden = hidden + F.conv2d(inner, two.weight, two.bias, padding=1)
        outputs.append(F.relu(hidden))
    encoded = encoder(x)
    torch.testing.assert_close(encoded.local_BPC, outputs[-2].flatten(2).mT, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(encoded.features_BF, outputs[-1].flatten(1), rtol=1e-10, atol=1e-12)
    # 40 x 24 halved three times: 5 x 3 positions of the last depth.
    assert (encoder.local_channels, encoder.local_height, encoder.local_width) == (6, 10, 6)
    assert encoder.num_features == 7 * 5 * 3
    some = encoder(x, features_of=2)
    torch.testing.assert_close(some.features_BF, encoded.features_BF[:2])
    assert some.local_BPC.shape == encoded.local_BPC.shape


def test_impala_of_an_atari_frame() -> None:
    encoder = ImpalaCNN()
    assert (encoder.channels, encoder.height, encoder.width) == (1, 210, 160)
    assert (encoder.local_channels, encoder.local_height, encoder.local_width) == (32, 27, 20)
    assert encoder.num_features == 4480
    assert [block.conv.out_channels for block in encoder.blocks] == [16, 32, 32, 32]
    with pytest.raises(ValueError, match=r"frames \[B, 1, 210, 160\]"):
        encoder(frames(1, 1, 160, 210))


def test_errors_say_what_is_needed_and_what_came() -> None:
    NatureCNN(1, 76, 76)
    ImpalaCNN(1, 16, 16, depths=(1, 1))
    with pytest.raises(ValueError, match="at least 76 x 76, got 76 x 75"):
        NatureCNN(1, 76, 75)
    with pytest.raises(ValueError, match=r"positive depths, got \[8, 0\]"):
        ImpalaCNN(1, 64, 64, depths=(8, 0))
    with pytest.raises(ValueError, match="at least 76 x 76, got 75 x 76"):
        NatureCNN(1, 75, 76)
    with pytest.raises(ValueError, match="4 blocks needs frames of at least 16 x 16, got 15 x 40"):
        ImpalaCNN(1, 15, 40)
    with pytest.raises(ValueError, match="at least two positive depths"):
        ImpalaCNN(1, 64, 64, depths=(8,))
    with pytest.raises(ValueError, match="positive input size, got 0 x 84 x 84"):
        NatureCNN(0, 84, 84)
    with pytest.raises(ValueError, match=r"built for frames \[B, 1, 80, 84\], got \[2, 3, 80, 84\]"):
        NatureCNN(1, 80, 84)(frames(2, 3, 80, 84))
    with pytest.raises(ValueError, match=r"floats in \[0, 1\], got torch.int64"):
        NatureCNN(1, 80, 84)(frames(2, 1, 80, 84).long())


def test_untrained_features_keep_their_scale() -> None:
    # Gain sqrt(2) is chosen so that ReLU layers neither shrink nor blow up the signal.
    features = seeded(NatureCNN, 1, 210, 160)(frames(4, 1, 210, 160)).features_BF
    assert 0.01 < features.square().mean().sqrt().item() < 10 * math.sqrt(2)


@pytest.mark.parametrize("call", ["forward", "layers"])
def test_frames_of_another_size_are_refused_by_the_layers_too(call):
    with pytest.raises(ValueError, match=r"built for frames \[B, 1, 210, 160\], got \[2, 1, 210, 161\]"):
        getattr(NatureCNN(), call)(torch.zeros(2, 1, 210, 161, dtype=torch.uint8))
