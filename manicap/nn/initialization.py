"""The initialisation of ST-DIM (arXiv 1906.08226) and its successors: orthogonal weights, zero biases."""

import math

from torch import nn

ORTHOGONAL_GAIN = math.sqrt(2)
"""The gain for a layer followed by ReLU."""


def orthogonal(module: nn.Module) -> None:
    """Give every convolution and linear layer inside `module` orthogonal weights (gain sqrt 2) and zero bias."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.orthogonal_(layer.weight, ORTHOGONAL_GAIN)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
