import hashlib
import os
import stat
import subprocess
import sys

import pytest

from manicap.core.errors import UserError
from manicap.core.files import atomic_file, atomic_write, exclusive_lock, remove_scratch, sha256_file, write_json


def test_what_is_no_regular_file_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UserError, match="fifo is not a regular file and cannot be written"):
        atomic_write(tmp_path / "fifo", b"x")
    with pytest.raises(UserError, match="is a directory and cannot be written"):
        atomic_write(tmp_path, b"x")
    assert [path.is_fifo() for path in tmp_path.iterdir()] == [True]


def test_atomic_write_replaces_the_whole_file_and_leaves_nothing_else(tmp_path):
    atomic_write(tmp_path / "f", b"old and long")
    atomic_write(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_failed_write_keeps_the_old_file(tmp_path):
    atomic_write(tmp_path / "f", b"old")
    with pytest.raises(TypeError):
        atomic_write(tmp_path / "f", "not bytes")  # type: ignore[arg-type]
    assert (tmp_path / "f").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_files_are_readable_by_others_as_the_umask_says(tmp_path):
    before = os.umask(0o022)
    try:
        atomic_write(tmp_path / "f", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o644


def test_sha256_file_is_the_sha256_of_its_bytes(tmp_path):
    (tmp_path / "f").write_bytes(b"abc" * 100_000)
    assert sha256_file(tmp_path / "f") == hashlib.sha256(b"abc" * 100_000).hexdigest()


def test_equal_values_give_equal_json_bytes(tmp_path):
    write_json(tmp_path / "a", {"x": 1, "y": [2]})
    write_json(tmp_path / "b", {"y": [2], "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_dead_holder_does_not_keep_the_lock(tmp_path):
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom manicap.core.files import exclusive_lock\n"
        "with exclusive_lock(Path(sys.argv[1]), lambda: None):\n    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "lock")]).returncode == -9
    waited = []
    with exclusive_lock(tmp_path / "lock", lambda: waited.append(True)):
        assert waited == []


WRITE_UNTIL_KILLED = (
    "import os, sys\nfrom pathlib import Path\nfrom manicap.core.files import atomic_file\n"
    "with atomic_file(Path(sys.argv[1])) as file:\n    file.write(b'half')\n    file.flush()\n"
    "    os.kill(os.getpid(), 9)\n"
)


def test_what_a_killed_writer_leaves_is_removed_and_nothing_else(tmp_path):
    target = tmp_path / "deep" / "weights.pt"
    assert subprocess.run([sys.executable, "-c", WRITE_UNTIL_KILLED, str(target)]).returncode == -9
    (leaving,) = target.parent.iterdir()
    others = [tmp_path / ".hidden", tmp_path / "mine.scratch", tmp_path / "deep" / "result.json"]
    for path in others:
        path.write_text("stays")
    assert remove_scratch(tmp_path) == [leaving]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(others)


def test_a_file_that_is_being_written_is_not_removed(tmp_path):
    with atomic_file(tmp_path / "f") as file:
        file.write(b"half")
        assert remove_scratch(tmp_path) == []
        file.write(b" and whole")
    assert (tmp_path / "f").read_bytes() == b"half and whole"


def test_a_file_written_again_clears_what_a_killed_writer_of_it_left_and_nothing_else(tmp_path):
    path = tmp_path / "a[1].json"
    leaving, others = tmp_path / ".a[1].json.x1y2z3.scratch", tmp_path / ".b.json.x1y2z3.scratch"
    leaving.write_text("half")
    others.write_text("half")
    with atomic_file(path) as outer:  # a second writer at work keeps its own
        outer.write(b"outer")
        atomic_write(path, b"inner")
    assert path.read_bytes() == b"outer"
    assert sorted(tmp_path.iterdir()) == sorted([path, others])
