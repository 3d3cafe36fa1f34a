"""The network of an encoder as plain values: what to build before its weights are loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch

from manicap.algorithms import find_method
from manicap.algorithms.base import Method, MethodContext, Settings
from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.ranges import Range, Side, shown
from manicap.nn.image_input import Channels, ImageView

_KEYS = ("method", "settings", "input_shape", "num_variables", "image_view")


def describe_network(method: str, settings: Settings, context: MethodContext) -> dict[str, Any]:
    """Values for JSON; the inverse of `empty_method`."""
    described: dict[str, Any] = {
        "method": method,
        "settings": to_dict(settings),
        "input_shape": list(context.input_shape),
        "num_variables": context.num_variables,
    }
    if context.image_view is not None:
        described["image_view"] = to_dict(context.image_view)
    return described


def network_of(description: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an encoder's description that `describe_network` wrote."""
    return {key: description[key] for key in _KEYS if key in description}


def empty_method(description: Mapping[str, Any], source: str) -> Method:
    """The method with its training parts, as shapes without weights, which take no memory."""
    method, values = description["method"], description["settings"]
    if not isinstance(method, str) or not isinstance(values, Mapping):
        raise UserError(f"{source} describes no network: its method is {shown(method)}, its settings {shown(values)}")
    method_type = find_method(method)
    settings = from_dict(method_type.settings_type, values, source=source)
    context = described_context(description, source)
    try:
        with torch.device("meta"):
            return method_type(settings, context)
    except ValueError as error:  # from a network that cannot process frames of this size
        raise UserError(f"{source} describes no network: {error}") from None


def described_context(description: Mapping[str, Any], source: str) -> MethodContext:
    data = from_dict(_Data, {key: description[key] for key in ("input_shape", "num_variables")}, source)
    shape = data.input_shape
    view = description.get("image_view")
    if view is not None and not isinstance(view, Mapping):
        raise UserError(f"{source}: image_view must be a table, got {shown(view)}")
    found = None if view is None else from_dict(ImageView, view, source)
    if found is not None and found.shape != shape:
        raise UserError(f"{source}: an image_view of {list(found.shape)} does not fit input_shape {list(shape)}")
    return MethodContext(shape, data.num_variables, image_view=found)


@dataclass(frozen=True)
class _Data:
    input_shape: tuple[Channels, Side, Side]
    num_variables: Annotated[int, Range(0, 10**6)]


def require_format(found: Any, own: int, path: Path, remedy: str) -> None:
    """Raise a `UserError` if a file was written by an earlier version, or by a newer one."""
    if isinstance(found, int) and found > own:
        raise UserError(f"{path} has format {found}, but this version reads {own}; install a newer manicap to read it")
    if found != own:
        raise UserError(f"{path} has format {found}, but this version reads {own}; {remedy}")
