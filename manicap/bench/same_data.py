"""What was learned and measured is told only of the data it was learned and measured on.

A finished run and its results carry fingerprints of their data, which are compared with the data on this disk. Where it
is not on this disk there is nothing to compare, and what is kept stands for the data that it names.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from manicap.atari.integrity import open_store
from manicap.atari.store import StoreConfig, store_path
from manicap.core.errors import UserError
from manicap.core.results import known_result
from manicap.images.selection import has_images
from manicap.train.config import PretrainConfig
from manicap.train.encoder_files import read_description
from manicap.train.image_config import ImageConfig
from manicap.train.image_data import open_split
from manicap.train.run_config import RunConfig


def current_result(path: Path, encoder: str, data_now: Callable[[], str | None]) -> dict[str, Any] | None:
    """The result measured before, if it is of this encoder and of the data on disk; damaged ones are measured again."""
    try:
        known = known_result(path, encoder)
    except UserError as error:
        print(f"measured again: {error}", file=sys.stderr)
        return None
    return known if known is not None and is_of_data(known, data_now()) else None


def is_of_data(result: Mapping[str, Any], now: str | None) -> bool:
    """Whether a result was measured on the data on disk, or there is none there."""
    return now is None or now == result["evaluation"]["store"]


def require_same_data(config: RunConfig, run_dir: Path, data_dir: Path) -> None:
    """Refuse a finished run whose training data have changed since: its scores would be told of other data."""
    if not (run_dir / "encoder.json").is_file():
        return
    name, now = training_data(config, data_dir)
    before = read_description(run_dir)["identity"].get(name)
    if now is not None and now != before:
        raise UserError(
            f"the {name} of {run_dir} has changed since the run was trained on it (fingerprint {before}, now {now});"
            " put the old data back, or remove the run's directory to train it again"
        )


def training_data(config: RunConfig, data_dir: Path) -> tuple[str, str | None]:
    """What a run's identity calls its data, and the fingerprint of what is on disk; None if it is not there."""
    if isinstance(config, ImageConfig):
        if not has_images(config.dataset, data_dir):
            return "dataset", None
        return "dataset", open_split(config, "pretrain", data_dir).fingerprint
    assert isinstance(config, PretrainConfig)
    return "store", store_fingerprint(config.store_config, data_dir)


def probe_data(config: RunConfig, evaluation: Any, data_dir: Path) -> str | None:
    """The fingerprint of what a run is probed on, as its results name it; None if it is not on disk."""
    if isinstance(config, ImageConfig):
        return probe_images_fingerprint(config, data_dir)
    assert isinstance(config, PretrainConfig)
    return store_fingerprint(evaluation.store_config(config.game, config.seed), data_dir)


def store_fingerprint(config: StoreConfig, data_dir: Path) -> str | None:
    path = store_path(config, data_dir)
    return open_store(path).fingerprint if path.is_dir() else None


def probe_images_fingerprint(config: ImageConfig, data_dir: Path) -> str | None:
    """As `ImageEvaluation.store` has it."""
    if not has_images(config.dataset, data_dir):
        return None
    return "-".join(open_split(config, split, data_dir).fingerprint for split in ("train", "test"))
