"""`manicap data list` and `data convert`: what they print, and their exit codes."""

import numpy as np
import pytest

from manicap.atari.collect import collect
from manicap.atari.integrity import open_store
from manicap.atari.store import StoreConfig
from manicap.cli.main import main
from tests.atari.old_store import write_old_store, write_small_old_store
from tests.cli.test_main import call

RAW = 210 * 160 + 128
"""Bytes of a gray frame and a RAM."""


@pytest.fixture
def breakout_path(tmp_path):
    return collect(StoreConfig("breakout", steps=80), tmp_path, quiet=True).path


def lines(capsys):
    return capsys.readouterr().out.splitlines()


def damage(path):
    with (path / "ram.npy").open("r+b") as file:
        file.seek(500)
        file.write(b"\x99\x98")


def test_the_list_says_how_many_times_smaller_a_store_is(tmp_path, breakout_path, capsys):
    old = write_small_old_store(tmp_path)
    main(["data", "list", "--data-dir", str(tmp_path)])
    head, new_line, old_line, last = lines(capsys)
    assert head.split() == ["store", "game", "frames", "lives", "MB", "ratio", "purpose", "seed", "policy"]
    size = sum(path.stat().st_size for path in breakout_path.iterdir() if path.suffix in (".npy", ".zst"))
    assert new_line.split()[0] == str(breakout_path)
    assert new_line.split()[2] == "80"
    assert new_line.split()[4:7] == [f"{size / 1e6:.1f}", f"{80 * RAW / size:.0f}", "x"]
    # 20 x 33,728 bytes, and headers.
    assert old_line.split()[:7] == [str(old), "pong", "20", "2", "0.7", "1", "x"]
    assert last == "1 store is not compressed: 'manicap data convert'"
    main(["data", "convert", "--data-dir", str(tmp_path)])
    capsys.readouterr()
    main(["data", "list", "--data-dir", str(tmp_path)])
    assert "not compressed" not in capsys.readouterr().out


def test_all_old_stores_are_converted_and_the_damaged_one_is_named(tmp_path, breakout_path, capsys):
    small = write_small_old_store(tmp_path)
    collected = collect(StoreConfig("seaquest", steps=80), tmp_path / "elsewhere", quiet=True)
    large = write_old_store(collected, tmp_path)
    damaged = tmp_path / "tennis" / "copy"
    damaged.parent.mkdir()
    large_copy = write_old_store(collected, tmp_path / "other")
    large_copy.rename(damaged)
    damage(damaged)
    kept = {path.name: path.read_bytes() for path in damaged.iterdir()}

    assert call("data", "convert", "--data-dir", str(tmp_path)) == 2
    output = capsys.readouterr()
    said = output.out.splitlines()
    size = sum(path.stat().st_size for path in large.iterdir() if path.suffix in (".npy", ".zst"))
    assert said[0].startswith(f"{small}: 0.7 MB -> 0.0 MB (")
    # 80 x 33,728 bytes are 2.7 MB.
    assert said[1] == f"{large}: 2.7 MB -> {size / 1e6:.1f} MB ({80 * RAW / size:.0f} x)"
    assert f"{damaged} is not a sound store: ram.npy has changed" in said[2]
    assert said[3].startswith("Converted stores have neither colour nor actions")
    assert len(said) == 4
    assert output.err.splitlines()[-1] == "manicap: 1 of 4 stores cannot be converted"
    assert [open_store(path).format for path in (small, large, breakout_path)] == [3, 3, 3]
    assert np.array_equal(open_store(large).frames, collected.frames)
    assert {path.name: path.read_bytes() for path in damaged.iterdir()} == kept


def test_nothing_to_convert_is_no_error(tmp_path, breakout_path, capsys):
    main(["data", "convert", "--data-dir", str(tmp_path)])
    assert lines(capsys) == [f"nothing to convert: every store in {tmp_path} is compressed"]
    main(["data", "convert", str(breakout_path)])
    assert lines(capsys) == [f"{breakout_path}: is already compressed"]
    main(["data", "convert", "--data-dir", str(tmp_path / "empty")])
    assert lines(capsys) == [f"no stores in {tmp_path / 'empty'}"]


def test_only_the_named_stores_are_converted(tmp_path, capsys):
    first, second = write_small_old_store(tmp_path / "a"), write_small_old_store(tmp_path / "b")
    assert call("data", "convert", str(first), str(tmp_path / "none")) == 2
    output = capsys.readouterr()
    assert f"there is no store at {tmp_path / 'none'}" in output.out
    assert [open_store(path).format for path in (first, second)] == [3, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
