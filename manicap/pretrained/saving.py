"""A directory that holds only an encoder, for `manicap.load` and hubs.

config.json           the network as plain values, the hash of the weights, the card; sealed by a checksum
model.safetensors     the weights that the encoder needs
README.md             the card for readers: score beside its floors, how to load it
label-curves.png      if it was probed with label curves
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch

from manicap import __version__
from manicap.core.errors import UserError, refused_by_system
from manicap.core.files import atomic_write
from manicap.core.ranges import shown
from manicap.core.reading import read_json
from manicap.core.sealed import read_sealed, write_sealed
from manicap.pretrained.network import require_format
from manicap.pretrained.readme import PICTURE, write_readme
from manicap.pretrained.weights import inference_state

if TYPE_CHECKING:  # it saves itself with this module
    from manicap.pretrained.encoder import PretrainedEncoder

FORMAT = 1
CONFIG, WEIGHTS, README = "config.json", "model.safetensors", "README.md"
REMEDY = "save or download the encoder again"


def save_directory(encoder: "PretrainedEncoder", directory: Path, name: str | None, license: str | None) -> None:
    """Write the files. Weights that have changed since they were loaded are saved without the score of the old ones."""
    state = inference_state(encoder.method)
    state = {key: value.float() if value.is_floating_point() else value for key, value in state.items()}
    content = safetensors.torch.save(state)
    sha256, card = hashlib.sha256(content).hexdigest(), encoder.card
    if sha256 != encoder.fingerprint.partition("-")[0] and card.steps:
        card = replace(card, score=None, weights="changed after training")
    name = name or os.path.basename(os.path.abspath(directory))  # "." has no name, and a link keeps its own
    readme = write_readme(card, name, encoder.layer, encoder.num_features, encoder.input_shape, license)
    description = {
        "format": FORMAT,
        "library": "manicap",
        "version": __version__,
        "layer": encoder.layer,
        **encoder.network,
        "sha256": sha256,
        "card": card.to_dict(),
    }
    _require_own(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        atomic_write(directory / WEIGHTS, content)
        atomic_write(directory / README, readme.encode())
        (directory / PICTURE).unlink(missing_ok=True)
        if card.score is not None and card.score.curves:
            from manicap.pretrained.picture import draw_label_curves  # matplotlib, which training does not need

            title = f"{card.method} on {card.subject}, {card.score.probe} probe"
            atomic_write(directory / PICTURE, draw_label_curves(card.score.curves, title))
        write_sealed(directory / CONFIG, description)
    except OSError as error:
        raise refused_by_system(f"cannot save the encoder to {shown(directory)}", error) from None


def _require_own(directory: Path) -> None:
    """Files of the same names that belong to something else must not be replaced."""
    taken = [name for name in (CONFIG, WEIGHTS, README, PICTURE) if (directory / name).exists()]
    if taken and not _is_saved_encoder(directory):
        raise UserError(
            f"{shown(directory)} has a {taken[0]} that is not of a saved encoder: give an empty or a new directory"
        )


def _is_saved_encoder(directory: Path) -> bool:
    try:
        return bool(read_json(directory / CONFIG, "manicap encoder", {"library": str})["library"] == "manicap")
    except UserError:
        return False


def read_saved(directory: Path) -> dict[str, Any]:
    """`config.json` of a saved encoder."""
    path = directory / CONFIG
    found: Mapping[str, Any] = read_json(path, "manicap encoder", {"library": str}, remedy=REMEDY)
    if found["library"] != "manicap":
        raise UserError(f"{shown(path)} is not a manicap encoder: its library is {shown(found['library'])}")
    require_format(found.get("format"), FORMAT, path, REMEDY)
    return read_sealed(path, "manicap encoder", remedy=REMEDY)
