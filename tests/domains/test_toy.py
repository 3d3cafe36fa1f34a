"""A domain of another package, in one file: every command works on it, and no file of manicap knows it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import manicap
from manicap.bench.cell import Job, run_cell
from manicap.bench.grid import build_grid
from manicap.bench.plan import plan_grid
from manicap.cli.main import main
from manicap.core.errors import UserError
from manicap.core.registry import Registry, allow_plugins, allowed_plugins
from manicap.domains.base import find_domain
from manicap.domains.result import RunResult
from manicap.report.pages import write_page
from manicap.train.setup import Execution
from tests.domains.toy import NAME, pictures

ROOT = Path(__file__).parent.parent.parent
QUIET = Execution(threads=1, quiet=True)
SMALL = {"encoder": "resnet18", "encoder_width": 8, "units": 8, "hidden_units": 8}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    place = tmp_path_factory.mktemp("toy")
    found = manicap.run("simclr", domain=NAME, seeds=(0, 1), runs_dir=place, data_dir=place, execution=QUIET, **SMALL)
    return {str(place / result.config.run_name): result for result in found}


def test_the_whole_job_runs_and_its_results_name_the_domain(results):
    assert [(result.config.domain, result.subject, result.seed) for result in results.values()] == [
        (NAME, "gray", 0),
        (NAME, "gray", 1),
    ]
    # Halves of other brightness are told apart by any network; ten of each label, so that majority is right in half.
    run, result = next(iter(results.items()))
    evaluation = result.evaluation
    assert evaluation.scores.accuracy == 1
    assert evaluation.floors["majority"].accuracy == 0.5
    page = write_page(Path(run), Path("nowhere")).read_text()
    assert "gray: simclr" in page


def test_compare_evaluate_and_diagnose_know_it(results, capsys):
    runs = list(results)
    main(["compare", *runs, "--nearest", "5"])
    assert "shades" in capsys.readouterr().out
    main(["evaluate", runs[0], "--nearest", "1", "--plugin", NAME])
    assert "gray: protocol toy" in capsys.readouterr().out
    assert manicap.diagnose(runs[0]).measures["effective_rank"] > 1
    features = manicap.load(runs[0])(torch.from_numpy(pictures()).float())
    assert features.shape == (20, 64)  # 8 x 8: the last of four stages


def test_a_grid_plans_and_runs_it(tmp_path):
    allow_plugins([NAME])
    grid = build_grid({"domain": NAME, "datasets": ["gray"], "methods": ["simclr"], "run": SMALL}, "toy")
    assert plan_grid(grid, tmp_path, tmp_path, threads=1).num_cells == 1
    [cell] = grid.cells
    assert run_cell(Job(cell, QUIET, tmp_path, tmp_path, (NAME,)), show=write_page).status == "done"
    assert RunResult.read(tmp_path / cell.name / "result.json").evaluation.scores.accuracy == 1


def test_methods_of_another_kind_are_refused_in_a_sentence():
    allow_plugins([NAME])
    with pytest.raises(UserError, match="st-dim learns from frames, but gray pictures yield views"):
        find_domain(NAME).config_type(method="st-dim")


def test_a_file_never_decides_what_is_imported(results):
    """A run from elsewhere is refused in a sentence where the user has not named its domain."""
    run = next(iter(results))
    code = """
import sys
from manicap.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print("imported" if "tests.domains.toy" in sys.modules else "not imported")
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def call(*words):
        return subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True)

    refused = call("evaluate", run)
    assert refused.returncode == 2
    assert "not imported" in refused.stdout
    assert f"--plugin {NAME}" in refused.stderr


def test_plugins_are_named_by_module_and_name():
    with pytest.raises(UserError, match=r"package\.module:Name"):
        allow_plugins(["os.system('x'):y"])
    assert "os.system('x'):y" not in allowed_plugins()
    allow_plugins(["tests.domains.toy:pictures"])
    with pytest.raises(UserError, match="is not a domain"):
        find_domain("tests.domains.toy:pictures")
    allow_plugins(["no_such_package:Thing"])
    with pytest.raises(UserError, match="cannot import no_such_package:Thing: .*; is its package"):
        find_domain("no_such_package:Thing")


def test_a_registry_lists_its_own_names_first():
    registry = Registry("thing", int, {"one": 1})
    assert list(registry) == ["one"]
    assert registry["one"] == 1
    assert "two" not in registry
    with pytest.raises(UserError, match=r"unknown thing 'two' \(1 thing: one\)"):
        registry["two"]
