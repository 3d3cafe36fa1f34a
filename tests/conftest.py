"""Stores shared by the whole suite, threads fixed so that bytes can be compared, tests dealt to workers."""

import gc
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from manicap.atari.collect import collect
from manicap.atari.store import StoreConfig
from tests.image_folder import write_image_folder

# For every process that a test starts: a worker of pytest-xdist has one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Runs are killed and resumed with a checkpoint after every step: a disk in memory takes them without waiting.
MEMORY_DISK, ENOUGH_BYTES = Path("/dev/shm"), 8 * 2**30
if MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > ENOUGH_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))

# Importing all test modules makes half a million objects that stay: looking through them again and again for garbage
# took a quarter of the collection of every worker.
gc.disable()

BOTH_CORES = ("test_ray", "test_executors", "in_browser", "train/test_distributed")
"""Tests of several processes at a time: one worker takes them all, first, so that they do not meet each other."""
LONG = ("train/test_resume", "jobs/test_run", "train/test_loop", "train/test_image_runs", "campaign/")
"""Modules that take the most time: the other worker begins with them, so that both end together."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (not _is_any(BOTH_CORES, item.nodeid), not _is_any(LONG, item.nodeid)))


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A module is one worker's, so that its fixtures are made once; BOTH_CORES count as one module.

    The marker `xdist_group`, which is made for this, has no effect with pytest 9.2 and pytest-xdist 3.8.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByModule(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return "both cores" if _is_any(BOTH_CORES, nodeid) else super()._split_scope(nodeid)

    return ByModule(config, log)


def _is_any(names, nodeid):
    return any(name in nodeid.split("::")[0] for name in names)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """One thread, unless OMP_NUM_THREADS asks for more: bytes are compared between processes, which all obey it.

    Before every test, since a job that an earlier one ran in this process chose its own.
    """
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """Where the suite's stores live; each is collected once, whichever worker needs it first.

    MANICAP_TEST_STORES keeps them for the next call too.
    """
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path = Path(os.environ.get("MANICAP_TEST_STORES", common / "stores"))
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="session")
def pong_store(data_dir):
    """2,400 real frames of Pong, 300 a lane."""
    return collect(StoreConfig("pong", steps=2400), data_dir, quiet=True)


@pytest.fixture(scope="session")
def breakout_store(data_dir):
    """2,400 real frames of Breakout: many short lives."""
    return collect(StoreConfig("breakout", steps=2400), data_dir, quiet=True)


@pytest.fixture(scope="session")
def image_folder(tmp_path_factory):
    """96 training and 32 test images of four classes, 16 x 16."""
    pytest.importorskip("PIL", reason="pillow is not installed: pip install 'manicap[images]'")
    return write_image_folder(tmp_path_factory.mktemp("images") / "stripes")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MB."""
    target = tmp_path / "disk"
    target.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", target], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a tmpfs: {mounted.stderr.strip()}")
    yield target
    subprocess.run(["umount", target], check=True)
