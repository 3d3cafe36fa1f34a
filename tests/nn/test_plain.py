"""PlainCNN against torch's functions, its sizes, and what it refuses."""

import pytest
import torch
from torch.nn import functional as F

from manicap.nn import PlainCNN


def normalised(x, layer):
    return F.batch_norm(x, layer.running_mean, layer.running_var, layer.weight, layer.bias)


def test_it_is_what_torch_computes_layer_by_layer():
    torch.manual_seed(0)
    network = PlainCNN((3, 24, 16), 8, mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.3)).eval()
    for layer in network.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):  # as after training: otherwise it would do nothing
            layer.running_mean.uniform_(-0.5, 0.5)
            layer.running_var.uniform_(0.5, 2)
    images = torch.randint(0, 256, (4, 3, 24, 16), dtype=torch.uint8)
    x = (images / 255 - torch.tensor([0.5, 0.4, 0.3])[:, None, None]) / torch.tensor([0.2, 0.25, 0.3])[:, None, None]
    x = F.conv2d(x, network.patches.weight, network.patches.bias).relu()
    for first, _, first_norm, _, second, second_norm, _ in network.blocks:
        x = normalised(F.max_pool2d(F.conv2d(x, first.weight, padding=1), 2), first_norm).relu()
        x = normalised(F.conv2d(x, second.weight, padding=1), second_norm).relu()
    found = network(images)
    torch.testing.assert_close(found.local_BPC, x.flatten(2).mT, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.features_BF, x.mean((2, 3)), rtol=1e-4, atol=1e-5)
    assert network(images, features_of=2).features_BF.shape == (2, 32)


@pytest.mark.parametrize(
    ("height", "width", "sides"),
    # 31, pooled 15, 7, 3. 23, 11, 5, 2. 8, 4, 2, 1.
    [(32, 24, (3, 2)), (9, 9, (1, 1)), (96, 64, (11, 7))],
)
def test_sizes_of_the_feature_map(height, width, sides):
    with torch.device("meta"):
        network = PlainCNN((3, height, width), 16)
        encoded = network(torch.zeros(2, 3, height, width))
    assert (network.local_height, network.local_width) == sides
    assert encoded.local_BPC.shape == (2, sides[0] * sides[1], network.local_channels)
    assert encoded.features_BF.shape == (2, network.num_features) == (2, 64)


def test_in_training_it_learns_from_views_of_any_size_and_afterwards_sees_one():
    network = PlainCNN((3, 32, 32), 8)
    assert network(torch.zeros(2, 3, 24, 24)).local_BPC.shape == (2, 4, 32)
    with pytest.raises(ValueError, match=r"built for frames \[B, 3, 32, 32\], got \[2, 1, 24, 24\]"):
        network(torch.zeros(2, 1, 24, 24))
    with pytest.raises(ValueError, match=r"built for frames \[B, 3, 32, 32\], got \[2, 3, 24, 24\]"):
        network.eval()(torch.zeros(2, 3, 24, 24))


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="needs a width that is a multiple of 8, got 12"):
        PlainCNN((3, 32, 32), 12)
    with pytest.raises(ValueError, match="needs images of at least 9 x 9 pixels, got 8 x 32"):
        PlainCNN((3, 8, 32))
