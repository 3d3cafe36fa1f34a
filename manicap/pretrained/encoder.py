"""A trained encoder as an `nn.Module`: raw frames in, features out.

encoder = manicap.load("runs/pong-dim-c+-s0-1a2b3c4d")
encoder(frames)         # uint8 [B, 1, 210, 160] -> float32 [B, encoder.num_features]
encoder.card.score      # what a probe reads from it, beside what it reads from the untrained network
"""

from typing import get_args

import torch
from torch import Tensor, nn

from manicap.algorithms.base import Method, ProbeInput
from manicap.core.errors import UserError, unknown_choice
from manicap.nn.image_input import ImageInput
from manicap.pretrained.card import EncoderCard
from manicap.pretrained.weights import without_training_parts

Shape = tuple[int, int, int]


class PretrainedEncoder(nn.Module):
    """A method without its training parts: raw frames in, features of one layer out. Frozen, in eval mode.

    Everything between a frame and its features is inside: division by 255, normalisation, and resizing of images.
    Otherwise it is an ordinary module: `.to`, `state_dict`, `torch.compile`, `.train().requires_grad_(True)`.
    """

    num_features: int
    """Width of what it returns."""
    card: EncoderCard
    """What it was trained on, and how well a probe reads the state from it."""
    layer: str
    """Which features it returns: `output`, `backbone`, `local`, or a layer of the network by its name."""
    fingerprint: str
    """Identifies its weights as loaded, and the layer."""

    def __init__(self, method: Method, layer: str, fingerprint: str, card: EncoderCard) -> None:
        super().__init__()
        self.method = without_training_parts(method)
        self.layer, self.fingerprint, self.card = layer, fingerprint, card
        view = method.context.image_view
        self.image_input = None if view is None else ImageInput(view)
        self.eval().requires_grad_(False)
        probe = torch.zeros(1, *self.input_shape, dtype=torch.uint8, device=next(self.parameters()).device)
        if layer not in get_args(ProbeInput) and layer not in (known := self.method.encoder.layers(self._seen(probe))):
            raise unknown_choice("layer", layer, {*get_args(ProbeInput), *known})
        self.num_features = int(self(probe).shape[1])

    @property
    def input_shape(self) -> Shape:
        """Channels, height and width of the frames that it takes: those of a store, or a dataset's own images."""
        return self.input_shapes[0]

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """All that it takes: an encoder of images also takes them at the size that its network sees."""
        seen = self.method.context.input_shape
        if self.image_input is None:
            return (seen,)
        return tuple(dict.fromkeys((self.image_input.view.image_shape, seen)))

    def forward(self, frames_BCHW: Tensor) -> Tensor:
        """uint8 frames -> features. Floats must be as the network sees them: frames in [0, 1], normalised images."""
        seen = self._seen(frames_BCHW)
        if self.layer in get_args(ProbeInput):
            return self.method.represent(seen, self.layer)  # type: ignore[arg-type]
        return self.method.encoder.layers(seen)[self.layer].flatten(1)

    def layers(self, frames_BCHW: Tensor) -> dict[str, Tensor]:
        """The output of each layer of the network, and what is returned if that is none of them."""
        found = self.method.encoder.layers(self._seen(frames_BCHW))
        if self.layer == "output" and self.method.inference_parts != ("encoder",):
            found["output"] = self(frames_BCHW)
        return found

    def _seen(self, frames_BCHW: Tensor) -> Tensor:
        """Frames as the method takes them, after a check of their shape."""
        is_raw = frames_BCHW.dtype == torch.uint8
        allowed = self.input_shapes if is_raw else (self.method.context.input_shape,)
        if frames_BCHW.ndim != 4 or tuple(frames_BCHW.shape[1:]) not in allowed:
            shapes = " or ".join(f"[B, {', '.join(map(str, shape))}]" for shape in self.input_shapes)
            raise UserError(
                f"this encoder takes uint8 frames {shapes}, got {str(frames_BCHW.dtype).removeprefix('torch.')}"
                f" {list(frames_BCHW.shape)}; give it frames of the size that it was trained on"
            )
        return frames_BCHW if self.image_input is None or not is_raw else self.image_input(frames_BCHW)

    def extra_repr(self) -> str:
        return f"layer={self.layer!r}, num_features={self.num_features}"
