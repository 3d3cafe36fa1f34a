"""A trained encoder as an `nn.Module`: raw frames in, features out.

encoder = manicap.load("runs/pong-dim-c+-s0-1a2b3c4d")
encoder(frames)         # uint8 [B, 1, 210, 160] -> float32 [B, encoder.num_features]
encoder.card.score      # what a probe reads from it, beside what it reads from the untrained network
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from manicap.algorithms.base import Method, ProbeInput
from manicap.core.errors import UserError, unknown_choice
from manicap.core.ranges import shown
from manicap.nn.image_input import ImageInput
from manicap.pretrained.card import EncoderCard
from manicap.pretrained.hub import Access, HubName, upload
from manicap.pretrained.saving import save_directory
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

    def __init__(
        self, method: Method, layer: str, fingerprint: str, card: EncoderCard, network: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.network = dict(network)
        """What to build before its weights are loaded: `describe_network`."""
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
        """Channels, height and width of the frames that it accepts: those of a store, or a dataset's own images."""
        return self.input_shapes[0]

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """All accepted shapes: an image encoder also accepts images of the size that its network sees."""
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
        """The output of each layer of the network, and of the encoder if that is none of them."""
        found = self.method.encoder.layers(self._seen(frames_BCHW))
        is_backbone = self.method.inference_parts == ("encoder",) and self.method.coherence_filter is None
        if self.layer == "output" and not is_backbone:
            found["output"] = self(frames_BCHW)
        return found

    def _seen(self, frames_BCHW: Tensor) -> Tensor:
        """Frames in the form that the method takes, after a check of their shape and scale."""
        if not isinstance(frames_BCHW, Tensor):
            raise UserError(f"this encoder takes a torch tensor, got {type(frames_BCHW).__name__}: torch.from_numpy")
        is_raw = frames_BCHW.dtype == torch.uint8
        allowed = self.input_shapes if is_raw else (self.method.context.input_shape,)
        if frames_BCHW.ndim != 4 or tuple(frames_BCHW.shape[1:]) not in allowed:
            shapes = " or ".join(f"[B, {', '.join(map(str, shape))}]" for shape in self.input_shapes)
            raise UserError(
                f"this encoder takes uint8 frames {shapes}, got {str(frames_BCHW.dtype).removeprefix('torch.')}"
                f" {list(frames_BCHW.shape)}; give it frames of the size that it was trained on"
            )
        is_play = self.card.view is not None  # images are normalised by their domain
        if not is_raw and is_play and not torch.compiler.is_compiling() and (frames_BCHW > 1).any():
            raise UserError(
                f"frames as floats must lie in [0, 1], got {frames_BCHW.max():g}: give uint8 frames, or divide by 255"
            )
        return frames_BCHW if self.image_input is None or not is_raw else self.image_input(frames_BCHW)

    def save_pretrained(self, directory: Path | str, *, license: str | None = None) -> Path:
        """Write `config.json`, `model.safetensors` and a README with its score; `manicap.load(directory)` reads them.

            encoder.save_pretrained("pong-encoder")

        Args:
            directory: Where to write; created if it does not exist.
            license: Licence for the README's head, such as `mit`.
        """
        save_directory(self, Path(directory), None, license)
        return Path(directory)

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool | None = None,
        license: str | None = None,
        message: str = "Upload encoder",
        token: str | bool | None = None,
        endpoint: str | None = None,
    ) -> str:
        """Upload the same files to a hub as one commit, and return its address. Requires `manicap[hub]`.

            encoder.push_to_hub("user/pong-dim-c-plus")
            manicap.load("user/pong-dim-c-plus")

        Args:
            name: `user/name`, or `user/name@branch`. The repository and the branch are created if they do not exist.
            private: Whether a new repository is private; the hub's default if omitted.
            license: Licence for the README's head, such as `mit`.
            message: Commit message.
            token: Access token; the saved one (`hf auth login`) if omitted.
            endpoint: Address of the hub; HF_ENDPOINT, or https://huggingface.co, if omitted.
        """
        target = HubName.parse(name)
        if target is None:
            raise UserError(f"a hub's name must be user/name or user/name@branch, got {shown(name)}")
        with tempfile.TemporaryDirectory() as place:
            save_directory(self, Path(place), str(target), license)
            return upload(Path(place), target, Access(token, endpoint), private, message)

    def extra_repr(self) -> str:
        return f"layer={self.layer!r}, num_features={self.num_features}"
