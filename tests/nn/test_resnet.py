"""ResNet: parameter counts, torchvision's names and initialisation, shapes, normalisation, errors."""

import subprocess
import sys

import pytest
import torch

from manicap.nn.resnet import ResNet, ResNetEncoder


def count(name, stem, width=64):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in ResNet(name, stem, width).parameters())


def count_by_hand(blocks, depths, stem_kernel, width):
    """Convolutions without bias, two numbers a channel for each batch normalisation."""

    def conv(inputs, outputs, kernel):
        return inputs * outputs * kernel**2 + 2 * outputs

    total, inputs = conv(3, width, stem_kernel), width
    for stage, depth in enumerate(depths):
        inner = width * 2**stage
        outputs = inner * (4 if blocks == "bottleneck" else 1)
        for index in range(depth):
            if blocks == "bottleneck":
                total += conv(inputs, inner, 1) + conv(inner, inner, 3) + conv(inner, outputs, 1)
            else:
                total += conv(inputs, inner, 3) + conv(inner, outputs, 3)
            if index == 0 and (stage > 0 or inputs != outputs):
                total += conv(inputs, outputs, 1)
            inputs = outputs
    return total


def test_the_usual_width_is_64():
    # A ResNet-18 ends with 8 times as many channels as it begins with; torchvision's has 512.
    with torch.device("meta"):
        assert ResNetEncoder((3, 32, 32), "resnet18").num_features == 512


def test_the_published_networks_have_their_parameters():
    # torchvision's 25,557,032 and 11,689,512 less the classifiers, 2048 x 1000 + 1000 and 512 x 1000 + 1000.
    assert count("resnet50", "imagenet") == 25_557_032 - 2_049_000 == 23_508_032
    assert count("resnet18", "imagenet") == 11_689_512 - 513_000 == 11_176_512
    assert count("resnet34", "imagenet") == 21_797_672 - 513_000 == 21_284_672


@pytest.mark.parametrize("stem", ["cifar", "stl10"])
def test_the_small_stems_have_7680_parameters_fewer(stem):
    # 3 x 64 x (49 - 9) = 7,680.
    assert count("resnet50", stem) == 23_508_032 - 7_680
    assert count("resnet18", stem) == 11_176_512 - 7_680


@pytest.mark.parametrize("width", [16, 64])
@pytest.mark.parametrize(
    ("name", "blocks", "depths"),
    [
        ("resnet18", "basic", (2, 2, 2, 2)),
        ("resnet34", "basic", (3, 4, 6, 3)),
        ("resnet50", "bottleneck", (3, 4, 6, 3)),
    ],
)
def test_counts_follow_from_the_layers(name, blocks, depths, width):
    assert count(name, "imagenet", width) == count_by_hand(blocks, depths, 7, width)
    assert count(name, "cifar", width) == count_by_hand(blocks, depths, 3, width)


def test_names_are_torchvisions():
    with torch.device("meta"):
        names = set(ResNet("resnet50").state_dict())
    statistics = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}
    expected = {"conv1.weight"} | {f"bn1.{x}" for x in statistics}
    for stage, depth in enumerate((3, 4, 6, 3), 1):
        for block in range(depth):
            for layer in (1, 2, 3):
                expected.add(f"layer{stage}.{block}.conv{layer}.weight")
                expected |= {f"layer{stage}.{block}.bn{layer}.{x}" for x in statistics}
        expected.add(f"layer{stage}.0.downsample.0.weight")
        expected |= {f"layer{stage}.0.downsample.1.{x}" for x in statistics}
    assert names == expected
    with torch.device("meta"):
        # ResNet-18's first stage keeps its shape: no shortcut layer there.
        assert "layer1.0.downsample.0.weight" not in ResNet("resnet18").state_dict()


def test_initialisation_is_kaimings_by_what_leaves_a_layer():
    torch.manual_seed(0)
    net = ResNet("resnet18")
    # gain sqrt 2 over fan-out 512 x 9: 2.4 million numbers give the deviation to 0.05 %.
    weight = net.layer4[1].conv2.weight
    assert weight.std().item() == pytest.approx((2 / (512 * 9)) ** 0.5, rel=2e-3)
    assert torch.equal(net.layer4[1].bn2.weight, torch.ones(512))


