"""`manicap bench` and `manicap report` on a grid of one run."""

import os
import signal
import subprocess
import sys
import time

import pytest
import tomli_w

from manicap.cli.main import main
from tests.bench.small_grid import VALUES


@pytest.fixture
def grid_file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps(VALUES | {"methods": ["random-cnn"], "hours": 0.1}))
    return path


def test_plan_run_status_report_in_a_row(grid_file, data_dir, tmp_path, capsys):
    runs = ["--runs-dir", str(tmp_path / "runs")]
    stores = ["--data-dir", str(data_dir)]
    out = ["--out", str(tmp_path / "report")]
    main(["bench", "plan", str(grid_file), *runs, *stores])
    text = capsys.readouterr().out
    assert "Small grid: 1 runs, each probed in 1 way" in text
    assert "0 of 1" in text
    assert "done 0, left 1" in text
    assert "the file states 0.1 hours" in text
    main(["bench", "run", str(grid_file), "--quiet", *runs, *stores, *out])
    assert "1 runs done now, 0 earlier, 0 failed" in capsys.readouterr().out
    (page,) = (tmp_path / "runs").glob("*/report.html")
    report = tmp_path / "report" / "report.html"
    assert page.parent.name in report.read_text()
    main(["bench", "status", str(grid_file), *runs])
    text = capsys.readouterr().out
    assert "1 of 1" in text
    assert text.endswith("1 done, 0 running, 0 stopped, 0 failed, 0 left\n")

    # A finished grid run again does nothing and writes the same bytes; so does `report` alone.
    def files():
        return {path: path.read_bytes() for path in (tmp_path / "report").rglob("*.*")}

    before = files()
    main(["bench", "run", str(grid_file), "--quiet", *runs, *stores, *out])
    assert "0 runs done now, 1 earlier, 0 failed" in capsys.readouterr().out
    assert files() == before
    main(["report", str(grid_file), *runs, *out])
    assert files() == before
    main(["bench", "plan", str(grid_file), *runs, *stores])
    assert "done 1, left 0" in capsys.readouterr().out

    # What cannot be read is missing from plan and report; both say why.
    (result,) = (tmp_path / "runs").glob("*/results/*.json")
    result.write_text("{")
    for command in (["bench", "plan", str(grid_file), *runs, *stores], ["report", str(grid_file), *runs, *out]):
        main(command)
        assert f"{result} is damaged: {page.parent.name} counts as not done" in capsys.readouterr().err
    result.unlink()
    main(["report", str(grid_file), *runs, *out])
    told = f"1 of 1 runs have no result yet and are left blank: {page.parent.name}\n"
    assert told in capsys.readouterr().err


def test_a_failed_run_ends_with_exit_code_1_and_is_told_by_status(tmp_path, data_dir, capsys):
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps(VALUES | {"methods": ["st-dim"], "run": {"collect_steps": 640, "batch_size": 999}}))
    flags = ["--runs-dir", str(tmp_path / "runs")]
    with pytest.raises(SystemExit) as caught:
        main(
            ["bench", "run", str(path), "--quiet", *flags, "--data-dir", str(data_dir), "--out", str(tmp_path / "out")]
        )
    assert caught.value.code == 1
    assert "1 runs failed" in capsys.readouterr().err
    main(["bench", "status", str(path), *flags])
    text = capsys.readouterr().out
    assert "1 failed" in text
    assert "fewer than one batch of 999" in text


def test_a_mistake_in_a_grid_is_one_sentence_and_exit_code_2(tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text('datasets = ["pogn"]\nmethods = ["st-dim"]\n')
    with pytest.raises(SystemExit) as caught:
        main(["bench", "run", str(path)])
    assert caught.value.code == 2
    assert "unknown game 'pogn'; did you mean 'pong'?" in capsys.readouterr().err


def test_sigterm_stops_all_workers_in_good_order(tmp_path, data_dir, capsys):
    path = tmp_path / "long.toml"
    run = VALUES["run"] | {"max_steps": 100_000, "max_epochs": 100_000, "patience": 100_000}
    path.write_text(tomli_w.dumps(VALUES | {"methods": ["st-dim"], "run": run}))
    flags = ["--runs-dir", str(tmp_path / "runs")]
    command = [sys.executable, "-m", "manicap", "bench", "run", str(path), "--executor", "processes", "--workers", "1"]
    command += [*flags, "--data-dir", str(data_dir), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: list((tmp_path / "runs").glob("*/checkpoints/*.json")))
        os.kill(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143
    assert "stopped by SIGTERM; rerun the command to resume" in said
    main(["bench", "status", str(path), *flags])
    text = capsys.readouterr().out
    assert "0 running, 1 stopped" in text  # the worker has let go of the cell
    assert "checkpoint at step" in text


def wait_for(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")
