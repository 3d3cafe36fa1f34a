"""The nerve of the charts of a trained atlas (DIM-UA, DIM-UAC+), over the test frames of its game."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.atari.collect import collect
from manicap.atari.protocol import FIXED
from manicap.atari.splits import probe_splits
from manicap.atari.store import StoreConfig
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.evaluate.encoders import FrozenEncoder
from manicap.evaluate.features import extract_features
from manicap.nn.heads import Membership
from manicap.train.config import read_config
from manicap.train.encoder_files import load_encoder

Floats = NDArray[np.float32]


def run_membership(
    run_dir: Path, probe_steps: int, data_dir: Path = DATA_DIR, quiet: bool = False
) -> tuple[Floats, Floats]:
    """Features [n, F] of the run's backbone and membership [n, N] of its charts, for the test frames of the probe."""
    encoder = load_encoder(run_dir, "backbone")
    membership = getattr(encoder.method, "membership", None)
    config = read_config(run_dir / "config.toml")
    if not isinstance(membership, Membership):
        raise UserError(
            f"{run_dir} has no chart membership: it was trained by {config.method}; the methods with one are dim-ua,"
            " dim-ua-weighted and dim-uac+"
        )
    store = collect(StoreConfig(config.game, probe_steps, 0, "probe"), data_dir, quiet=quiet)
    rows = probe_splits(store, FIXED, config.annotation_set, config.seed).test.rows
    frozen = FrozenEncoder(encoder, arrays="torch")
    features = extract_features(frozen, store, rows, quiet=quiet)
    with torch.no_grad():
        q_BN = membership(torch.from_numpy(np.asarray(features)))
    return features, q_BN.numpy()
