"""What a method is: an encoder, its heads, a loss with named parts, and the representation a probe sees.

    class MyMethod(Method):
        settings: MySettings
        def loss(self, batch): ...           # LossOutput(parts, metrics)
        def output(self, encoded): ...       # what the method's paper probes

`algorithms/__init__.py` lists every method in METHODS; add yours there with one line.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from manicap.core.ranges import Width
from manicap.core.registry import Known, Registry
from manicap.nn.coherence_filter import CoherenceFilter
from manicap.nn.encoders import (
    NATURE_KERNELS,
    SMALL_KERNELS,
    Encoded,
    Encoder,
    FittingCNN,
    ImpalaCNN,
    Kernels,
    NatureCNN,
    SmallCNN,
    fitting_kernels,
)
from manicap.nn.image_input import ImageView
from manicap.nn.normalised_input import InputName, NormalisedInput

ProbeInput = Literal["output", "backbone", "local"]
"""`output`: what the method's paper probes; `backbone`: flattened convolutional features, of one width for all;
`local`: the feature map before them (11,264 numbers for the network of the paper)."""
PresetName = Literal["quick", "standard", "paper"]
CapacityOn = Literal["first", "both"]
"""Which outputs the regularizer sees: those of the first frame or view only, as in the paper, or those of both frames
or all views."""
SampleKind = Literal["frames", "views"]
"""What a sample is: consecutive frames, or random views of one image. A method runs on any domain with its kind."""


class Batch(NamedTuple):
    """What the loop hands to `Method.loss`."""

    frames_BTCHW: Tensor
    """T = `frames_per_sample`: consecutive uint8 frames of one life, or normalised float views of an image."""
    labels_BV: Tensor | None = None
    """Labels of each sample's first frame, int64, for methods with `needs_labels`."""
    generator: torch.Generator | None = None
    """Source of a method's own noise, seeded by (run seed, step): a step can be repeated without hidden state."""


class LossOutput(NamedTuple):
    """A loss with its parts (which add up to it) and other quantities worth logging."""

    parts: dict[str, Tensor]
    metrics: dict[str, Tensor | float] = {}  # noqa: RUF012 - never mutated

    @property
    def total(self) -> Tensor:
        return torch.stack([part.reshape(()) for part in self.parts.values()]).sum()


@dataclass(frozen=True)
class MethodContext:
    """What a method must know about the data before it is built."""

    input_shape: tuple[int, int, int] = (1, 210, 160)
    """Channels, height, width."""
    num_variables: int = 0
    """Labelled variables, for methods with `needs_labels`."""
    mean: tuple[float, ...] = ()
    """Per-channel mean of the data scaled to [0, 1], for image methods; if empty, nothing is subtracted."""
    std: tuple[float, ...] = ()
    """Per-channel standard deviation, likewise; if empty, nothing is divided."""
    image_view: ImageView | None = None
    """How images of the dataset are shown to the network; None if they are frames, shown as they are."""
    pixel_statistics: tuple[Tensor, Tensor] | None = field(default=None, compare=False)
    """Mean and deviation of every pixel [C, H, W] of the frames to learn from, in [0, 1], if a method asks for it."""


ENCODERS: Registry[type[Encoder]] = Registry(
    "encoder", Encoder, {"nature": NatureCNN, "small": SmallCNN, "fitting": FittingCNN, "impala": ImpalaCNN}
)
"""Networks built from channels, height and width; `package.module:Name` names one from another package."""


@dataclass(frozen=True)
class Settings:
    """Settings shared by all methods. A method's own settings default to the values of its paper."""

    encoder: Annotated[str, Known(ENCODERS)] = "nature"
    """nature: the four convolutions of the paper's Table 4. small: the same with a first stride of 2. fitting: small or
    nature, by the size of frames. impala: residual blocks (arXiv 1802.01561). Or package.module:Name."""

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        """The settings for a preset; `paper` is the defaults."""
        return cls()

    def build_encoder(self, context: MethodContext) -> Encoder:
        return ENCODERS[self.encoder](*context.input_shape)


