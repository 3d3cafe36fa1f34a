from pathlib import Path

import pytest

from manicap.atari.collect import collect
from manicap.atari.games import GAMES
from manicap.bench.plan import num_steps, plan_grid
from manicap.domains.atari.config import atari_preset
from manicap.domains.atari.costs import LIVES_IN_10_000_STEPS
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.images.config import image_preset
from manicap.domains.play.costs import probe_seconds
from manicap.train.distributed import Processes
from manicap.train.setup import Execution, prepare
from tests.algorithms.small import small_config
from tests.bench.small_grid import small_grid

NOWHERE = Path("/nonexistent")


def test_steps_are_the_epochs_of_the_training_split_or_the_limit():
    # 80 % of 100,000 frames in batches of 64 are 1,250 steps an epoch, for 100 epochs.
    assert num_steps(atari_preset("paper", "pong", "dim-c+"), NOWHERE) == 125_000
    assert num_steps(atari_preset("quick", "pong", "dim-c+"), NOWHERE) == 600
    # 50,000 images in batches of 128 are 390 full batches, for 1000 epochs, and for 12.
    assert num_steps(image_preset("paper", "cifar10", "simclr", "tsai2021"), NOWHERE) == 390_000
    assert num_steps(image_preset("quick", "cifar10", "simclr", "clean"), NOWHERE) == 4_680


def test_steps_of_windows_are_those_that_the_2019_code_draws():
    assert set(LIVES_IN_10_000_STEPS) == set(GAMES)
    # The 2019 code draws 100 windows for each of the lives of its 80,000 frames: on Pong about 166 batches of 64 an
    # epoch, by its own logs; random play is another play, so within a fifth.
    steps = num_steps(atari_preset("paper", "pong", "cpc"), NOWHERE)
    assert steps / 100 == pytest.approx(166, rel=0.2)


@pytest.mark.parametrize("method", ["st-dim", "cpc"])
def test_steps_of_a_store_that_is_there_are_those_of_the_training(method, data_dir):
    config = small_config(method, max_steps=None, max_epochs=3)
    collect(config.store_config, data_dir, quiet=True)
    setup = prepare(config, Execution(threads=1, quiet=True), data_dir, Processes())
    assert num_steps(config, data_dir) == setup.max_steps


def test_stores_are_counted_once_and_training_by_the_measured_step(monkeypatch):
    monkeypatch.setattr("manicap.domains.atari.costs.emulator_seconds", lambda game: 0.25)
    plan = plan_grid(small_grid(seeds=[0, 1]), NOWHERE, NOWHERE, threads=1)
    assert (plan.num_cells, plan.num_done) == (4, 0)
    # 640 frames to learn from for each of two seeds, 640 to probe for both.
    assert plan.collect_hours * 3600 == pytest.approx(3 * 640 * 0.25, rel=1e-9)
    # random-cnn is not trained; st-dim takes 6 steps with each seed.
    assert plan.rates["random-cnn"].step == 0.0
    assert plan.train_hours * 3600 == pytest.approx(2 * 6 * plan.rates["st-dim"].step, rel=1e-9)
    assert plan.probe_hours * 3600 == pytest.approx(2 * sum(rates.probes for rates in plan.rates.values()), rel=1e-9)


def test_the_eigenvectors_of_a_logistic_probe_are_counted_once(monkeypatch):
    # 5 s once and 0.1 s an iteration on 1,024 rows; 70 % of 4,800 steps are 3.28125 times as many, in 60 iterations.
    monkeypatch.setattr(
        "manicap.domains.play.costs._fit_seconds", lambda probe, data: 5 + 0.1 * probe.config.max_iterations
    )
    seconds = probe_seconds(AtariEvaluationConfig(probe_steps=4_800, probe="logistic"), width=8)
    assert seconds == pytest.approx(5 + 60 * 0.1 * 3.28125, rel=1e-9)
