"""The methods' networks as the paper's tables list them, a layer and a head at a time, on a method's own weights."""

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from manicap.algorithms.base import Method
from manicap.nn.encoders import NatureCNN
from manicap.nn.heads import Heads


def scramble(method: Method, seed: int = 0) -> Method:
    """Move every parameter a little, so that no bias is zero and no two heads or targets are alike.

    By a third of what keeps the size of activations: a softmax that is sure of itself would hide what it is made of.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in method.parameters():
            size = 0.3 / parameter[0].numel() ** 0.5 if parameter.ndim > 1 else 0.1
            parameter.add_(size * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return method


def nature(encoder: NatureCNN, frames: Tensor) -> tuple[Tensor, Tensor]:
    """Table 4 on uint8 frames `[B, C, H, W]`: the feature map `[B, H, W, C]` and the flattened features `[B, F]`."""
    x = frames.double() / 255
    x = conv2d(x, encoder.conv1.weight, encoder.conv1.bias, stride=4).relu()
    x = conv2d(x, encoder.conv2.weight, encoder.conv2.bias, stride=2).relu()
    fm = conv2d(x, encoder.conv3.weight, encoder.conv3.bias, stride=2).relu()
    last = conv2d(fm, encoder.conv4.weight, encoder.conv4.bias, stride=1).relu()
    return fm.permute(0, 2, 3, 1), last.flatten(1)


def head_outputs(heads: Heads, features: Tensor) -> Tensor:
    """Each head by itself, `[B, F]` (or `[B, N, F]`) -> `[B, N, D]`; batch statistics are those of this batch."""
    outputs = []
    for n in range(heads.num_heads):
        x = features[:, n] if features.ndim == 3 else features
        if heads.hidden is not None:
            x = x @ heads.hidden.weight[n].t() + heads.hidden.bias[n]
            if heads.norm is not None:
                width = x.shape[1]
                scale, shift = (p[n * width : (n + 1) * width] for p in (heads.norm.weight, heads.norm.bias))
                x = (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt() * scale + shift
            x = x.relu()
        outputs.append(x @ heads.output.weight[n].t() + heads.output.bias[n])
    return torch.stack(outputs, 1)


def assert_same_loss_and_gradients(ours: Tensor, literal: Tensor, method: Method, relative: float = 1e-10) -> None:
    """In float64; gradients of all trained parameters, none missing from either side."""
    torch.testing.assert_close(ours, literal, rtol=relative, atol=0)
    trained = {name: parameter for name, parameter in method.named_parameters() if parameter.requires_grad}
    mine, theirs = (torch.autograd.grad(loss, list(trained.values()), allow_unused=True) for loss in (ours, literal))
    largest = max(float(gradient.abs().max()) for gradient in theirs if gradient is not None)
    for name, got, expected in zip(trained, mine, theirs, strict=True):
        assert (got is None) == (expected is None), name
        if got is not None:
            # An entry is a sum that may cancel, to zero for a bias before a batch normalisation: its error is that of
            # the terms, of the size of the parameter's largest entry or, where that is nothing, of the layers after it.
            size = float(expected.abs().max()) + 1e-4 * largest
            error = float((got - expected).abs().max()) / size
            assert error < 100 * relative, f"{name}: {error}"
