"""A URL as the data directory of the commands."""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from manicap.atari.collect import collect
from manicap.atari.store import FILES, StoreConfig
from manicap.bench.cell import run_cell
from manicap.bench.executors import make_executor, run_grid
from manicap.cli.main import main
from manicap.core.remote import local_directory, say_once
from tests.atari.networks import Network, register
from tests.bench.small_grid import result_files, small_grid
from tests.cli.test_main import call


@pytest.fixture(autouse=True)
def network():
    register()
    say_once.cache_clear()
    yield
    Network.restore()


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path / 'remote'}"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Go to a machine, which has its own cache."""

    def go(name):
        monkeypatch.setenv("MANICAP_CACHE", str(tmp_path / name))

    go("a")
    return go


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two small stores of Pong, in a local directory."""
    directory = tmp_path_factory.mktemp("data")
    return [collect(StoreConfig("pong", steps=80, seed=seed), directory, quiet=True) for seed in (0, 1)]


def run(tmp_path, cache, *arguments, **variables):
    """`manicap ARGUMENTS` in a process of its own, on a machine with its own cache."""
    environment = os.environ | {"MANICAP_CACHE": str(tmp_path / cache)} | variables
    command = [sys.executable, "-m", "manicap", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)


def fingerprint(manifest):
    """By its definition: sha256 over the hashes of all slices."""
    hashes = [piece[2] for name in FILES[3] for piece in manifest["files"][name]["slices"]]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()[:12]


def test_one_machine_trains_on_what_another_collected(url, tmp_path):
    done = run(tmp_path, "a", "collect", "--game", "pong", "--steps", "640", "--data-dir", url)
    assert done.returncode == 0, done.stderr
    assert "uploading pong/" in done.stderr
    (path,) = (tmp_path / "remote/pong").iterdir()
    small = ("--collect-steps", "640", "--max-steps", "2", "--batch-size", "6", "--units", "8")
    names = ("--name", "tiny", "--runs-dir", tmp_path / "runs")
    done = run(tmp_path, "b", "pretrain", "--game", "pong", "--method", "st-dim", *small, *names, MANICAP_DATA=url)
    assert done.returncode == 0, done.stderr
    assert "downloading pong/" in done.stderr
    assert "collecting" not in done.stderr
    identity = json.loads((tmp_path / "runs/tiny/encoder.json").read_text())["identity"]
    assert identity["data"] == fingerprint(json.loads((path / "manifest.json").read_text()))
    # No directory was made of the URL taken for a path.
    assert {item.name for item in tmp_path.iterdir()} == {"a", "b", "remote", "runs"}


def test_a_grid_uploads_its_stores_and_the_next_machine_need_not_play(url, machine, tmp_path, monkeypatch):
    grid = small_grid(methods=["random-cnn"])
    serial = make_executor("serial")
    assert run_grid(grid, serial, run_cell, tmp_path / "runs-a", local_directory(url), quiet=True).done == 1
    assert len(list((tmp_path / "remote/pong").iterdir())) == 2  # one to learn from, one to probe
    machine("b")
    monkeypatch.setattr("manicap.atari.collect._play_in_processes", lambda *_: pytest.fail("played"))
    assert run_grid(grid, serial, run_cell, tmp_path / "runs-b", local_directory(url), quiet=True).done == 1
    assert result_files(grid, tmp_path / "runs-a") == result_files(grid, tmp_path / "runs-b")


def test_push_list_pull_remove(url, stores, machine, tmp_path, capsys):
    paths = [str(store.path) for store in stores]
    main(["data", "push", paths[0], paths[1], "--data-dir", url])
    assert capsys.readouterr().out == f"{paths[0]}: uploaded\n{paths[1]}: uploaded\n"
    main(["data", "push", paths[0], "--data-dir", url])
    assert capsys.readouterr().out == f"{paths[0]}: was there already\n"

    main(["data", "list", "--data-dir", url])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["only", "at", url, "game", "frames", "lives", "MB", "purpose", "seed", "policy"]
    places = [f"pong/{store.path.name}" for store in stores]
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    lives = [str(len(store.episodes)) for store in stores]
    assert rows == {places[s]: ["pong", "80", lives[s], "0", "pretrain", str(s), "random"] for s in (0, 1)}

    main(["data", "pull", places[1], "--data-dir", url])
    pulled = local_directory(url) / places[1]
    assert capsys.readouterr().out == f"{pulled}\n"
    main(["data", "list", "--data-dir", url])
    here, there = capsys.readouterr().out.split("\n\n")
    assert [line.split()[0] for line in here.splitlines()[1:]] == [str(pulled)]
    assert [line.split()[0] for line in there.splitlines()[1:]] == [places[0]]
    main(["data", "verify", "--data-dir", url])
    assert capsys.readouterr().out == f"{pulled}: sound\n"

    main(["data", "remove", str(pulled)])
    assert capsys.readouterr().out == f"removed {pulled}; {url}/{places[1]} is still there\n"
    assert (tmp_path / "remote" / places[1] / "manifest.json").is_file()
    main(["data", "pull", "pong", f"{url}/{places[0]}", "--data-dir", url])
    assert sorted(capsys.readouterr().out.split()) == sorted(str(local_directory(url) / place) for place in places)
    assert call("data", "pull", "breakout", "--data-dir", url) == 2
    assert f"there is no store breakout at {url}" in capsys.readouterr().err


def test_damage_of_one_store_does_not_keep_the_others(url, stores, machine, tmp_path, capsys):
    data = tmp_path / "data"
    shutil.copytree(stores[0].path.parent.parent, data)
    first, second = sorted((data / "pong").glob("[!.]*"))
    (first / "frames.zst").write_bytes(b"")
    assert call("data", "push", str(data), "--data-dir", url) == 2  # a data directory: all of its stores
    output = capsys.readouterr()
    assert f"{first} is not a sound store: frames.zst has 0 bytes" in output.out
    assert f"{second}: uploaded" in output.out
    assert output.err.splitlines()[-1] == "manicap: a store was not uploaded"

    (tmp_path / "remote/pong" / second.name / "ram.zst").unlink()
    machine("b")
    assert call("data", "pull", "--data-dir", url) == 2
    output = capsys.readouterr()
    assert "is not a sound store: a file is missing" in output.out
    assert "remove it there" in output.out
    assert output.err.splitlines()[-1] == "manicap: a store was not downloaded"


def test_where_nothing_is_to_be_transferred_it_is_said(url, machine, capsys):
    main(["data", "push", "--data-dir", url])
    assert capsys.readouterr().out == f"no stores in {local_directory(url)}, the cache of {url}\n"
    main(["data", "pull", "--data-dir", url])
    assert capsys.readouterr().out == f"no stores at {url}\n"


def test_what_was_collected_while_the_url_was_read_only_can_be_pushed(stores, machine, tmp_path, capfd):
    url = f"net://{str(tmp_path / 'remote').strip('/')}"
    place = f"pong/{stores[0].path.name}"
    shutil.copytree(stores[0].path, local_directory(url) / place)
    Network.is_read_only = True
    assert call("collect", "--game", "pong", "--steps", "80", "--data-dir", url) == 1
    said = capfd.readouterr().err.splitlines()
    assert said[-2].startswith(f"cannot upload to {url}/{place}: no permission (Access Denied); the copy in ")
    assert said[-1] == (f"manicap: the store is not at {url}; to upload it, run 'manicap data push --data-dir {url}'")
    assert call("data", "push", "--data-dir", url) == 1
    assert "cannot upload" in capfd.readouterr().err
    Network.is_read_only = False
    main(["data", "push", "--data-dir", url])
    main(["collect", "--game", "pong", "--steps", "80", "--data-dir", url])
    assert f"{place}: uploaded" in capfd.readouterr().out


def test_data_list_shows_the_cache_if_the_url_cannot_be_reached(stores, machine, tmp_path, capsys):
    url = f"net://{str(tmp_path / 'remote').strip('/')}"
    main(["data", "push", str(stores[0].path), "--data-dir", url])
    main(["data", "pull", "--data-dir", url])
    Network.is_down = True
    capsys.readouterr()
    main(["data", "list", "--data-dir", url])
    said = capsys.readouterr()
    assert said.err == f"cannot list {url}: could not connect; what follows is the cache\n"
    assert len(said.out.splitlines()) == 2
    assert call("data", "pull", "--data-dir", url) == 1
    assert capsys.readouterr().err == f"manicap: cannot list {url}: could not connect\n"


def test_a_damaged_store_at_the_url_is_listed_as_such(url, stores, machine, tmp_path, capsys):
    main(["data", "push", *(str(store.path) for store in stores), "--data-dir", url])
    place = f"pong/{stores[0].path.name}"
    (tmp_path / "remote" / place / "manifest.json").write_text("{}")
    assert call("data", "list", "--data-dir", url) == 2
    said = capsys.readouterr()
    assert f"pong/{stores[1].path.name}" in said.out
    assert f"{url}/{place} is not a sound store: manifest.json is damaged" in said.out
    assert f"1 store at {url} is damaged" in said.err
    assert call("data", "pull", "--data-dir", url) == 2
    assert (local_directory(url) / "pong" / stores[1].path.name).is_dir()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["collect", "--game", "pong", "--data-dir", "s4://b/x"], "unknown scheme 's4'; did you mean 's3'?"),
        (["data", "list", "--data-dir", "s3://"], "names no directory; write it as s3://bucket/folder"),
        (["data", "push", "--data-dir", "data"], "data is a local directory; give a URL"),
        (["data", "pull", "--data-dir", "data"], "data is a local directory; give a URL"),
        (["run", "--game", "pong", "--data-dir", "ftp://me:secret@host/x"], "a password in a URL"),
        (["bench", "run", "laptop", "--data-dir", "s4://b/x"], "unknown scheme 's4'"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, sentence, machine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call(*arguments) == 2
    message = capsys.readouterr().err
    assert sentence in message
    assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
