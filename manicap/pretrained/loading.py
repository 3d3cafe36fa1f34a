"""`manicap.load`: one way to an encoder, wherever it is."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from manicap.core.errors import UserError
from manicap.core.ranges import shown
from manicap.core.reading import read_toml_table
from manicap.core.registry import allow_plugins
from manicap.domains.run_config import RunConfig, config_from_dict
from manicap.pretrained.card import read_score, training_card
from manicap.pretrained.encoder import PretrainedEncoder
from manicap.pretrained.encoder_files import WeightsName, read_description, read_encoder


def load(
    source: Path | str, layer: str | None = None, weights: WeightsName = "chosen", *, plugins: Iterable[str] = ()
) -> PretrainedEncoder:
    """A trained encoder: an `nn.Module` in eval mode, frozen, on the CPU. Raw uint8 frames in, features out.

        encoder = manicap.load("runs/pong-dim-c+-s0-1a2b3c4d")
        features = encoder(frames)        # uint8 [B, 1, 210, 160] -> float32 [B, encoder.num_features]
        encoder.card.score                # what a probe reads from it, beside its floors; None if it was not probed

    Nothing is unpickled, and no code of the source is run.

    Args:
        source: Directory of a run.
        layer: `output` (the default) is what the method's paper probes; `backbone` the features of the network itself;
            `local` the feature map before them; or the name of a layer, such as `convolution 1`.
        weights: `chosen` by the run, or the `last` ones.
        plugins: Import paths that the source may use, for a method or network of another package.
    """
    allow_plugins(plugins)
    path = Path(source)
    if path.is_file():
        raise UserError(f"{shown(path)} is a file, not an encoder: give the directory of a run")
    return load_run(path, layer, weights)


def load_run(run_dir: Path, layer: str | None, weights: WeightsName) -> PretrainedEncoder:
    description = read_description(run_dir)
    if weights not in ("chosen", "last"):
        raise UserError(f"weights must be chosen or last, got {shown(weights)}")
    card = training_card(description, _config(run_dir))
    card = replace(card, score=read_score(run_dir, description["sha256"]))
    return read_encoder(run_dir, description, layer or "output", weights, card)


def _config(run_dir: Path) -> RunConfig | None:
    """None if only the encoder's own files were kept."""
    path = run_dir / "config.toml"
    return config_from_dict(read_toml_table(path, "config file"), str(path)) if path.exists() else None
