"""A trained encoder on disk: safetensors files and `encoder.json` with their hashes, nothing pickled.

encoder = load_encoder("runs/pong-dim-c+-s0-1a2b3c4d")
features = encoder(frames)        # uint8 [B, 1, 210, 160] -> float32 [B, encoder.width]

encoder.safetensors         the chosen weights of the parts that the encoder needs (`Method.inference_parts`)
encoder-last.safetensors    the last weights of the same parts
training.safetensors        the last weights of the other parts: heads and predictors, for diagnostics
"""

import copy
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from manicap.algorithms import find_method
from manicap.algorithms.base import Method, MethodContext, ProbeInput
from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.files import atomic_write, sha256_file
from manicap.core.sealed import read_sealed, write_sealed
from manicap.domains.run_config import RunConfig

FORMAT = 3
WeightsName = Literal["chosen", "last"]
_FILES = {"chosen": "encoder.safetensors", "last": "encoder-last.safetensors", "training": "training.safetensors"}
_SHOWN_PROBLEMS = 5


class FrozenEncoder(nn.Module):
    """A method without its training parts: frames in, features out. An ordinary module with its own weights."""

    def __init__(self, method: Method, probe_input: ProbeInput, fingerprint: str) -> None:
        super().__init__()
        self.method = without_training_parts(method)
        self.probe_input, self.fingerprint = probe_input, fingerprint
        C, H, W = method.context.input_shape
        self.eval().requires_grad_(False)
        device = next(self.parameters()).device
        self.width: int = self(torch.zeros(1, C, H, W, dtype=torch.uint8, device=device)).shape[1]

    def forward(self, frames_BCHW: Tensor) -> Tensor:
        return self.method.represent(frames_BCHW, self.probe_input)

    def layers(self, frames_BCHW: Tensor) -> dict[str, Tensor]:
        """The output of each layer of the network, and what is probed if that is none of them."""
        found = self.method.encoder.layers(frames_BCHW)
        if self.probe_input == "output" and self.method.inference_parts != ("encoder",):
            found["output"] = self(frames_BCHW)
        return found


def without_training_parts(method: Method) -> Method:
    """The method with only its `inference_parts`, which it shares with the given one."""
    bare = copy.copy(method)
    for members in ("_modules", "_parameters", "_buffers"):
        kept = {name: part for name, part in getattr(method, members).items() if name in method.inference_parts}
        setattr(bare, members, kept)
    return bare


def inference_state(method: Method) -> dict[str, Tensor]:
    """The weights that `represent` needs, as independent copies on the CPU."""
    return _copied(without_training_parts(method).state_dict())


def training_state(method: Method) -> dict[str, Tensor]:
    """The other weights, in the same way."""
    kept = without_training_parts(method).state_dict()
    return _copied({name: value for name, value in method.state_dict().items() if name not in kept})


def _copied(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in state.items()}


def write_weights(path: Path, state: Mapping[str, Tensor]) -> str:
    """Write a safetensors file and return its sha256."""
    content = safetensors.torch.save(dict(state))
    atomic_write(path, content)
    return hashlib.sha256(content).hexdigest()


