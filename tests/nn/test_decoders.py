"""The decoder: any size comes back whole, in [0, 1], and can be learned."""

import pytest
import torch

from manicap.nn.decoders import NatureDecoder


@pytest.mark.parametrize("size", [(1, 210, 160), (3, 84, 84), (2, 77, 94)])
def test_images_come_back_at_their_size_in_the_unit_interval(size: tuple[int, int, int]) -> None:
    images = NatureDecoder(16, *size)(torch.randn(2, 16, generator=torch.Generator().manual_seed(0)))
    assert images.shape == (2, *size)
    assert images.min() >= 0
    assert images.max() <= 1


def test_every_parameter_gets_a_gradient() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        decoder = NatureDecoder(16, 1, 80, 84)
    decoder(torch.randn(2, 16, generator=torch.Generator().manual_seed(0))).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in decoder.parameters())


def test_too_small_image_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 76 x 76, got 16, 1 and 60 x 84"):
        NatureDecoder(16, 1, 60, 84)
