"""The same grid, whoever computes it, and whatever happens on the way."""

import json
import shutil
import threading
from multiprocessing import forkserver
from pathlib import Path

import pytest

from manicap.bench.cell import damage_notes, is_done, measured, run_cell
from manicap.bench.executors import make_executor, run_grid
from manicap.bench.scores import gather_scores
from manicap.bench.status import grid_status, is_locked
from manicap.core.errors import UserError
from manicap.core.files import exclusive_lock
from manicap.jobs.probing import result_path
from manicap.report.grid_report import write_grid_report
from tests.bench import small_grid as works
from tests.bench.small_grid import result_files, small_grid
from tests.train.runner import fork_server


@pytest.fixture(scope="module", autouse=True)
def loaded_once():
    """All workers fork from a server that has loaded what torch loads with the first optimizer."""
    fork_server().set_forkserver_preload(["tests.train.runner", "manicap.bench.cell"])
    forkserver.ensure_running()


@pytest.fixture(scope="module")
def serial(data_dir, tmp_path_factory):
    """The small grid, finished by the serial executor."""
    runs_dir = tmp_path_factory.mktemp("serial")
    grid = small_grid()
    summary = run_grid(grid, make_executor("serial"), run_cell, runs_dir, data_dir, quiet=True)
    assert (summary.done_before, summary.done, summary.failed) == (0, 2, ())
    return grid, runs_dir


def test_stores_are_shared_by_the_runs_of_a_dataset(serial, data_dir):
    grid, runs_dir = serial
    stores = set()
    for cell in grid.cells:
        stores.add(json.loads((runs_dir / cell.name / "encoder.json").read_text())["identity"]["data"])
        for path in (runs_dir / cell.name / "results").glob("*.json"):
            stores.add(json.loads(path.read_text())["evaluation"]["store"])
    # One to learn from, one to probe: for both runs.
    assert len(stores) == 2


def test_a_cell_killed_after_its_results_is_shown_and_tidied(serial, data_dir, tmp_path, monkeypatch):
    grid, runs_dir = serial
    shutil.copytree(runs_dir, tmp_path, dirs_exist_ok=True)
    killed = tmp_path / grid.cells[1].name
    (killed / "features").mkdir()
    (killed / "features" / "features-1a2b.npy").write_bytes(b"x")
    monkeypatch.setattr("manicap.train.loop.prepare", lambda *_: pytest.fail("trained again"))
    shown = []

    def work(job):
        return run_cell(job, show=lambda run_dir, _: shown.append(run_dir))

    summary = run_grid(grid, make_executor("serial"), work, tmp_path, data_dir, quiet=True)
    assert (summary.done_before, summary.done) == (1, 1)
    assert shown == [killed]
    assert not (killed / "features").exists()
    assert result_files(grid, tmp_path) == result_files(grid, runs_dir)


