"""Runs of earlier versions are refused in one sentence that says what to do."""

import json
import shutil

import pytest

import manicap
from manicap.cli.main import main
from manicap.core.sealed import write_sealed
from manicap.train.loop import pretrain
from manicap.train.setup import Execution
from tests.algorithms.small import small_config


@pytest.fixture(scope="module")
def finished(data_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    return pretrain(small_config("st-dim", max_steps=2), run_dir, Execution(threads=1, quiet=True), data_dir)


@pytest.fixture
def run_dir(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def test_a_config_that_names_no_domain(run_dir):
    path = run_dir / "config.toml"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("domain")))
    with pytest.raises(manicap.UserError, match=r"config\.toml names no domain: .*; train the run again"):
        manicap.open_run(run_dir)


@pytest.mark.parametrize("name", ["encoder.json", "run.json"])
def test_files_of_another_format(name, run_dir):
    values = json.loads((run_dir / name).read_text())
    values.pop("checksum")
    write_sealed(run_dir / name, {**values, "format": values["format"] - 1})
    with pytest.raises(manicap.UserError, match=r"format .*(train the run again|remove the run's directory)"):
        manicap.open_run(run_dir)


def test_a_result_of_another_format_is_measured_again_or_refused(run_dir, data_dir, capsys):
    main(f"evaluate {run_dir} --probe knn --probe-steps 640 --data-dir {data_dir}".split())
    [path] = (run_dir / "results").glob("*.json")
    values = json.loads(path.read_text())
    values.pop("checksum")
    write_sealed(path, {**values, "format": values["format"] - 1})
    shutil.copy(path, run_dir / "result.json")
    capsys.readouterr()
    main(f"evaluate {run_dir} --probe knn --probe-steps 640 --data-dir {data_dir}".split())
    assert "measuring again: " in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["compare", str(run_dir), "--data-dir", str(data_dir)])
    assert stopped.value.code == 2
    assert "this version reads" in capsys.readouterr().err
