"""Any callable from frames to features, torch or NumPy: how it is called, and what it must return.

input="uint8"        uint8 [B, 1, 210, 160]                        (the default)
input="float"        float32 in [0, 1]: uint8 / 255
input="normalized"   float32: (uint8 / 255 - mean) / std, from -1 to 1 with the default mean and std of 0.5
"""

import hashlib
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from manicap.core.config import checked
from manicap.core.errors import UserError
from manicap.core.ranges import Positive, Range

Encoder = Callable[[Any], Any]
"""Frames [B, 1, 210, 160] to features [B, F]: an `nn.Module`, or a function of NumPy arrays or torch tensors."""
InputKind = Literal["uint8", "float", "normalized"]
ArrayKind = Literal["torch", "numpy"]

# Layers that behave differently in training mode.
_CHANGE_IN_TRAINING = (
    nn.modules.dropout._DropoutNd,
    nn.modules.batchnorm._NormBase,
    nn.RReLU,
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
    nn.RNNBase,
)


class EncoderFailed(UserError):
    """The encoder raised an error: most often it was built for other frames."""


class FrameEncoder:
    """An encoder with its input format; calls it on frames or images and checks what it returns.

        FrameEncoder(encoder, input="normalized", normalization=(0.5, 0.5), arrays="torch")

    Args:
        encoder: An `nn.Module` in eval mode, or any function from frames [B, C, H, W] to features [B, F].
        input: Frames as `uint8`, `float` (in [0, 1]) or `normalized` ((x - mean) / std of `float`).
        normalization: Mean and standard deviation for `normalized`; the default maps to [-1, 1].
        arrays: `torch` or `numpy`; by default torch for modules and their methods, NumPy for other functions.
    """

    @checked
    def __init__(
        self,
        encoder: Encoder,
        input: InputKind = "uint8",
        normalization: tuple[Annotated[float, Range(-1e6, 1e6)], Positive] = (0.5, 0.5),
        arrays: ArrayKind | None = None,
    ) -> None:
        if not callable(encoder):
            raise UserError(f"the encoder must be a function from frames to features, got {type(encoder).__name__}")
        self.encoder, self.input, self.normalization = encoder, input, normalization
        self.module = _module_of(encoder)
        self.arrays = arrays or ("torch" if self.module is not None else "numpy")
        if self.module is not None:
            _require_eval_mode(self.module)

    def __call__(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features float32 [B, F] of frames uint8 [B, H, W] or images uint8 [B, C, H, W]."""
        prepared = self._prepare(frames)
        try:
            with torch.inference_mode():
                features = self.encoder(prepared)
        except MemoryError:
            raise
        except Exception as error:  # it may be anyone's
            other = "torch" if self.arrays == "numpy" else "numpy"
            raise EncoderFailed(
                f"the encoder failed on {self._describe(prepared)}: {error or type(error).__name__}; for other values"
                f" give input='uint8'|'float'|'normalized' (now {self.input!r}); for {other} arrays wrap it in"
                f" manicap.probing.FrameEncoder(encoder, arrays={other!r})"
            ) from error
        return _checked(features, len(frames))

    @property
    def settings(self) -> str:
        """What, besides the encoder, determines the features."""
        shown = f"{self.input} {self.arrays}"
        return f"{shown} {self.normalization}" if self.input == "normalized" else shown

    def fingerprint(self) -> str | None:
        """12 hex digits of a module's structure and weights; None for a function, whose contents are not known."""
        if self.module is None:
            return None
        digest = hashlib.sha256(repr(self.module).encode())
        for name, value in self.module.state_dict().items():
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        digest.update(getattr(self.encoder, "__qualname__", "").encode())  # module.forward and module.features differ
        return digest.hexdigest()[:12]

    def _prepare(self, frames: NDArray[np.uint8]) -> Any:
        prepared: NDArray[Any] = frames[:, None] if frames.ndim == 3 else frames
        if self.input != "uint8":
            prepared = prepared.astype(np.float32) / np.float32(255)
        if self.input == "normalized":
            mean, std = self.normalization
            prepared = (prepared - np.float32(mean)) / np.float32(std)
        if self.arrays == "numpy":
            return prepared
        parameter = next(self.module.parameters(), None) if self.module is not None else None
        device = parameter.device if parameter is not None else torch.device("cpu")
        return torch.from_numpy(np.ascontiguousarray(prepared)).to(device)

    def _describe(self, prepared: Any) -> str:
        return f"{self.arrays} frames {prepared.dtype} {list(prepared.shape)}"


def _checked(features: Any, num_frames: int) -> NDArray[np.float32]:
    required = f"an encoder must return floating-point features [{num_frames}, F] for {num_frames} frames"
    if isinstance(features, torch.Tensor):
        if features.dtype is torch.bfloat16:
            features = features.float()
        features = features.detach().cpu().numpy()
    if not isinstance(features, np.ndarray):
        raise UserError(f"{required}, as a torch tensor or a NumPy array; got {type(features).__name__}")
    if features.ndim != 2:
        raise UserError(f"{required}; got shape {list(features.shape)}: flatten all but the first dimension")
    if len(features) != num_frames or not features.shape[1]:
        raise UserError(f"{required}; got shape {list(features.shape)}")
    if not np.issubdtype(features.dtype, np.floating):
        raise UserError(f"{required}; got dtype {features.dtype}")
    features = features.astype(np.float32, copy=False)
    if not np.isfinite(features).all():
        bad = int((~np.isfinite(features)).any(1).sum())
        raise UserError(f"{required} that are finite; {bad} of {num_frames} frames have NaN or infinite features")
    return features


def _module_of(encoder: Encoder) -> nn.Module | None:
    """The module that is called: the encoder itself, or the owner of a bound method."""
    owner = encoder if isinstance(encoder, nn.Module) else getattr(encoder, "__self__", None)
    return owner if isinstance(owner, nn.Module) else None


def _require_eval_mode(module: nn.Module) -> None:
    for name, layer in module.named_modules():
        if layer.training and isinstance(layer, _CHANGE_IN_TRAINING):
            raise UserError(
                f"the encoder is in training mode, in which its layer {name or 'itself'!r} ({type(layer).__name__})"
                " depends on more than the frame; call encoder.eval() first"
            )
