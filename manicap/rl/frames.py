"""Checks that observations are the frames that an encoder expects, and reorders their axes."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError

Bytes = NDArray[np.uint8]
Shape = tuple[int, int, int]


def require_frames(space: gymnasium.Space[Any], input_shape: Shape) -> None:
    """Raise a `UserError` unless observations are uint8 [C, H, W] of this shape."""
    if space.shape != input_shape or space.dtype != np.uint8:
        raise UserError(_mismatch(space, input_shape))


def channels_first(space: gymnasium.Space[Any], input_shape: Shape) -> Callable[[Bytes], Bytes]:
    """A function from observations to frames [B, C, H, W]: unchanged, with one more axis, or with channels moved."""
    channels, height, width = input_shape
    if space.dtype == np.uint8:
        if space.shape == input_shape:
            return lambda frames: frames
        if space.shape == (height, width, channels):
            return lambda frames: np.moveaxis(frames, -1, -3)
        if space.shape == (height, width) and channels == 1:
            return lambda frames: frames[..., None, :, :]
    raise UserError(_mismatch(space, input_shape))


def _mismatch(space: gymnasium.Space[Any], input_shape: Shape) -> str:
    given = f"{space.dtype} {list(space.shape)}" if space.shape is not None else type(space).__name__
    return (
        f"the encoder expects frames uint8 {list(input_shape)}, but the environment gives {given}; for a game use"
        " manicap.rl.make_env(game, encoder), which prepares frames as the encoder needs them"
    )
