"""One small run with its result, and frames."""

from dataclasses import replace

import pytest
import torch

from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.jobs.probing import probe
from manicap.jobs.run import keep
from tests.algorithms.small import small_config, small_settings
from tests.train.runner import run_to_end


@pytest.fixture(scope="package")
def probed(data_dir, tmp_path_factory):
    """A run of ST-DIM that sees frames as quick does, probed by nearest neighbours."""
    run_dir = tmp_path_factory.mktemp("probed") / "run"
    settings = replace(small_settings("st-dim"), input="both")
    run_to_end(small_config("st-dim", max_steps=2, settings=settings), run_dir, data_dir)
    keep(probe(run_dir, AtariEvaluationConfig(probe_steps=640, probe="knn"), data_dir, threads=1, quiet=True), run_dir)
    return run_dir


@pytest.fixture(scope="package")
def frames():
    return torch.randint(0, 256, (3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
