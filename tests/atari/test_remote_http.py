"""Stores behind a web server, which can only be read. `pip install aiohttp`."""

import http.server
import os
import subprocess
import sys
import threading
from functools import partial

import pytest

from manicap.atari.collect import collect
from manicap.atari.integrity import open_store
from manicap.atari.store import StoreConfig, list_stores

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.slow


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def url(tmp_path):
    """Of a web server for the directory `data`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "data")))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def manicap(tmp_path, *arguments):
    environment = os.environ | {"MANICAP_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "manicap", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_stores_are_read_from_a_web_server_and_others_stay_in_the_cache(url, tmp_path):
    published = collect(StoreConfig("pong", steps=80), tmp_path / "data", quiet=True)
    listed = manicap(tmp_path, "data", "list", "--data-dir", url)
    assert f"pong/{published.path.name}" in listed.stdout
    done = manicap(tmp_path, "collect", "--game", "pong", "--steps", "80", "--data-dir", url)
    assert done.returncode == 0, done.stderr
    assert "collecting" not in done.stderr
    (cache,) = (tmp_path / "cache").iterdir()
    (path,) = list_stores(cache)
    assert open_store(path).fingerprint == published.fingerprint

    done = manicap(tmp_path, "collect", "--game", "pong", "--steps", "160", "--data-dir", url)
    assert done.returncode == 1  # it is not at the URL
    assert f"cannot write to {url}: 501" in done.stderr
    assert "what is collected stays in" in done.stderr
    assert len(list_stores(cache)) == 2
    assert len(list_stores(tmp_path / "data")) == 1
