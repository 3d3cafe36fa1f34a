"""`manicap.load`: load an encoder from a run, a directory or a hub."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.ranges import shown
from manicap.core.reading import read_toml_table
from manicap.core.registry import allow_plugins
from manicap.domains.run_config import RunConfig, config_from_dict
from manicap.pretrained.card import EncoderCard, read_score, training_card
from manicap.pretrained.encoder import PretrainedEncoder
from manicap.pretrained.encoder_files import WeightsName, read_description, read_encoder
from manicap.pretrained.hub import Access, HubName, download
from manicap.pretrained.network import empty_method, network_of
from manicap.pretrained.saving import CONFIG, REMEDY, WEIGHTS, read_saved
from manicap.pretrained.weights import load_weights, read_weights, without_training_parts


def load(
    source: Path | str, layer: str | None = None, weights: WeightsName = "chosen", *, plugins: Iterable[str] = ()
) -> PretrainedEncoder:
    """A trained encoder: an `nn.Module` in eval mode, frozen, on the CPU. Raw uint8 frames in, features out.

        encoder = manicap.load("runs/pong-dim-c+-s0-1a2b3c4d")
        features = encoder(frames)        # uint8 [B, 1, 210, 160] -> float32 [B, encoder.num_features]
        encoder.card.score                # what a probe reads from it, beside its floors; None if it was not probed

    Nothing is unpickled, and no code of the source is run.

    Args:
        source: Directory of a run or of a saved encoder, or its name on a hub, `user/name` or `user/name@revision`.
        layer: `output` is what the method's paper probes; `backbone` the features of the network itself; `local` the
            feature map before them; or the name of a layer, such as `convolution 1`. By default `output`, or the layer
            with which it was saved.
        weights: Of a run, its `chosen` weights or the `last` ones.
        plugins: Import paths that the source may use, for a method or network of another package.
    """
    allow_plugins(plugins)
    if not isinstance(source, Path | str):
        raise UserError(f"an encoder is loaded from a directory or a hub's name, got {shown(source)}")
    path = Path(source)
    if weights not in ("chosen", "last"):
        raise UserError(f"weights must be chosen or last, got {shown(weights)}")
    if not path.exists() and (name := _hub_name(source)) is not None:
        _require_chosen(weights, str(name))
        return from_pretrained(name.name, name.revision, layer)
    if path.exists() and not path.is_dir():
        raise UserError(f"{shown(path)} is a file, not an encoder: give the directory of a run or of a saved encoder")
    if (path / CONFIG).exists() and not (path / "encoder.json").exists():
        _require_chosen(weights, str(path))
        return _load_saved(path, layer)
    if not (path / "encoder.json").exists() and not (path / "config.toml").exists():
        raise UserError(
            f"there is no encoder in {shown(path)}: give a finished run, a saved encoder, or user/name on a hub"
        )
    return _load_run(path, layer, weights)


def from_pretrained(
    name: str,
    revision: str | None = None,
    layer: str | None = None,
    *,
    plugins: Iterable[str] = (),
    force_download: bool = False,
    token: str | bool | None = None,
    endpoint: str | None = None,
    cache_dir: Path | str | None = None,
) -> PretrainedEncoder:
    """An encoder from a hub; `manicap.load("user/name@revision")` calls this. Requires `manicap[hub]`.

        encoder = manicap.from_pretrained("user/pong-dim-c-plus", revision="v1")

    Files are downloaded once and cached; without a network, the cached files are used. Their hashes are checked.

    Args:
        name: `user/name`.
        revision: A branch, a tag or a commit; `main` if omitted.
        layer: As in `manicap.load`.
        plugins: Import paths that the encoder may use, for a method or network of another package.
        force_download: Download files again that are in the cache.
        token: Access token; the saved one (`hf auth login`) if omitted.
        endpoint: Address of the hub; HF_ENDPOINT, or https://huggingface.co, if omitted.
        cache_dir: Where downloads are kept; the cache of huggingface_hub if omitted.
    """
    allow_plugins(plugins)
    found = HubName.parse(name if revision is None else f"{name}@{revision}")
    if found is None:
        raise UserError(f"a hub's name must be user/name or user/name@revision, got {shown(name)}")
    directory = download(found, (CONFIG, WEIGHTS), Access(token, endpoint, cache_dir), force_download)
    return _load_saved(directory, layer, remedy=f"download it again with force_download=True, or ask {found.name}")


def _hub_name(source: Path | str) -> HubName | None:
    """The name on a hub; None for a path. No hub is asked for runs/typo if the directory runs exists."""
    name = HubName.parse(str(source)) if isinstance(source, str) else None
    return None if name is None or Path(name.name).parent.is_dir() else name


def _require_chosen(weights: WeightsName, source: str) -> None:
    if weights != "chosen":
        raise UserError(f"{source} has one set of weights: weights='last' is for the directory of a run")


def _load_run(run_dir: Path, layer: str | None, weights: WeightsName) -> PretrainedEncoder:
    description = read_description(run_dir)
    card = training_card(description, _config(run_dir))
    card = replace(card, score=read_score(run_dir, description["sha256"][weights]))
    return read_encoder(run_dir, description, layer or "output", weights, card)


def _load_saved(directory: Path, layer: str | None, remedy: str = REMEDY) -> PretrainedEncoder:
    description: dict[str, Any] = read_saved(directory)
    source, path = str(directory / CONFIG), directory / WEIGHTS
    try:
        card, layer = EncoderCard.from_dict(description["card"], source), layer or str(description["layer"])
        sha256, network = str(description["sha256"]), network_of(description)
        method = without_training_parts(empty_method(network, source))
    except KeyError as error:
        raise UserError(f"{source} is not a manicap encoder: {error} is missing; {remedy}") from None
    load_weights(method, read_weights(path, sha256, remedy), path)
    return PretrainedEncoder(method, layer, f"{sha256}-{layer}", card, network)


def _config(run_dir: Path) -> RunConfig | None:
    """None if only the encoder's own files were kept."""
    path = run_dir / "config.toml"
    return config_from_dict(read_toml_table(path, "config file"), str(path)) if path.exists() else None
