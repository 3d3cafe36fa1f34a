"""The decoder: any size comes back whole, in [0, 1], and can be learned."""

import pytest
import torch

from manicap.nn.decoders import NatureDecoder
from manicap.nn.encoders import SMALL_KERNELS


@pytest.mark.parametrize("size", [(1, 210, 160), (3, 84, 84), (2, 77, 94)])
def test_images_come_back_at_their_size_in_the_unit_interval(size: tuple[int, int, int]) -> None:
    images = NatureDecoder(16, *size)(torch.randn(2, 16, generator=torch.Generator().manual_seed(0)))
    assert images.shape == (2, *size)
    assert images.min() >= 0
    assert images.max() <= 1


@pytest.mark.parametrize("size", [(3, 48, 64), (1, 39, 38)])
def test_small_images_come_back_through_the_small_network_in_reverse(size: tuple[int, int, int]) -> None:
    images = NatureDecoder(16, *size, SMALL_KERNELS)(torch.randn(2, 16, generator=torch.Generator().manual_seed(0)))
    assert images.shape == (2, *size)
    with pytest.raises(ValueError, match="at least 38 x 38"):
        NatureDecoder(16, 1, 37, 48, SMALL_KERNELS)


def test_every_parameter_gets_a_gradient() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        decoder = NatureDecoder(16, 1, 80, 84)
    decoder(torch.randn(2, 16, generator=torch.Generator().manual_seed(0))).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in decoder.parameters())


def test_an_atari_frame_is_the_default() -> None:
    assert NatureDecoder(4)(torch.zeros(1, 4)).shape == (1, 1, 210, 160)


def test_initial_weights_are_orthogonal_and_biases_zero() -> None:
    decoder = NatureDecoder(16, 1, 80, 84)
    product = decoder.linear.weight.T @ decoder.linear.weight  # 16 columns, with gain sqrt(2)
    torch.testing.assert_close(product, 2 * torch.eye(16), rtol=0, atol=1e-5)
    assert all(not bias.any() for name, bias in decoder.named_parameters() if name.endswith("bias"))


def test_the_first_map_is_rectified() -> None:
    decoder = NatureDecoder(16, 1, 80, 84)
    with torch.no_grad():
        decoder.linear.weight.zero_()
        nothing = decoder(torch.zeros(1, 16))
        decoder.linear.bias.fill_(-1)
        assert torch.equal(decoder(torch.zeros(1, 16)), nothing)


@pytest.mark.parametrize("size", [(16, 1, 60, 84), (16, 1, 84, 60), (0, 1, 84, 84), (16, 0, 84, 84)])
def test_too_small_image_is_refused(size: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least 76 x 76, got {}, {} and {} x {}".format(*size)):
        NatureDecoder(*size)