def test_a_loop_of_links_in_the_place_of_the_data_is_told(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    summary = run_grid(
        small_grid(), make_executor("serial"), run_cell, tmp_path / "runs", tmp_path / "loop", quiet=True
    )
    assert ["symbolic links" in outcome.error for outcome in summary.failed] == [True, True]


def test_another_way_of_probing_is_measured_without_training_again(serial, data_dir, monkeypatch):
    _, runs_dir = serial
    monkeypatch.setattr("manicap.train.loop.prepare", lambda *_: pytest.fail("trained again"))
    wider = small_grid(methods=["st-dim"], evaluations=[{}, {"probe_input": "backbone"}])
    assert run_grid(wider, make_executor("serial"), run_cell, runs_dir, data_dir, quiet=True).done == 1
    results = [measured(runs_dir / wider.cells[0].name, evaluation) for evaluation in wider.evaluations.values()]
    assert [result.evaluation.width for result in results] == [8, 3456]


def test_processes_give_the_bytes_of_serial(serial, data_dir, tmp_path):
    grid, runs_dir = serial
    summary = run_grid(grid, make_executor("processes", 2), works.logged, tmp_path, data_dir, quiet=True)
    assert summary.done == 2
    assert result_files(grid, tmp_path) == result_files(grid, runs_dir)


def test_a_finished_grid_run_again_computes_nothing(serial, data_dir):
    grid, runs_dir = serial

    def refuse(job):
        pytest.fail("computed again")

    summary = run_grid(grid, make_executor("serial"), refuse, runs_dir, data_dir)
    assert (summary.done_before, summary.done) == (2, 0)
    assert [item.state for item in grid_status(grid, runs_dir)] == ["done"] * 2


def test_a_killed_worker_costs_the_steps_since_its_last_checkpoint(serial, data_dir, tmp_path):
    _, runs_dir = serial
    grid, said = small_grid(methods=["st-dim"]), []
    executor = make_executor("processes", 2)
    summary = run_grid(grid, executor, works.killed_at_step_3, tmp_path, data_dir, quiet=True, say=said.append)
    assert (summary.done, summary.failed) == (1, ())
    assert any("its worker was killed by SIGKILL" in line for line in said)
    # A checkpoint was written after the third step, and the kill came in the fourth.
    assert (tmp_path / "resumed-at").read_text() == "3"
    assert result_files(grid, tmp_path) == result_files(grid, runs_dir)


def test_a_failing_cell_is_tried_again_then_recorded_and_the_others_go_on(data_dir, tmp_path):
    grid = small_grid()
    executor = make_executor("processes", 2)
    summary = run_grid(grid, executor, works.failing_for_st_dim, tmp_path, data_dir, quiet=True)
    random_cnn, st_dim = grid.cells
    assert summary.done == 1
    assert is_done(random_cnn, tmp_path)
    assert [outcome.cell_name for outcome in summary.failed] == [st_dim.name]
    assert (tmp_path / f"{st_dim.name}.attempts").read_text() == "xx"  # one retry
    error = json.loads((tmp_path / st_dim.name / "error.json").read_text())
    assert error == {"error": "out of luck", "attempts": 2, "traceback": ["traceback"]}
    (status,) = [item for item in grid_status(grid, tmp_path) if item.cell == st_dim]
    assert (status.state, status.detail) == ("failed", "out of luck")
    # The next call tries it anew, and its success takes the error away.
    assert run_grid(grid, make_executor("serial"), run_cell, tmp_path, data_dir, quiet=True).done == 1
    assert not (tmp_path / st_dim.name / "error.json").exists()


def test_an_answer_larger_than_a_pipe_arrives(data_dir, tmp_path):
    found = []

    def run():
        found.append(run_grid(small_grid(), make_executor("processes", 2), works.talkative, tmp_path, data_dir))

    thread = threading.Thread(target=run, daemon=True)  # a hang must fail, not hang the suite
    thread.start()
    thread.join(120)
    assert found, "the grid waits for workers that wait for it"
    assert [len(outcome.details) for outcome in found[0].failed] == [300_000] * 2


@pytest.mark.parametrize("content", ["", '{"format": 1, "enc', "[]", '{"format": 1}', "\udcff"])
@pytest.mark.parametrize("damaged", ["result", "encoder.json"])
def test_a_damaged_file_makes_its_own_cell_not_done_and_is_told(serial, data_dir, tmp_path, damaged, content):
    grid, runs_dir = serial
    shutil.copytree(runs_dir, tmp_path, dirs_exist_ok=True)
    before = result_files(grid, runs_dir)
    cell = grid.cells[1]
    path = tmp_path / cell.name / "encoder.json"
    if damaged == "result":
        path = result_path(tmp_path / cell.name, cell.evaluations[0])
    path.write_bytes(content.encode("utf-8", "surrogateescape"))

    assert [status.state for status in grid_status(grid, tmp_path)] == ["done", "stopped"]
    said = []
    summary = run_grid(grid, make_executor("serial"), run_cell, tmp_path, data_dir, quiet=True, say=said.append)
    assert (summary.done_before, summary.done, summary.failed) == (1, 1, ())
    assert said[0] == f"{path} is damaged: {cell.name} counts as not done"
    assert result_files(grid, tmp_path) == before
    assert path.with_name(f"{path.name}.damaged").is_file()


def test_other_damaged_files_stop_neither_status_nor_report(serial, tmp_path):
    grid, runs_dir = serial
    shutil.copytree(runs_dir, tmp_path, dirs_exist_ok=True)
    run_dir = tmp_path / grid.cells[1].name
    (run_dir / "metrics.jsonl").write_text('{"split": "val", "st')
    found = gather_scores(grid, tmp_path)
    assert len(found.scores) == 2
    assert found.errors == {}
    assert "metrics.jsonl is not the file that was written" in found.lost_curves[run_dir.name]
    said = []
    page = write_grid_report(grid, tmp_path, tmp_path / "report", said.append).read_text()
    assert [line.split(":")[0] for line in said] == [f"the curve of {run_dir.name} is left out"]
    assert "Curves that are left out" in page
    assert "Runs that failed" not in page
    (run_dir / "encoder.json").unlink()
    (run_dir / "checkpoints").mkdir(exist_ok=True)
    (run_dir / "checkpoints" / "step-00000009.json").write_text("{")
    missing = f"{run_dir / 'encoder.json'} is missing: {run_dir.name} counts as not done"
    assert damage_notes(grid.cells, tmp_path) == [missing]
    assert grid_status(grid, tmp_path)[1].detail == "damaged or missing, will be created again: encoder.json"
    shutil.rmtree(run_dir / "results")
    (run_dir / "error.json").write_text("{")
    assert grid_status(grid, tmp_path)[1].detail == "error.json, which states the reason, is damaged"
    (run_dir / "error.json").unlink()
    assert grid_status(grid, tmp_path)[1].detail == "no intact checkpoint yet"


def test_a_mistake_in_the_config_is_not_tried_again(data_dir, tmp_path):
    # 640 frames in 8 lanes of 80: a batch of 1,000 pairs cannot be filled.
    grid = small_grid(methods=["st-dim"], run={"collect_steps": 640, "batch_size": 1000})
    summary = run_grid(grid, make_executor("serial"), run_cell, tmp_path, data_dir, quiet=True)
    assert "fewer than one batch of 1000" in summary.failed[0].error
    assert json.loads((tmp_path / grid.cells[0].name / "error.json").read_text())["attempts"] == 1


def run_small_grid(runs_dir, data_dir, barrier):
    barrier.wait()
    grid = small_grid()
    summary = run_grid(grid, make_executor("serial"), works.logged, Path(runs_dir), Path(data_dir), quiet=True)
    assert not summary.failed


def test_two_calls_at_once_share_the_work(data_dir, tmp_path):
    context = fork_server()
    barrier = context.Barrier(2)
    calls = [context.Process(target=run_small_grid, args=(tmp_path, data_dir, barrier)) for _ in range(2)]
    for call in calls:
        call.start()
    for call in calls:
        call.join(120)
    assert [call.exitcode for call in calls] == [0, 0]
    grid = small_grid()
    assert all(is_done(cell, tmp_path) for cell in grid.cells)
    log = (tmp_path / "log.txt").read_text().split()
    assert sorted(log) == sorted(cell.name for cell in grid.cells)  # each once


def test_a_cell_that_another_holds_is_busy_and_shown_as_running(data_dir, tmp_path):
    grid = small_grid(methods=["random-cnn"])
    lock = tmp_path / grid.cells[0].name / ".cell.lock"
    with exclusive_lock(lock, on_wait=lambda: None):
        assert is_locked(lock)
        assert [item.state for item in grid_status(grid, tmp_path)] == ["running"]
        seen = []

        class Once:
            num_workers = 1

            def run(self, work, jobs):
                seen.extend(job.wait for job in jobs)
                if jobs[0].wait:
                    raise KeyboardInterrupt  # it would wait now
                yield work(jobs[0])

        with pytest.raises(KeyboardInterrupt):
            run_grid(grid, Once(), run_cell, tmp_path, data_dir, quiet=True)
    assert seen == [False, True]
    assert not is_locked(lock)


def test_cores_are_divided_among_the_workers_where_the_grid_says_nothing():
    from manicap.bench.executors.base import execution_of

    grid = small_grid(execution={})
    assert execution_of(grid, make_executor("processes", 10_000), quiet=True).threads == 1
    with pytest.raises(UserError, match="workers must be at least 1"):
        make_executor("processes", 0)
