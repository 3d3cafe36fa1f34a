"""The weights of a method: which of them an encoder needs, and safetensors files of them."""

import copy
import hashlib
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from manicap.algorithms.base import Method
from manicap.core.errors import UserError
from manicap.core.files import atomic_write

_SHOWN_PROBLEMS = 5
_FORMER_NAMES = {"capacity.average": "regularizer.average", "charts.capacity.average": "charts.regularizer.average"}
"""Names from before there were several regularizers."""


def without_training_parts(method: Method) -> Method:
    """The method with only the parts that `represent` needs, shared with the given one."""
    bare = copy.copy(method)
    needed = (*method.inference_parts, "coherence_filter")
    for members in ("_modules", "_parameters", "_buffers"):
        kept = {name: part for name, part in getattr(method, members).items() if name in needed}
        setattr(bare, members, kept)
    return bare


def inference_state(method: Method) -> dict[str, Tensor]:
    """The weights that `represent` needs, as independent copies on the CPU."""
    return _copied(without_training_parts(method).state_dict())


def training_state(method: Method) -> dict[str, Tensor]:
    """The other weights, copied in the same way."""
    kept = without_training_parts(method).state_dict()
    return _copied({name: value for name, value in method.state_dict().items() if name not in kept})


def _copied(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in state.items()}


def write_weights(path: Path, state: Mapping[str, Tensor]) -> str:
    """Write a safetensors file and return its sha256."""
    content = safetensors.torch.save(dict(state))
    atomic_write(path, content)
    return hashlib.sha256(content).hexdigest()


def read_weights(path: Path, sha256: str, remedy: str = "train the run again") -> dict[str, Tensor]:
    """Read a safetensors file. Every format loads a flipped bit silently, so the hash is checked."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; {remedy}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{path} is not the file that was saved (its sha256 differs); {remedy}")
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def with_current_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors under their current names; an earlier version named some of them differently."""
    return {_FORMER_NAMES.get(name, name): value for name, value in state.items()}


def load_weights(method: Method, state: Mapping[str, Tensor], source: Path) -> None:
    """Load the tensors of a file into a method; names, shapes and types must match exactly."""
    expected = method.state_dict()
    problems = [f"{name} is missing" for name in expected if name not in state]
    problems += [f"{name} is unexpected" for name in state if name not in expected]
    for name in expected.keys() & state.keys():
        asked, found = _kind(expected[name]), _kind(state[name])
        if asked != found:
            problems.append(f"{name} is {found} instead of {asked}")
    if problems:
        told = "; ".join(sorted(problems)[:_SHOWN_PROBLEMS])
        more = f"; and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
        raise UserError(f"{source} does not contain the weights of the described network: {told}{more}")
    method.load_state_dict(dict(state), assign=True)


def _kind(value: Tensor) -> str:
    """`float32 [64, 3]`"""
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
