"""The encoder of a run on disk: safetensors files and `encoder.json` with their hashes, nothing pickled.

encoder.safetensors         the chosen weights of the parts that the encoder needs (`Method.inference_parts`)
encoder-last.safetensors    the last weights of the same parts
training.safetensors        the last weights of the other parts: heads and predictors, for diagnostics
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from manicap.algorithms.base import Method
from manicap.core.errors import UserError
from manicap.core.files import sha256_file
from manicap.core.sealed import read_sealed, write_sealed
from manicap.domains.run_config import RunConfig
from manicap.pretrained.card import EncoderCard
from manicap.pretrained.encoder import PretrainedEncoder
from manicap.pretrained.network import describe_network, empty_method, network_of, require_format
from manicap.pretrained.weights import (
    inference_state,
    load_weights,
    read_weights,
    training_state,
    with_current_names,
    without_training_parts,
    write_weights,
)

FORMAT = 3
WeightsName = Literal["chosen", "last"]
_FILES = {"chosen": "encoder.safetensors", "last": "encoder-last.safetensors", "training": "training.safetensors"}


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
        **describe_network(config.method, config.settings, method.context),
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
    require_format(description.get("format"), FORMAT, path, "train the run again")
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


def read_encoder(
    run_dir: Path, description: Mapping[str, Any], layer: str, weights: WeightsName, card: EncoderCard
) -> PretrainedEncoder:
    """The encoder of a run whose description has been read: in eval mode, frozen, on the CPU."""
    sha256, path = description["sha256"][weights], run_dir / _FILES[weights]
    method = without_training_parts(empty_method(description, f"{run_dir}/encoder.json"))
    load_weights(method, read_weights(path, sha256), path)
    return PretrainedEncoder(method, layer, f"{sha256}-{layer}", card, network_of(description))


def read_trained_method(run_dir: Path, description: Mapping[str, Any]) -> Method | None:
    """The method after its last step, with its training parts; None if they were not saved."""
    hashes, path = description["sha256"], run_dir / _FILES["training"]
    if "training" not in hashes or not path.exists():
        return None
    method = empty_method(description, f"{run_dir}/encoder.json")
    state = read_weights(run_dir / _FILES["last"], hashes["last"]) | read_weights(path, hashes["training"])
    load_weights(method, with_current_names(state), path)
    return method.eval().requires_grad_(False)
