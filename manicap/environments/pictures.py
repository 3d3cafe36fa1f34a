"""The frame of a step, from `render()` or from an observation, as uint8 [H, W] or [H, W, 3]."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.environments.config import SIDES, RecordConfig
from manicap.environments.making import Environment, users_code
from manicap.play.pictures import AreaResizer, gray_of

Bytes = NDArray[np.uint8]


class FrameTaker:
    """Converts frames of one lane or file, one after the other, to the size and colours in which they are stored."""

    def __init__(self, config: RecordConfig) -> None:
        self._config = config
        self._resize = None if config.frame_size is None else AreaResizer(*config.frame_size)

    def take(self, env: Environment, observation: Any, place: str) -> Bytes:
        """The frame to store for this step: of any size, or of the requested one. `place` is for messages."""
        config = self._config
        if config.frames == "render":
            with users_code(f"render() of {config.env}", place):
                found = env.render()
            return self.as_stored(found, f"render() of {config.env}", place)
        found = _observed(config.frames, observation, place)
        return self.as_stored(found, f"the {config.frames.replace('.', ' ')} of {config.env}", place)

    def as_stored(self, found: Any, what: str, place: str) -> Bytes:
        frame = _as_image(found, what, place)
        if self._resize is not None:
            frame = self._resize(frame)
        if frame.ndim == 3 and not self._config.colour:
            frame = gray_of(frame)
        return np.ascontiguousarray(frame)


def check_size(frame: Bytes, config: RecordConfig) -> None:
    """Raise a `UserError` for sizes that networks are not built for; the user must then choose one."""
    height, width = frame.shape[:2]
    least, most = SIDES
    if not (least <= height <= most and least <= width <= most):
        raise UserError(
            f"{config.env} has frames of {height} x {width}; sides must be {least} to {most}: give the height and width"
            " to which they are resized (frame_size, --frame-size 84 84)"
        )


def _observed(source: str, observation: Any, place: str) -> Any:
    _, _, key = source.partition(".")
    if not key:
        return observation
    if not isinstance(observation, dict) or key not in observation:
        held = ", ".join(map(str, observation)) if isinstance(observation, dict) else type(observation).__name__
        raise UserError(f"the observation has no {key!r} {place}; it has: {held}")
    return observation[key]


def _as_image(found: Any, what: str, place: str) -> Bytes:
    if found is None:
        raise UserError(f"{what} returned None {place}: it must return an image")
    if isinstance(found, dict):
        raise UserError(
            f"{what} is a dict {place} of {', '.join(map(str, found))}: name one, such as observation.image"
        )
    if not isinstance(found, np.ndarray):
        raise UserError(f"{what} is a {type(found).__name__} {place}, not an array")
    image = np.moveaxis(found, 0, -1) if _channels_first(found) else found
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    if image.dtype != np.uint8 or not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)):
        raise UserError(f"{what} is {found.dtype} {list(found.shape)} {place}; needed is uint8 [H, W, 3] or [H, W]")
    return image


def _channels_first(found: NDArray[Any]) -> bool:
    return found.ndim == 3 and found.shape[0] in (1, 3) and found.shape[2] not in (1, 3)
