"""VAE: which head is the mean, and the weight of the divergence."""

import math
from dataclasses import replace

import pytest
import torch

from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, MethodContext
from tests.algorithms.small import small_settings


@pytest.mark.parametrize("beta", [1.0, 0.25])
def test_the_probe_sees_the_mean_and_beta_weighs_the_divergence(beta):
    method = METHODS["vae"](replace(small_settings("vae"), beta=beta), MethodContext())
    with torch.no_grad():  # whatever the frame: m = 3, log s^2 = -2
        method.posterior.output.weight.zero_()
        method.posterior.output.bias[0], method.posterior.output.bias[1] = 3.0, -2.0
    frames = torch.zeros(2, 1, 1, 210, 160, dtype=torch.uint8)
    assert torch.equal(method.represent(frames[:, 0]), torch.full((2, 8), 3.0))
    found = method.loss(Batch(frames, None, torch.Generator().manual_seed(0))).parts["divergence"].item()
    # -1/2 (1 + log s^2 - m^2 - s^2) for each of 8 units
    assert found == pytest.approx(beta * 8 * -0.5 * (1 - 2 - 9 - math.exp(-2)), rel=1e-6)
