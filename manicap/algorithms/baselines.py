"""The trivial baselines: an untrained network, and nothing at all."""

from typing import ClassVar

import torch
from torch import Tensor

from manicap.algorithms.base import Method, MethodContext, OneHeadSettings, ProbeInput
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


class RandomCNN(Method):
    """ST-DIM's network with its initial weights: what the architecture provides without training."""

    settings_type = OneHeadSettings
    is_trained: ClassVar[bool] = False
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: OneHeadSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]


class Majority(Method):
    """One constant feature, from which a linear probe can only learn each variable's most frequent value."""

    is_trained: ClassVar[bool] = False

    def represent(self, frames_BCHW: Tensor, probe_input: ProbeInput = "output") -> Tensor:
        return frames_BCHW.new_zeros((frames_BCHW.shape[0], 1), dtype=self.encoder_dtype)

    @property
    def encoder_dtype(self) -> torch.dtype:
        return next(self.encoder.parameters()).dtype
