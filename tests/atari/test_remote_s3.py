"""Stores on an S3 server: moto's, which is real HTTP and in this process. `pip install s3fs 'moto[s3,server]'`."""

import logging
import os
import subprocess
import sys
import urllib.request

import pytest

from manicap.atari.integrity import verify_store
from manicap.atari.store import FILES, list_stores
from manicap.core.remote import Remote

moto_server = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")
pytest.importorskip("s3fs")

pytestmark = pytest.mark.slow
URL = "s3://bucket/manicap"


class Server:
    """An S3 server, and machines that know it."""

    def __init__(self, directory):
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        self.directory = directory
        address = f"http://127.0.0.1:{self.server.get_host_and_port()[1]}"
        # What moto holds belongs to the process: forget the buckets of earlier servers.
        urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
        self.environment = os.environ | keys | {"AWS_ENDPOINT_URL": address}
        self.client = boto3.client(
            "s3",
            endpoint_url=address,
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
        )

    def manicap(self, machine, *arguments):
        command = [sys.executable, "-m", "manicap", *arguments, "--data-dir", URL]
        environment = self.environment | {"MANICAP_CACHE": str(self.directory / machine)}
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def objects(self):
        found = self.client.list_objects_v2(Bucket="bucket").get("Contents", [])
        return {
            entry["Key"]: self.client.get_object(Bucket="bucket", Key=entry["Key"])["Body"].read() for entry in found
        }


@pytest.fixture
def server(tmp_path):
    started = Server(tmp_path)
    started.client.create_bucket(Bucket="bucket")
    yield started
    started.server.stop()


COLLECT = ("collect", "--game", "pong", "--steps", "4000")


def cached(server, machine):
    """The only store in a machine's cache."""
    (directory,) = (server.directory / machine).iterdir()
    (path,) = list_stores(directory)
    return path


def test_what_one_machine_collects_another_downloads_from_s3(server):
    done = server.manicap("a", *COLLECT)
    assert done.returncode == 0, done.stderr
    assert "uploading pong/" in done.stderr
    first = cached(server, "a")
    prefix = f"manicap/pong/{first.name}"
    files = {f"{prefix}/{name}": (first / name).read_bytes() for name in (*FILES[3], "manifest.json")}
    assert server.objects() == files | {"manicap/.manicap": b"Data of manicap.\n"}

    listed = server.manicap("b", "data", "list")
    assert f"pong/{first.name}" in listed.stdout
    done = server.manicap("b", *COLLECT)
    assert done.returncode == 0, done.stderr
    assert "downloading pong/" in done.stderr
    assert "collecting" not in done.stderr
    second = cached(server, "b")
    assert {name: (second / name).read_bytes() for name in FILES[3]} == {
        name: (first / name).read_bytes() for name in FILES[3]
    }
    assert verify_store(second) == []

    server.server.stop()
    assert server.manicap("b", *COLLECT).returncode == 0
    done = server.manicap("c", *COLLECT)
    assert done.returncode == 1
    assert done.stderr.startswith(f"manicap: cannot read {URL}/pong/{first.name}/manifest.json: Could not connect")
    assert done.stderr.count("\n") == 1


def test_a_flipped_bit_on_s3_is_refused(server):
    assert server.manicap("a", *COLLECT).returncode == 0
    key = f"manicap/pong/{cached(server, 'a').name}/frames.zst"
    damaged = bytearray(server.objects()[key])
    damaged[len(damaged) // 2] ^= 1
    server.client.put_object(Bucket="bucket", Key=key, Body=bytes(damaged))
    done = server.manicap("b", *COLLECT)
    assert done.returncode == 2
    assert "is not a sound store: frames.zst has changed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bucket_that_does_not_exist_is_told_before_the_play(server):
    server.client.delete_bucket(Bucket="bucket")
    done = server.manicap("a", *COLLECT)
    assert done.returncode == 1
    assert done.stderr == f"manicap: cannot write to {URL}: not found (The specified bucket does not exist)\n"


def test_without_credentials_one_sentence_says_so(server):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del server.environment[name]
    server.environment["AWS_EC2_METADATA_DISABLED"] = "true"
    done = server.manicap("a", *COLLECT)
    assert done.returncode == 1
    assert "Unable to locate credentials" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_others_upload_is_seen_at_once(server, monkeypatch):
    # s3fs remembers listings: a process that has looked once must still see what came later.
    for name, value in server.environment.items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    remote = Remote(URL)
    server.client.put_object(Bucket="bucket", Key="manicap/pong/a/ram.zst", Body=b"1")
    assert remote.folders() == ["pong"]
    assert remote.sizes("pong") == {"pong/a/ram.zst": 1}
    assert remote.read("pong/a/manifest.json") is None
    server.client.put_object(Bucket="bucket", Key="manicap/pong/a/manifest.json", Body=b"{}")
    server.client.put_object(Bucket="bucket", Key="manicap/boxing/a/manifest.json", Body=b"{}")
    assert remote.read("pong/a/manifest.json") == b"{}"
    assert remote.sizes("pong") == {"pong/a/ram.zst": 1, "pong/a/manifest.json": 2}
    assert remote.folders() == ["boxing", "pong"]
