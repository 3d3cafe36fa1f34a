"""Stores at a URL: what one machine collects another downloads, whatever the network does in between."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import fsspec
import numpy as np
import pytest

import manicap.core.remote
from manicap.atari.collect import collect
from manicap.atari.integrity import open_store, verify_store
from manicap.atari.ram import write_ram
from manicap.atari.store import FILES, StoreConfig, list_stores, write_manifest
from manicap.bench.cell import Outcome
from manicap.bench.executors import run_grid
from manicap.core.errors import Failure, UserError
from manicap.core.remote import ORIGIN, RemoteFailure, local_directory
from manicap.core.sealed import write_sealed
from tests.atari.networks import Network, register
from tests.bench.small_grid import small_grid

CONFIG = StoreConfig("pong", steps=160)
KINDS = ("memory", "file", "net", "object")
STORE_FILES = (*FILES[3], "manifest.json")


@pytest.fixture(autouse=True)
def network():
    register()
    manicap.core.remote.say_once.cache_clear()
    yield
    Network.restore()


@pytest.fixture(params=KINDS)
def url(request, tmp_path):
    return url_of(request.param, tmp_path)


@pytest.fixture(params=["net", "object"])
def breaking_url(request, tmp_path):
    return url_of(request.param, tmp_path)


def url_of(kind, tmp_path):
    return f"{kind}://{'/' * (kind == 'file')}{str(tmp_path / 'remote').strip('/')}"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Go to a machine, which has its own cache."""

    def go(name):
        monkeypatch.setenv("MANICAP_CACHE", str(tmp_path / name))

    go("a")
    return go


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The store, collected into a local directory."""
    return collect(CONFIG, tmp_path_factory.mktemp("collected"), quiet=True)


@pytest.fixture
def uploaded(collected, machine):
    """Put the store into the cache of machine a, as if collected there, and upload it."""

    def upload(url):
        shutil.copytree(collected.path, local_directory(url) / "pong" / collected.path.name)
        return gathered(url)

    return upload


@pytest.fixture
def never_play(monkeypatch):
    def forbid():
        monkeypatch.setattr("manicap.atari.collect._play_in_processes", lambda *_: pytest.fail("played"))

    return forbid


def gathered(url):
    return collect(CONFIG, url, quiet=True)


def at_remote(url):
    """Contents of all files at the URL, by name."""
    fs, root = fsspec.core.url_to_fs(url)
    return {path.removeprefix(f"{root}/"): fs.cat_file(path) for path in fs.find(root)}


def put(url, name, content):
    fs, root = fsspec.core.url_to_fs(url)
    fs.pipe_file(f"{root}/{name}", content)


def contents(store):
    return {f"pong/{store.path.name}/{name}": (store.path / name).read_bytes() for name in STORE_FILES}


def leavings(url):
    """Hidden files and directories of the cache beside its stores."""
    found = local_directory(url).glob("*/.*")
    return [path.name for path in found if not path.name.endswith(".lock")]


def test_what_one_machine_collects_another_downloads(url, collected, machine, never_play):
    first = gathered(url)
    assert contents(first) == contents(collected)
    # The remote has the layout of a data directory, and no scratch files.
    assert at_remote(url) == contents(first) | {".manicap": b"Data of manicap.\n"}
    machine("b")
    never_play()
    second = gathered(url)
    assert second.path != first.path
    assert contents(second) == contents(first)
    assert second.fingerprint == first.fingerprint
    assert verify_store(second.path) == []
    assert np.array_equal(second.frames[:], first.frames[:])
    assert leavings(url) == []


def test_a_cached_store_is_opened_without_the_remote(breaking_url, uploaded, never_play, capsys):
    uploaded(breaking_url)
    Network.restore()
    Network.is_down = True
    never_play()
    gathered(breaking_url)
    assert Network.asked == 0
    assert capsys.readouterr().err == ""


def test_a_store_without_its_manifest_is_not_whole(url, uploaded, machine):
    store = uploaded(url)
    fs, root = fsspec.core.url_to_fs(url)
    fs.rm_file(f"{root}/pong/{store.path.name}/manifest.json")
    put(url, f"pong/{store.path.name}/frames.zst", b"cut off")
    machine("b")
    assert contents(gathered(url)) == contents(store)  # played again
    assert at_remote(url).items() >= contents(store).items()  # and uploaded


@pytest.mark.parametrize("name", STORE_FILES)
def test_a_flipped_bit_at_the_remote_is_refused_by_the_name_of_its_file(name, url, uploaded, machine, never_play):
    store = uploaded(url)
    place = f"pong/{store.path.name}"
    damaged = bytearray(contents(store)[f"{place}/{name}"])
    damaged[len(damaged) // 2] ^= 1
    put(url, f"{place}/{name}", bytes(damaged))
    before = at_remote(url)
    machine("b")
    never_play()
    expected = rf"{url}/{place} is not a sound store: {name} (has changed|is damaged).*; nothing of it was kept"
    with pytest.raises(UserError, match=expected):
        gathered(url)
    assert list_stores(local_directory(url)) == []
    assert leavings(url) == []
    assert at_remote(url) == before
    machine("a")
    assert gathered(url).fingerprint == store.fingerprint  # the copy that is sound stays in use


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "manifest.json is damaged"),
        (b"{}", "manifest.json is damaged"),
        (b"[" * 100_000, "manifest.json is damaged"),
        (b"\xff\x00", "manifest.json is damaged"),
    ],
)
def test_what_is_not_a_manifest_is_refused(content, fault, url, uploaded, machine, never_play):
    store = uploaded(url)
    put(url, f"pong/{store.path.name}/manifest.json", content)
    machine("b")
    never_play()
    with pytest.raises(UserError, match=fault):
        gathered(url)


def test_the_store_of_another_config_is_refused(url, uploaded, machine, never_play):
    store = uploaded(url)
    manifest = json.loads((store.path / "manifest.json").read_text())
    del manifest["checksum"]
    manifest["config"]["seed"] = 1
    write_sealed(store.path / "other.json", manifest)
    put(url, f"pong/{store.path.name}/manifest.json", (store.path / "other.json").read_bytes())
    machine("b")
    never_play()
    with pytest.raises(UserError, match=r"manifest\.json is that of another store"):
        gathered(url)


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.95, 0.999])
def test_a_download_that_breaks_leaves_nothing_and_the_next_is_whole(
    fraction, breaking_url, uploaded, machine, never_play
):
    store = uploaded(breaking_url)
    machine("b")
    never_play()
    Network.bytes_left = int(fraction * sum(map(len, contents(store).values())))
    with pytest.raises(RemoteFailure, match=r"cannot (read|download) .*: the connection was reset"):
        gathered(breaking_url)
    assert list_stores(local_directory(breaking_url)) == []
    assert leavings(breaking_url) == []
    Network.bytes_left = None
    assert contents(gathered(breaking_url)) == contents(store)


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.95, 0.999])
def test_an_upload_that_breaks_is_told_and_taken_up_by_the_next_call(
    fraction, breaking_url, uploaded, collected, machine, never_play, capfd
):
    data = [content for name, content in contents(collected).items() if not name.endswith("manifest.json")]
    Network.bytes_left = int(fraction * sum(map(len, data)))
    store = uploaded(breaking_url)
    said = capfd.readouterr().err
    assert re.search(r"cannot upload to .*: the connection was reset; the copy in .* is used", said)
    assert said.count("\n") == 1
    Network.bytes_left = None
    there = at_remote(breaking_url)
    assert not any(name.endswith("manifest.json") for name in there)
    if breaking_url.startswith("net"):  # another machine may be reading: what has its name is whole
        assert {name: there[name] for name in there if "/." not in name}.items() <= contents(store).items()
    gathered(breaking_url)
    assert at_remote(breaking_url) == contents(store)
    never_play()
    machine("b")
    assert contents(gathered(breaking_url)) == contents(store)
    assert capfd.readouterr().err == ""


def test_an_upload_that_loses_bytes_silently_has_no_manifest(breaking_url, uploaded, capfd):
    Network.bytes_left, Network.loses = 10_000, True
    uploaded(breaking_url)
    assert re.search(
        r"cannot upload to .*: frames.zst has \d+ bytes there instead of \d+; it was cut", capfd.readouterr().err
    )
    assert not any(name.endswith("manifest.json") for name in at_remote(breaking_url))


def test_a_remote_that_cannot_be_reached_is_told_before_anything_is_played(breaking_url, machine, never_play):
    Network.is_down = True
    never_play()
    with pytest.raises(
        RemoteFailure, match=r"cannot read .*: could not connect; there is no copy of pong/\w+ in .*/a/"
    ):
        gathered(breaking_url)


def test_a_remote_that_breaks_before_the_play_is_told_before_it(breaking_url, machine, never_play, monkeypatch):
    def break_then_fetch(*_):
        Network.is_down = True
        return False

    monkeypatch.setattr("manicap.atari.collect.fetch_store", break_then_fetch)
    never_play()
    with pytest.raises(Failure, match="cannot write to .*: could not connect"):
        gathered(breaking_url)


def test_from_a_read_only_remote_stores_are_read_and_others_stay_in_the_cache(breaking_url, uploaded, machine, capfd):
    uploaded(breaking_url)
    before = at_remote(breaking_url)
    Network.is_read_only = True
    machine("b")
    assert gathered(breaking_url).fingerprint == json_fingerprint(before)
    assert capfd.readouterr().err == ""
    other = StoreConfig("pong", steps=80)
    stores = [collect(other, breaking_url, quiet=True) for _ in range(3)]
    assert len({store.path for store in stores}) == 1
    assert at_remote(breaking_url) == before
    # One sentence before the play and one after it, however often the store is asked for.
    first, second = capfd.readouterr().err.splitlines()
    assert re.fullmatch(
        r"cannot write to .*: no permission \(Access Denied\); what is collected stays in .*/b/.*", first
    )
    assert re.fullmatch(r"cannot upload to .*: no permission \(Access Denied\); the copy in .*/b/.* is used", second)
    Network.is_read_only = False
    collect(other, breaking_url, quiet=True)
    assert at_remote(breaking_url).items() >= contents(stores[0]).items()


def json_fingerprint(files):
    """The fingerprint of the store whose manifest is among the files, by its definition."""
    import hashlib

    [manifest] = [json.loads(content) for name, content in files.items() if name.endswith("manifest.json")]
    hashes = [piece[2] for name in FILES[3] for piece in manifest["files"][name]["slices"]]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()[:12]


def test_a_store_of_other_bytes_is_never_overwritten(url, uploaded, tmp_path, capfd):
    own = uploaded(url)
    # As if collected with another version of the emulator.
    other = tmp_path / "other" / own.path.name
    shutil.copytree(own.path, other)
    ram = np.array(own.ram)
    ram[0, 0] ^= 1
    write_ram(other / "ram.zst", ram)
    write_manifest(other, CONFIG, len(own.episodes))
    other = open_store(other)
    assert other.fingerprint != own.fingerprint
    for name, content in contents(other).items():
        put(url, name, content)
    (own.path / ORIGIN).unlink()  # as if it had not been uploaded yet
    before = at_remote(url)
    assert gathered(url).fingerprint == own.fingerprint
    said = capfd.readouterr().err
    assert f"holds other bytes (fingerprint {other.fingerprint})" in said
    assert "to use the remote's, remove this one" in said
    assert at_remote(url) == before
    shutil.rmtree(own.path)
    assert gathered(url).fingerprint == other.fingerprint


def test_damage_is_not_uploaded(url, uploaded, machine, capfd):
    store = uploaded(url)
    fs, root = fsspec.core.url_to_fs(url)
    fs.rm(f"{root}/pong", recursive=True)
    (store.path / ORIGIN).unlink()
    with (store.path / "ram.zst").open("r+b") as file:
        file.seek(100)
        byte = file.read(1)[0]
        file.seek(100)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(UserError, match=r"ram\.zst has changed"):
        gathered(url)
    assert not any("manifest.json" in name for name in at_remote(url))


def test_a_full_disk_stops_a_download(url, uploaded, small_disk, monkeypatch):
    total = sum(map(len, contents(uploaded(url)).values()))
    monkeypatch.setenv("MANICAP_CACHE", str(small_disk))
    local_directory(url)
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - total * 2 // 3))
    with pytest.raises(Failure, match=r"the files of pong/\w+ need 0.000 GB, but only 0.000 GB are free"):
        gathered(url)
    monkeypatch.setattr("manicap.atari.remote.require_space", lambda *_: None)  # somebody else takes the space
    with pytest.raises(Failure, match=r"cannot download .*: No space left on device"):
        gathered(url)
    assert list_stores(local_directory(url)) == []
    assert leavings(url) == []


def start(tmp_path, cache, bytes_left, url, *arguments):
    """manicap in a process of its own, on a network that pauses after so many bytes."""
    command = [sys.executable, "-m", "tests.atari.networks", str(bytes_left), *arguments, "--data-dir", url]
    environment = os.environ | {"MANICAP_CACHE": str(tmp_path / cache)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


COLLECT = ("collect", "--game", "pong", "--steps", "160")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("fraction", [0, 0.5, 0.99])
def test_a_kill_in_the_middle_of_an_upload_leaves_no_store_there(number, fraction, collected, machine, tmp_path):
    url = url_of("net", tmp_path)
    shutil.copytree(collected.path, local_directory(url) / "pong" / collected.path.name)
    bytes_left = int(fraction * sum((collected.path / name).stat().st_size for name in FILES[3]))
    process = start(tmp_path, "a", bytes_left, url, *COLLECT)
    assert process.stdout.readline() == "paused\n"
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 143)
    assert "Traceback" not in messages
    assert not any(name.endswith("manifest.json") for name in at_remote(url))
    store = gathered(url)  # on the same machine: whole in its cache, and uploaded now
    assert at_remote(url) == contents(store)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_in_the_middle_of_a_download_leaves_no_store_here(number, uploaded, machine, tmp_path, never_play):
    url = url_of("net", tmp_path)
    store = uploaded(url)
    process = start(tmp_path, "b", 30_000, url, *COLLECT)
    assert process.stdout.readline() == "paused\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    machine("b")
    never_play()
    assert list_stores(local_directory(url)) == []
    assert len(leavings(url)) == (1 if number == signal.SIGKILL else 0)
    assert contents(gathered(url)) == contents(store)
    assert leavings(url) == []


def test_two_machines_at_once_leave_one_whole_store(machine, tmp_path):
    url = url_of("net", tmp_path)
    processes = [start(tmp_path, name, 10**9, url, *COLLECT) for name in ("a", "b")]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    (path,) = list_stores(tmp_path / "remote")  # a remote on disk is a data directory
    assert verify_store(path) == []
    assert not [item for item in path.iterdir() if item.suffix == ".scratch"]


def test_jobs_of_a_grid_carry_the_url_to_other_machines(machine, tmp_path):
    url = url_of("file", tmp_path)
    sent = []

    class Elsewhere:
        """An executor that runs nothing here."""

        num_workers = 1

        def run(self, work, jobs):
            for job in jobs:
                sent.append(job)
                yield Outcome(job.cell.name, "done")

    run_grid(small_grid(), Elsewhere(), lambda job: None, tmp_path / "runs", local_directory(url), quiet=True)
    assert {job.data_dir for job in sent} == {url}
    machine("b")
    assert sent[0].local_data_dir.parent == tmp_path / "b"
