"""The published archive: unpacked, downloaded from a real server, and every way it can be wrong."""

import http.server
import shutil
import sys
import threading
from functools import partial

import numpy as np
import pytest

from manicap.core.errors import Failure, UserError
from manicap.images.cifar10 import open_cifar10
from tests.images.files import CIFAR10, pack, write_cifar10

UNREACHABLE = "http://127.0.0.1:9/cifar.tar.gz"  # the discard port: nobody listens


@pytest.fixture
def source(tmp_path):
    """(images written, directory they are in)."""
    return write_cifar10(tmp_path / "source"), tmp_path / "source"


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Serves a directory; gives its address."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    root = tmp_path / "served"
    root.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=root)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield root, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_archive_put_into_the_directory_is_unpacked(tmp_path, source):
    written, directory = source
    content, layout = pack(directory, CIFAR10)
    target = tmp_path / "data"
    target.mkdir()
    (target / layout.archive.file_name).write_bytes(content)
    test = open_cifar10(target, "test", layout=layout, quiet=True)
    assert np.array_equal(test.images[:], written["test_batch"][1])
    assert test.fingerprint == open_cifar10(directory, "test", layout=CIFAR10).fingerprint


def test_an_absent_archive_is_downloaded_once(tmp_path, source, serve, capsys):
    (root, address), (written, directory) = serve, source
    content, layout = pack(directory, CIFAR10, f"{address}/cifar.tar.gz")
    (root / "cifar.tar.gz").write_bytes(content)
    train = open_cifar10(tmp_path / "data", "train", layout=layout)
    assert np.array_equal(train.images[:20], written["data_batch_1"][1])
    assert "downloading cifar.tar.gz: " in capsys.readouterr().err
    (root / "cifar.tar.gz").unlink()
    test = open_cifar10(tmp_path / "data", "test", layout=layout, quiet=True)  # from the archive that is there
    assert np.array_equal(test.images[:], written["test_batch"][1])


def test_without_a_network_the_message_says_what_to_put_where(tmp_path, source, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    _, layout = pack(source[1], CIFAR10, UNREACHABLE)
    with pytest.raises(Failure) as error:
        open_cifar10(tmp_path / "data", "test", layout=layout, quiet=True)
    for piece in (
        "cifar.tar.gz could not be downloaded (no connection to 127.0.0.1)",
        "data/cifar-10-batches-bin lacks test_batch.bin, batches.meta.txt; ",
        "put the archive cifar.tar.gz (162 MB",
        f"into {tmp_path / 'data'}",
    ):
        assert piece in str(error.value)


def test_a_download_with_another_checksum_leaves_nothing(tmp_path, source, serve):
    root, address = serve
    content, layout = pack(source[1], CIFAR10, f"{address}/cifar.tar.gz")
    (root / "cifar.tar.gz").write_bytes(content[:-100])
    with pytest.raises(Failure, match="could not be downloaded.*hash"):
        open_cifar10(tmp_path / "data", "test", layout=layout, quiet=True)
    assert [path.name for path in (tmp_path / "data").iterdir()] == [".lock"]


def test_an_address_without_the_file_is_told(tmp_path, source, serve):
    _, layout = pack(source[1], CIFAR10, f"{serve[1]}/cifar.tar.gz")
    with pytest.raises(Failure, match="could not be downloaded .404 Client Error"):
        open_cifar10(tmp_path / "data", "test", layout=layout, quiet=True)


def test_a_truncated_archive_is_refused_by_its_md5(tmp_path, source):
    content, layout = pack(source[1], CIFAR10)
    path = tmp_path / layout.archive.file_name
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=rf"\({len(content) // 2} bytes\) has md5 .* truncated or a different file"):
        open_cifar10(tmp_path, "test", layout=layout, quiet=True)
    assert not (tmp_path / "cifar-10-batches-bin").exists()


def test_an_archive_that_lacks_a_file_is_refused(tmp_path, source):
    (source[1] / "cifar-10-batches-bin" / "test_batch.bin").unlink()
    content, layout = pack(source[1], CIFAR10)
    (tmp_path / layout.archive.file_name).write_bytes(content)
    with pytest.raises(UserError, match="does not contain test_batch.bin"):
        open_cifar10(tmp_path, "test", layout=layout, quiet=True)


def test_only_the_named_files_leave_the_archive(tmp_path, source):
    (source[1] / "cifar-10-batches-bin" / "stranger.sh").write_text("echo")
    content, layout = pack(source[1], CIFAR10)
    target = tmp_path / "data"
    target.mkdir()
    (target / layout.archive.file_name).write_bytes(content)
    open_cifar10(target, "test", layout=layout, quiet=True)
    names = {path.name for path in (target / "cifar-10-batches-bin").iterdir()}
    assert names == {"test_batch.bin", "batches.meta.txt", "manifest.json"}


def test_without_pooch_the_extra_is_named(tmp_path, source, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    _, layout = pack(source[1], CIFAR10, UNREACHABLE)
    with pytest.raises(UserError, match=r"install manicap\[images\]"):
        open_cifar10(tmp_path / "data", "test", layout=layout)


def test_files_already_there_need_neither_network_nor_archive(tmp_path, source):
    _, layout = pack(source[1], CIFAR10, UNREACHABLE)
    shutil.copytree(source[1], tmp_path / "data")
    assert len(open_cifar10(tmp_path / "data", "train", layout=layout)) == 100
