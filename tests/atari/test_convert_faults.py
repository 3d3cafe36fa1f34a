"""A conversion that is killed or finds no room, done for real: there is a whole store at every moment."""

import gc
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from manicap.atari.collect import collect
from manicap.atari.convert import convert_store
from manicap.atari.integrity import open_store, verify_store
from manicap.atari.store import StoreConfig
from manicap.cli.main import main
from manicap.core.errors import Failure
from tests.atari.old_store import write_old_store
from tests.atari.test_convert import leavings

SMALL = StoreConfig("pong", steps=40, lanes=2)

# Converts copies of a store, each in a process that an audit hook ends by SIGKILL one change of the disk later than the
# one before, until a process comes to its end.
KILLED_EVERYWHERE = """
import os, shutil, signal, sys
from pathlib import Path
from manicap.atari.convert import convert_store

def strike(event, arguments):
    global left
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if writes or event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir"):
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

source, target, left, code = Path(sys.argv[1]), Path(sys.argv[2]), 0, -signal.SIGKILL
while code == -signal.SIGKILL:
    path = target / str(left) / "pong" / source.name
    shutil.copytree(source, path)
    if not (child := os.fork()):
        sys.addaudithook(strike)
        convert_store(path, quiet=True)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left += 1
sys.exit(code)
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return collect(SMALL, tmp_path_factory.mktemp("collected"), quiet=True)


def test_a_conversion_killed_before_any_change_of_the_disk_leaves_a_store(small, tmp_path):
    source = write_old_store(small, tmp_path / "source")
    fingerprint = open_store(source).fingerprint
    subprocess.run([sys.executable, "-c", KILLED_EVERYWHERE, source, tmp_path / "killed"], check=True)
    formats = []
    for number in range(len(list((tmp_path / "killed").iterdir()))):
        data_dir = tmp_path / "killed" / str(number)
        path = data_dir / "pong" / source.name
        store = open_store(path)
        assert np.array_equal(store.frames, small.frames)
        assert store.fingerprint == fingerprint
        formats.append(store.format)
        if number % 2:
            assert collect(SMALL, data_dir, quiet=True).format == store.format
            # Time stamps that were being written are removed when the next ones are.
            assert [name for name in leavings(path) if not name.endswith(".scratch")] == []
        new = convert_store(path, quiet=True)
        assert (new.format, new.fingerprint) == (3, fingerprint)
        assert verify_store(path) == []
        assert leavings(path) == []
    # One change makes it a store of format 3; before it are at least a directory, six files and three renames, after it
    # at least the removal of the old frames and of that directory.
    assert formats == sorted(formats)
    assert formats.count(2) > 10
    assert formats.count(3) > 2


@pytest.mark.parametrize("heal", ["collect", "convert"])
def test_a_killed_command_leaves_the_old_store_and_the_next_one_cleans_up(
    pong_store, tmp_path, start_manicap, capsys, heal
):
    path = write_old_store(pong_store, tmp_path)
    fingerprint = open_store(path).fingerprint
    process = start_manicap("data", "convert", "--data-dir", tmp_path)
    limit = time.monotonic() + 60
    while not any((tmp_path / "pong").glob(".*.building-*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
    process.kill()
    process.wait()
    store = open_store(path)
    assert (store.format, store.fingerprint) == (2, fingerprint)
    assert leavings(path) == [f".{path.name}.building-{process.pid}"]
    if heal == "collect":
        assert collect(pong_store.config, tmp_path, quiet=True).format == 2
    else:
        main(["data", "convert", str(path)])
        assert open_store(path).format == 3
    assert leavings(path) == []
    assert open_store(path).fingerprint == fingerprint


def exit_code(*arguments):
    try:
        main([str(word) for word in arguments])
    except SystemExit as end:
        return end.code
    return 0


@pytest.fixture
def full_disk(small_disk):
    """Fills a disk of 4 MB but for some bytes."""

    def fill(leave):
        (small_disk / "filler").unlink(missing_ok=True)
        free = shutil.disk_usage(small_disk).free
        (small_disk / "filler").write_bytes(bytes(free - leave))

    yield fill
    gc.collect()  # the traceback of an error keeps files open, and the disk in use


def test_a_conversion_that_does_not_fit_is_refused_before_a_byte_of_it_is_written(small, small_disk, full_disk):
    # At most 2,500 bytes a step: 40 take up to 100,000.
    path = write_old_store(small, small_disk)
    full_disk(leave=80_000)
    with pytest.raises(Failure, match=r"40 compressed frames need 0.000 GB, but only 0.000 GB are free"):
        convert_store(path, quiet=True)
    assert leavings(path) == []
    assert verify_store(path) == []


def test_a_disk_that_fills_up_on_the_way_leaves_the_old_store(small, small_disk, full_disk, monkeypatch, capsys):
    monkeypatch.setattr("manicap.atari.convert.require_space", lambda *_: None)  # somebody else takes the space
    path = write_old_store(small, small_disk)
    before = {item.name: item.read_bytes() for item in path.iterdir()}
    pages = 0
    full_disk(leave=0)
    while code := exit_code("data", "convert", path):
        assert code == 1
        output = capsys.readouterr()
        assert "No space left on device" in output.out
        assert output.err.splitlines()[-1] == "manicap: 1 of 1 stores cannot be converted"
        assert "Traceback" not in output.err
        assert {name: (path / name).read_bytes() for name in before} == before
        assert leavings(path) == []
        (path / ".verified.json").unlink(missing_ok=True)
        pages += 1
        full_disk(leave=4096 * pages)
    # Of 40 frames remain at least the RAM of 40 x 128 bytes, the frames, the steps and the manifest: a page each.
    assert pages > 4
    assert open_store(path).format == 3
    assert np.array_equal(open_store(path).frames, small.frames)
