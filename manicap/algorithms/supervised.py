"""Supervised: the network trained end to end on the labels, the ceiling of arXiv 1906.08226.

L = mean over variables of the cross-entropy of a linear classifier (256 classes) on the representation
"""

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, OneHeadSettings
from manicap.losses.pairs import in_float32
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads

NUM_CLASSES = 256


class Supervised(Method):
    """ST-DIM's network trained on the labels, one classifier per variable: a ceiling."""

    settings_type = OneHeadSettings
    frames_per_sample = 1
    needs_labels: ClassVar[bool] = True
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: OneHeadSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.classifiers = nn.Linear(settings.units, context.num_variables * NUM_CLASSES)

    def loss(self, batch: Batch) -> LossOutput:
        if batch.labels_BV is None:
            raise ValueError("supervised needs labels_BV in the batch, got None")
        output_BD = self.output(self.encoder(batch.frames_BTCHW[:, 0]))
        logits_BVK = in_float32(self.classifiers(output_BD)).unflatten(1, (-1, NUM_CLASSES))
        return LossOutput({"labels": F.cross_entropy(logits_BVK.flatten(0, 1), batch.labels_BV.flatten())})

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
