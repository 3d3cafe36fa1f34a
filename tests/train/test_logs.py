"""Logs go on where a checkpoint knew them to be, and a changed one is noticed."""

import json
import resource

import pytest

from manicap.core.errors import Failure, UserError
from manicap.train.logs import METRICS, LogFile, read_log
from manicap.train.record import RunRecord


def written(path, count):
    log = LogFile(path)
    for step in range(count):
        log.write({"split": "train" if step % 2 else "val", "step": step})
    known = log.flush()
    log.close()
    return known


def test_lines_after_the_checkpoint_and_a_line_cut_short_are_forgotten(tmp_path):
    path = tmp_path / METRICS
    known = written(path, 2)
    kept = path.read_bytes()
    path.write_bytes(kept + b'{"step": 2}\n{"step": 3, "los')
    log = LogFile(path, known)
    log.write({"step": 2})
    log.close()
    assert path.read_bytes() == kept + b'{"step": 2}\n'


@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing"])
def test_a_changed_part_is_noticed_unless_it_is_accepted(damage, tmp_path):
    path = tmp_path / METRICS
    known = written(path, 3)
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content if damage == "flipped" else content[:-4])
    with pytest.raises(UserError, match=r"metrics\.jsonl has changed since the checkpoint .* resume with --force"):
        LogFile(path, known)
    LogFile(path, known, accept_changes=True).close()


def test_a_failing_write_is_one_sentence(tmp_path):
    log = LogFile(tmp_path / METRICS)
    log.write({"step": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, before[1]))
    try:
        with pytest.raises(Failure, match=r"cannot write .*metrics\.jsonl: File too large"):
            log.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log.close()


def finished_run(tmp_path, count=4):
    known = written(tmp_path / METRICS, count)
    RunRecord({}, 20, logs={METRICS: known.sha256}).write(tmp_path)
    return tmp_path


def test_the_log_of_a_finished_run_is_read_whole_or_by_split(tmp_path):
    run_dir = finished_run(tmp_path)
    assert [line["step"] for line in read_log(run_dir, METRICS)] == [0, 1, 2, 3]
    assert [line["step"] for line in read_log(run_dir, METRICS, "val")] == [0, 2]
    assert read_log(run_dir, "diagnostics.jsonl") == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes().replace(b'"step": 2', b'"step": 3')),
        lambda path: path.write_bytes(path.read_bytes() + b"junk"),
        lambda path: path.write_bytes(path.read_bytes()[:-7]),
        lambda path: path.write_bytes(b"\xff" * 40),
        lambda path: path.unlink(),
    ],
    ids=["changed", "junk", "truncated", "bytes", "missing"],
)
def test_a_damaged_log_is_one_sentence(damage, tmp_path):
    run_dir = finished_run(tmp_path)
    damage(run_dir / METRICS)
    with pytest.raises(UserError, match=r"metrics\.jsonl.*; train the run again"):
        read_log(run_dir, METRICS)


def test_a_damaged_record_is_one_sentence(tmp_path):
    run_dir = finished_run(tmp_path)
    values = json.loads((run_dir / "run.json").read_text())
    values["logs"] = {}
    (run_dir / "run.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=r"run\.json is damaged"):
        read_log(run_dir, METRICS)
