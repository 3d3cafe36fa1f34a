"""CPC: Contrastive Predictive Coding (arXiv 1807.03748), as the baseline of arXiv 1906.08226.

    z_t = head(encoder(x_t));  c_t = GRU(z_<=t);  L = mean over k of InfoNCE( W_k c_t, z_{t+k} )

with all encodings of the batch, over samples and times, as candidates.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

from torch import Tensor, nn

from manicap.algorithms.base import Batch, FrameSettings, LossOutput, Method, MethodContext, PresetName, Settings
from manicap.core.ranges import Count, Range, Width
from manicap.losses.infonce import cpc_infonce
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class CPCSettings(FrameSettings):
    units: Width = 256
    """Width of the representation."""
    sequence_frames: Annotated[int, Range(2, 10_000)] = 100
    """Consecutive frames per sample; a batch holds batch-size times as many."""
    context_units: Width = 256
    """Width of the recurrent context."""
    context_layers: Annotated[int, Range(1, 64)] = 2
    """Layers of the recurrent context."""
    first_step: Count = 1
    """How many steps ahead the first prediction is."""
    step_stride: Count = 4
    """Distance between predicted steps, up to the end of the sequence."""
    chunk_rows: Count = 1024
    """Anchors scored at a time; bounds the memory for the logits."""

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        usual = super().preset(name)
        return replace(usual, sequence_frames=16, step_stride=2) if name == "quick" else usual

    def problems(self) -> list[str]:
        if not 1 <= self.first_step < self.sequence_frames:
            return [f"first_step must be from 1 to sequence_frames - 1, got {self.first_step}"]
        return []


class CPC(Method):
    """Predicts encodings many steps ahead from a recurrent context."""

    settings_type: ClassVar[type[Settings]] = CPCSettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: CPCSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.frames_per_sample = settings.sequence_frames
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.context_network = nn.GRU(
            settings.units, settings.context_units, num_layers=settings.context_layers, batch_first=True
        )
        steps = range(settings.first_step, settings.sequence_frames, settings.step_stride)
        sizes = (settings.context_units, settings.units)
        self.predictors = nn.ModuleDict({str(step): nn.Linear(*sizes) for step in steps})

    def loss(self, batch: Batch) -> LossOutput:
        B, T = batch.frames_BTCHW.shape[:2]
        z_BTD = self.output(self.encoder(batch.frames_BTCHW.flatten(0, 1))).unflatten(0, (B, T))
        context_BTD, _ = self.context_network(z_BTD)
        predictions = {
            int(step): predictor(context_BTD[:, : T - int(step)]) for step, predictor in self.predictors.items()
        }
        return LossOutput({"cpc": cpc_infonce(predictions, z_BTD, self.settings.chunk_rows)})

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
