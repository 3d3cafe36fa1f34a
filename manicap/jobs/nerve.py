"""The nerve of the charts of a trained atlas (DIM-UA, DIM-UAC+), over the test samples of what it learned from."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.domains.base import find_domain
from manicap.nn.heads import Membership
from manicap.train.finished import FinishedRun

Floats = NDArray[np.float32]


def run_membership(
    run_dir: Path, probe_steps: int, data_dir: Path = DATA_DIR, quiet: bool = False
) -> tuple[Floats, Floats]:
    """Features [n, F] of the run's backbone and membership [n, N] of its charts, for the test samples of a probe."""
    run = FinishedRun(run_dir)
    encoder = run.encoder("backbone")
    membership = getattr(encoder.method, "membership", None)
    if not isinstance(membership, Membership):
        raise UserError(
            f"{run_dir} has no chart membership: it was trained with {run.config.method}; the methods that have one are"
            " dim-ua, dim-ua-weighted and dim-uac+"
        )
    features = find_domain(run.config.domain).test_features(run.config, encoder, probe_steps, data_dir, quiet)
    with torch.no_grad():
        q_BN = membership(torch.from_numpy(np.asarray(features)))
    return features, q_BN.numpy()
