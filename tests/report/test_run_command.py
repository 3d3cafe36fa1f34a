"""The commands on a page: the command line reads them as the configs that they were made from."""

import shlex
from dataclasses import replace

import pytest

from manicap.cli.main import COMMANDS, _parse
from manicap.domains.run_config import plain_config
from manicap.report.run_command import again
from tests.report.hand_made import result, ridge_evaluation


def parsed(command):
    """What the command line makes of a command."""
    program, name, *words = shlex.split(command)
    assert program == "manicap"
    return _parse(COMMANDS[name].load().for_arguments(words), f"manicap {name}", words).keywords


def changed(found, evaluation, **settings):
    config = replace(found.config, settings=replace(found.config.settings, **settings))
    return replace(found, config=config, evaluation_config=replace(found.evaluation_config, **evaluation))


@pytest.mark.parametrize(
    ("config", "evaluation", "settings"),
    [
        ({}, {}, {}),
        ({"collect_steps": 2000, "max_steps": 20, "seed": 3}, {"probe_steps": 4000}, {"units": 8}),
        ({"max_steps": None, "patience": None, "learning_rate": 1e-3}, {"probe_store": "per seed", "width": 64}, {}),
        (
            {"annotation_set": "ari-2019", "protocol": "reference"},
            {"annotation_set": "ari-2019", "protocol": "reference"},
            {},
        ),
    ],
)
def test_run_reads_the_same_configs(config, evaluation, settings):
    found = changed(result(ridge_evaluation(), **config), evaluation, **settings)
    (_, command), _ = again(found, "runs/run")
    asked = parsed(command)
    shared = {name: getattr(asked["evaluation"], name) for name in ("protocol", "annotation_set")}
    assert replace(plain_config(asked["config"]), seed=found.seed, **shared) == found.config
    assert asked["evaluation"] == found.evaluation_config
    assert asked["seeds"] == (found.seed,)
    assert not asked["options"].ceiling


def test_the_nearest_preset_is_named_and_a_ceiling_asked_for():
    found = result(ridge_evaluation(), collect_steps=50_000, max_steps=12_000, seed=1)
    found.beside["supervised"] = found.evaluation
    (_, command), _ = again(found, "runs/run")
    assert command == (
        "manicap run --game pong --method st-dim --preset standard --seeds 1 --probe-steps 1200 --ceiling"
    )
    assert parsed(command)["options"].ceiling


def test_evaluate_reads_the_same_config(tmp_path):
    found = changed(result(ridge_evaluation()), {"probe": "knn", "probe_input": "backbone"})
    _, (_, command) = again(found, str(tmp_path / "a run"))
    asked = parsed(command)
    assert asked["config"] == found.evaluation_config
    assert asked["run"] == tmp_path / "a run"


def test_what_was_probed_otherwise_than_trained_takes_two_commands():
    found = changed(result(ridge_evaluation(), seed=2, protocol="reference"), {})
    (title, command), _ = again(found, "runs/run")
    assert title == "Train again"
    assert plain_config(parsed(command)["config"]) == found.config
