"""A trained encoder on disk: `encoder.safetensors` and `encoder.json`, nothing pickled.

encoder = load_encoder("runs/pong-dim-c+-s0-1a2b3c4d")
features = encoder(frames)        # uint8 [B, 1, 210, 160] -> float32 [B, encoder.width]
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.files import atomic_write, write_json
from manicap.methods import find_method
from manicap.methods.base import Method, MethodContext, ProbeInput
from manicap.train.run_config import RunConfig

FORMAT = 1
WeightsName = Literal["chosen", "last"]
_FILES: dict[WeightsName, str] = {"chosen": "encoder.safetensors", "last": "encoder-last.safetensors"}


class FrozenEncoder(nn.Module):
    """A method without its training parts: frames in, features out."""

    def __init__(self, method: Method, probe_input: ProbeInput, fingerprint: str) -> None:
        super().__init__()
        self.method, self.probe_input, self.fingerprint = method, probe_input, fingerprint
        C, H, W = method.context.input_shape
        self.eval().requires_grad_(False)
        self.width: int = self(torch.zeros(1, C, H, W, dtype=torch.uint8)).shape[1]

    def move(self, device: torch.device) -> Self:
        """To a device; the training parts have no data that could be moved, so `to` would fail."""
        for part in self.method.inference_parts:
            getattr(self.method, part).to(device)
        return self

    def forward(self, frames_BCHW: Tensor) -> Tensor:
        return self.method.represent(frames_BCHW, self.probe_input)


def inference_state(method: Method) -> dict[str, Tensor]:
    """The weights that `represent` needs, as independent copies on the CPU."""
    keep = tuple(f"{part}." for part in method.inference_parts)
    state = method.state_dict()
    return {name: value.detach().cpu().clone() for name, value in state.items() if name.startswith(keep)}


def write_weights(path: Path, state: Mapping[str, Tensor]) -> str:
    """Write a safetensors file; its sha256."""
    content = safetensors.torch.save(dict(state))
    atomic_write(path, content)
    return hashlib.sha256(content).hexdigest()


def read_weights(path: Path, sha256: str | None = None) -> dict[str, Tensor]:
    """Read a safetensors file. Every format loads a flipped bit in silence, so the hash, if given, decides."""
    content = path.read_bytes() if path.is_file() else b""
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{path} is not the file that was saved (its sha256 differs); train the run again")
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def save_encoder(
    run_dir: Path,
    config: RunConfig,
    context: MethodContext,
    chosen: Mapping[str, Tensor],
    last: Mapping[str, Tensor],
    facts: Mapping[str, Any],
) -> None:
    """Write the chosen and the last weights, then the description that makes them count."""
    hashes = {"chosen": write_weights(run_dir / _FILES["chosen"], chosen)}
    hashes["last"] = write_weights(run_dir / _FILES["last"], last)
    description = {
        "format": FORMAT,
        "method": config.method,
        "settings": to_dict(config.settings),
        "input_shape": list(context.input_shape),
        "sha256": hashes,
        **facts,
    }
    write_json(run_dir / "encoder.json", description)


def read_description(run_dir: Path) -> dict[str, Any]:
    """`encoder.json`: what was trained, how far, and the hashes of its weights."""
    try:
        description: dict[str, Any] = json.loads((run_dir / "encoder.json").read_text())
    except FileNotFoundError:
        raise UserError(f"{run_dir} holds no encoder.json: finish the run with 'manicap resume {run_dir}'") from None
    except ValueError:
        raise UserError(f"{run_dir}/encoder.json is damaged; train the run again") from None
    if description.get("format") != FORMAT:
        raise UserError(f"{run_dir}/encoder.json has format {description.get('format')}, this version reads {FORMAT}")
    return description


def load_encoder(
    run_dir: Path | str, probe_input: ProbeInput = "output", weights: WeightsName = "chosen"
) -> FrozenEncoder:
    """The encoder of a finished run."""
    run_dir = Path(run_dir)
    description = read_description(run_dir)
    state = read_weights(run_dir / _FILES[weights], description["sha256"][weights])
    method_type = find_method(description["method"])
    settings = from_dict(method_type.settings_type, description["settings"], source=f"{run_dir}/encoder.json")
    with torch.device("meta"):  # the training parts keep their shapes and take no memory
        method = method_type(settings, MethodContext(tuple(description["input_shape"]), num_variables=1))
    method.load_state_dict(state, strict=False, assign=True)
    return FrozenEncoder(method, probe_input, f"{description['sha256'][weights]}-{probe_input}")