@pytest.mark.parametrize(
    ("stem", "size", "side"),
    # 32, 16, 8, 4. 96, pooled 48, then 24, 12, 6. 224, 112, pooled 56, then 28, 14, 7. Odd sizes round up.
    [("cifar", 32, 4), ("stl10", 96, 6), ("imagenet", 224, 7), ("cifar", 33, 5), ("imagenet", 97, 4)],
)
def test_sizes_of_the_feature_map(stem, size, side):
    with torch.device("meta"):
        encoder = ResNetEncoder((3, size, size), "resnet18", stem, width=8)
        encoded = encoder(torch.zeros(2, 3, size, size))
    assert (encoder.local_height, encoder.local_width, encoder.local_channels) == (side, side, 64)
    assert encoded.local_BPC.shape == (2, side * side, 64)
    assert encoded.features_BF.shape == (2, encoder.num_features) == (2, 64)


def test_a_tall_image_has_a_tall_map():
    encoder = ResNetEncoder((3, 32, 16), "resnet18", width=8)
    assert (encoder.local_height, encoder.local_width) == (4, 2)


def test_without_statistics_bytes_become_numbers_from_0_to_1():
    torch.manual_seed(0)
    encoder = ResNetEncoder((3, 16, 16), "resnet18", width=8).eval()
    images = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    torch.testing.assert_close(encoder(images).features_BF, encoder(images / 255).features_BF)


def test_features_are_the_mean_over_positions():
    torch.manual_seed(0)
    encoder = ResNetEncoder((3, 16, 16), "resnet18", width=8).eval()
    images = torch.randn(3, 3, 16, 16)
    encoded = encoder(images)
    torch.testing.assert_close(encoded.features_BF, encoded.local_BPC.mean(1), rtol=1e-6, atol=1e-6)
    assert encoder(images, features_of=2).features_BF.shape == (2, 64)


def conv_bn(x, conv, bn):
    y = torch.nn.functional.conv2d(x, conv.weight, None, conv.stride, conv.padding)
    return torch.nn.functional.batch_norm(y, bn.running_mean, bn.running_var, bn.weight, bn.bias)


def test_a_bottleneck_is_what_torch_computes_layer_by_layer():
    torch.manual_seed(0)
    block = ResNet("resnet50", width=8).layer2[0].eval()
    x = torch.randn(2, 32, 6, 6)
    y = conv_bn(x, block.conv1, block.bn1).relu()
    y = conv_bn(y, block.conv2, block.bn2).relu()
    y = conv_bn(y, block.conv3, block.bn3) + conv_bn(x, *block.downsample)
    # The stride of stage 2 is in the 3 x 3 convolution.
    assert block.conv2.stride == (2, 2)
    assert block.conv1.stride == (1, 1)
    torch.testing.assert_close(block(x), y.relu(), rtol=1e-5, atol=1e-6)


def test_resnet18_is_what_torch_computes_layer_by_layer():
    torch.manual_seed(0)
    network, x = ResNet("resnet18", width=4).eval(), torch.randn(2, 3, 16, 16)
    y = network.maxpool(conv_bn(x, network.conv1, network.bn1).relu())
    for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
        for block in stage:
            z = conv_bn(conv_bn(y, block.conv1, block.bn1).relu(), block.conv2, block.bn2)
            shortcut = conv_bn(y, *block.downsample) if len(list(block.downsample.children())) else y
            y = (z + shortcut).relu()
    torch.testing.assert_close(network(x), y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [32, 8, 5])
def test_channels_last_gives_the_gradients_of_double_precision(size):
    # The narrowest block with a strided shortcut: where 4 channels crash, 8 must be right.
    torch.manual_seed(0)
    block = ResNet("resnet18", width=8).layer2[0].eval()
    x = torch.randn(4, 8, size, size)
    single = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    block(single).square().sum().backward()
    double = x.double().requires_grad_()
    block.double()(double).square().sum().backward()
    torch.testing.assert_close(single.grad.double(), double.grad, rtol=1e-4, atol=1e-4)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="needs a width that is a multiple of 8, got 12"):
        ResNetEncoder((3, 32, 32), "resnet18", width=12)
    with pytest.raises(ValueError, match="needs a positive width and positive channels, got 0 and 3"):
        ResNet("resnet18", width=0)
    with pytest.raises(ValueError, match="std needs one value for each of 3 channels, got .0.2."):
        ResNetEncoder((3, 32, 32), "resnet18", width=8, std=(0.2,))


def test_a_narrow_network_survives_an_odd_number_of_threads():
    # Channels last, 8 channels and 3 threads corrupted the heap in the backward pass: a crash within a few steps.
    program = """
import torch
from manicap.nn.resnet import ResNetEncoder
torch.set_num_threads(3)
encoder = ResNetEncoder((3, 24, 24), "resnet18", "cifar", 8)
for _ in range(12):
    encoder(torch.randn(16, 3, 24, 24)).features_BF.sum().backward()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