@dataclass(frozen=True)
class FrameSettings(Settings):
    """Settings shared by the methods on frames."""

    input: InputName = "scaled"
    """What the encoder sees: pixels / 255 (scaled), minus the mean frame (centred), also divided by each pixel's
    deviation (standardised), or scaled and standardised as separate channels (both). The statistics are those of the
    training frames and are saved with the encoder."""

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        return cls() if name == "paper" else cls(**cls.beyond_the_paper())

    @classmethod
    def beyond_the_paper(cls) -> dict[str, Any]:
        """What quick and standard change, as found in docs/training.md."""
        return {"input": "both"}

    @property
    def needs_pixel_statistics(self) -> bool:
        return self.input != "scaled"

    def decoder_kernels(self, context: MethodContext) -> Kernels:
        """Of a decoder that reverses the encoder; NatureCNN's if it has none."""
        if self.encoder == "fitting":
            return fitting_kernels(*context.input_shape[1:])
        return SMALL_KERNELS if self.encoder == "small" else NATURE_KERNELS

    def build_encoder(self, context: MethodContext) -> Encoder:
        channels, height, width = context.input_shape
        encoder = ENCODERS[self.encoder](channels * (2 if self.input == "both" else 1), height, width)
        if self.input == "scaled":
            return encoder
        normalised = NormalisedInput(encoder, channels)
        if context.pixel_statistics is not None:
            normalised.set_statistics(context.pixel_statistics, self.input)
        return normalised


@dataclass(frozen=True)
class OneHeadSettings(FrameSettings):
    """Settings of methods with one linear head, whose output the probe sees."""

    units: Width = 256
    """Width of the representation."""


class Method(nn.Module):
    """Base of all methods."""

    kind: ClassVar[SampleKind] = "frames"
    """What a sample must be."""
    settings_type: ClassVar[type[Settings]] = Settings
    frames_per_sample: int = 2
    """Consecutive frames per sample, 2 for pairs (t, t+1); or views per image."""
    is_trained: ClassVar[bool] = True
    """False for baselines that keep their initial weights."""
    needs_labels: ClassVar[bool] = False
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder",)
    """Submodules that `output` needs; others but the coherence filter are left out of the saved encoder."""

    encoder: Encoder
    coherence_filter: CoherenceFilter | None
    """What `represent` passes outputs through, fitted to samples of the training split after the last step."""

    def __init__(self, settings: Settings, context: MethodContext) -> None:
        super().__init__()
        self.context = context
        self.encoder = settings.build_encoder(context)
        self.coherence_filter = None

    def forward(self, batch: Batch) -> LossOutput:
        # DistributedDataParallel hooks into forward; all other callers may call `loss` directly.
        return self.loss(batch)

    def loss(self, batch: Batch) -> LossOutput:
        """The loss of a batch, as parts that add up to it."""
        raise NotImplementedError

    def after_step(self, progress: float) -> None:
        """Called after each optimizer step with the fraction of the run completed. Momentum targets move here."""

    def output(self, encoded: Encoded) -> Tensor:
        """The representation `[B, F]` that the method's paper probes."""
        return encoded.features_BF

    def represent(self, frames_BCHW: Tensor, probe_input: ProbeInput = "output") -> Tensor:
        """Frozen features of frames, for a probe or any other use."""
        encoded: Encoded = self.encoder(frames_BCHW)
        if probe_input == "local":
            return encoded.local_BPC.flatten(1)
        if probe_input == "backbone":
            return encoded.features_BF
        output = self.output(encoded)
        return output if self.coherence_filter is None else self.coherence_filter(output)


def encode_times(encoder: Encoder, frames_BTCHW: Tensor, num_features_of: int | None = None) -> Encoded:
    """Encode all frames of every sample in one call, the first frames of all samples first, `[T B, ...]`.

    Of the frames after the first `num_features_of` only the local feature maps are computed.
    """
    B = len(frames_BTCHW)
    features_of = None if num_features_of is None else num_features_of * B
    encoded: Encoded = encoder(frames_BTCHW.transpose(0, 1).flatten(0, 1), features_of=features_of)
    return encoded


def as_images(frames_BCHW: Tensor) -> Tensor:
    """uint8 frames as float images in [0, 1], for pixel losses."""
    return frames_BCHW.float() / 255 if frames_BCHW.dtype == torch.uint8 else frames_BCHW


def detached(metrics: dict[str, Any]) -> dict[str, Tensor | float]:
    return {name: value.detach() if isinstance(value, Tensor) else value for name, value in metrics.items()}