def read_weights(path: Path, sha256: str) -> dict[str, Tensor]:
    """Read a safetensors file. Every format loads a flipped bit silently, so the hash is checked."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; train the run again") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{path} is not the file that was saved (its sha256 differs); train the run again")
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise UserError(f"{path} cannot be read: {error}") from None


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
        raise UserError(f"{source} does not contain the weights that encoder.json describes: {told}{more}")
    method.load_state_dict(dict(state), assign=True)


def _kind(value: Tensor) -> str:
    """`float32 [64, 3]`"""
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"


def save_encoder(
    run_dir: Path, config: RunConfig, method: Method, chosen: Mapping[str, Tensor] | None, facts: Mapping[str, Any]
) -> None:
    """Write the chosen weights (the last if None), the last, and those of the training parts; then `encoder.json`."""
    last, training = inference_state(method), training_state(method)
    hashes = {"chosen": write_weights(run_dir / _FILES["chosen"], last if chosen is None else chosen)}
    hashes["last"] = write_weights(run_dir / _FILES["last"], last)
    if method.is_trained and training:
        hashes["training"] = write_weights(run_dir / _FILES["training"], training)
    description = {
        "format": FORMAT,
        "domain": config.domain,
        "method": config.method,
        "settings": to_dict(config.settings),
        "input_shape": list(method.context.input_shape),
        "num_variables": method.context.num_variables,
        "sha256": hashes,
        **facts,
    }
    write_sealed(run_dir / "encoder.json", description)


def read_description(run_dir: Path) -> dict[str, Any]:
    """Read `encoder.json`: what was trained, for how long, and the hashes of its weights."""
    path = run_dir / "encoder.json"
    if not path.exists():
        raise UserError(f"{run_dir} has no encoder.json: finish the run with 'manicap resume {run_dir}'")
    description = read_sealed(path, "encoder", remedy="train the run again")
    if description.get("format") != FORMAT:
        raise UserError(
            f"{path} has format {description.get('format')}, but this version reads {FORMAT}; train the run again"
        )
    return description


def verify_encoder(run_dir: Path) -> None:
    """Raise a `UserError` unless the weights of a finished run are those that were saved."""
    hashes = read_description(run_dir)["sha256"]
    for name in ("chosen", "last"):
        path = run_dir / _FILES[name]
        if not path.is_file():
            raise UserError(f"{path} is missing; train the run again")
        if sha256_file(path) != hashes[name]:
            raise UserError(f"{path} is not the file that was saved (its sha256 differs); train the run again")


def load_encoder(
    run_dir: Path | str, probe_input: ProbeInput = "output", weights: WeightsName = "chosen"
) -> FrozenEncoder:
    """The encoder of a finished run: an `nn.Module` in evaluation mode, on the CPU.

        encoder = manicap.load_encoder("runs/pong-dim-c+-s0-1a2b3c4d")
        features = encoder(frames)        # uint8 [B, 1, 210, 160] -> float32 [B, encoder.width]

    Args:
        run_dir: Directory of the run.
        probe_input: `output` is what the method's paper probes; `backbone` the features of the network itself.
        weights: `chosen` by the run, or the `last` ones.
    """
    run_dir = Path(run_dir)
    return read_encoder(run_dir, read_description(run_dir), probe_input, weights)


def read_encoder(
    run_dir: Path, description: Mapping[str, Any], probe_input: ProbeInput, weights: WeightsName
) -> FrozenEncoder:
    """The same, for a run whose description has already been read."""
    sha256 = description["sha256"][weights]
    method = without_training_parts(empty_method(run_dir, description))
    path = run_dir / _FILES[weights]
    load_weights(method, read_weights(path, sha256), path)
    return FrozenEncoder(method, probe_input, f"{sha256}-{probe_input}")


def read_trained_method(run_dir: Path, description: Mapping[str, Any]) -> Method | None:
    """The method after its last step, with its training parts; None if they were not saved."""
    hashes, path = description["sha256"], run_dir / _FILES["training"]
    if "training" not in hashes or not path.exists():
        return None
    method = empty_method(run_dir, description)
    state = read_weights(run_dir / _FILES["last"], hashes["last"]) | read_weights(path, hashes["training"])
    load_weights(method, state, path)
    return method.eval().requires_grad_(False)


def empty_method(run_dir: Path, description: Mapping[str, Any]) -> Method:
    """The method of a finished run with its training parts, as shapes without weights: it takes no memory."""
    method_type = find_method(description["method"])
    settings = from_dict(method_type.settings_type, description["settings"], source=f"{run_dir}/encoder.json")
    with torch.device("meta"):
        return method_type(settings, described_context(description))


def described_context(description: Mapping[str, Any]) -> MethodContext:
    return MethodContext(tuple(description["input_shape"]), description["num_variables"])
