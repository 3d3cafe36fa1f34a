"""Stores shared by the whole suite, and threads fixed so that bytes can be compared."""

import subprocess

import pytest
import torch

from manicap.atari.collect import collect
from manicap.atari.store import StoreConfig
from tests.image_folder import write_image_folder


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """Where the suite's stores live; each is collected once."""
    return tmp_path_factory.mktemp("data")


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


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Small tensors gain nothing from a second thread, and bytes are compared between processes."""
    torch.set_num_threads(1)


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
