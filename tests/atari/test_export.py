"""A life as a file: what was written is read back by other programs and compared with the store."""

import gc
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from manicap.atari.collect import collect
from manicap.atari.convert import convert_store
from manicap.atari.export import exportable_lives
from manicap.atari.integrity import open_store
from manicap.atari.store import StoreConfig
from manicap.cli.main import main
from manicap.core.errors import Failure, UserError
from manicap.play.export import Wanted, export_episode
from tests.atari.old_store import write_small_old_store
from tests.cli.test_main import call


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Lives of Breakout, from two lanes of 300 steps."""
    return collect(StoreConfig("breakout", steps=600, lanes=2), tmp_path_factory.mktemp("stores"), quiet=True)


@pytest.fixture
def ffmpeg():
    return pytest.importorskip("imageio_ffmpeg", reason="install manicap[video]").get_ffmpeg_exe()


def export_life(store, format, episode=None, out=None, **more):
    return export_episode(exportable_lives(store), Wanted(format, episode, out, **more))


def rows_of(store, life):
    episode = store.episodes[life]
    return np.arange(episode["start"], episode["start"] + episode["length"])


def enlarged(frames, scale):
    """Each pixel `scale` high and twice as wide, with three colours."""
    frames = frames if frames.ndim == 4 else np.repeat(frames[..., None], 3, 3)
    return frames.repeat(scale, 1).repeat(2 * scale, 2)


def decoded(ffmpeg, path, shape):
    command = [ffmpeg, "-loglevel", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    pixels = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(pixels, np.uint8).reshape(-1, *shape[1:])


@pytest.mark.parametrize("colour", [True, False])
def test_an_mp4_shows_the_frames_of_the_life(store, tmp_path, ffmpeg, colour):
    life, out = 1, tmp_path / "film.mp4"
    export_life(store, "mp4", life, out, colour=colour, quiet=True)
    rows = rows_of(store, life)
    expected = enlarged(store.colour_frames(rows) if colour else store.frames[rows], scale=2).astype(int)
    found = decoded(ffmpeg, out, expected.shape)
    assert found.shape == expected.shape
    errors = np.abs(found - expected)
    assert errors.max() <= 16
    assert errors.mean() < 1
    # Frames differ from each other by more than that: none is shown in another's place.
    changes = np.abs(np.diff(expected, axis=0)).max((1, 2, 3))
    assert changes[changes > 0].min() > 32
    said = subprocess.run([ffmpeg, "-i", out], capture_output=True, text=True).stderr
    assert re.search(r"Video: h264 \(High\).*yuv420p.*640x420.* 15 fps", said)
    assert f"{len(rows) / 15:.2f}"[:-1] in re.search(r"Duration: 00:00:0?(\S+),", said).group(1)


@pytest.mark.parametrize("colour", [True, False])
def test_a_gif_shows_the_frames_exactly_and_for_their_time(store, tmp_path, colour):
    image = pytest.importorskip("PIL.Image", reason="install manicap[images]")
    life, out = 0, tmp_path / "film.gif"
    export_life(store, "gif", life, out, colour=colour, scale=1, fps=30, quiet=True)
    rows = rows_of(store, life)
    expected = enlarged(store.colour_frames(rows) if colour else store.frames[rows], scale=1)
    shown, start = {}, 0
    with image.open(out) as film:
        for number in range(film.n_frames):
            film.seek(number)
            shown[start] = np.array(film.convert("RGB"))
            start += film.info["duration"]
    # In hundredths of a second, 30 per second begin at 0, 3 (of 3.3), 7 (of 6.7), 10, ...
    begins = [10 * round(100 * number / 30) for number in range(len(rows) + 1)]
    assert begins[:4] == [0, 30, 70, 100]
    assert start == begins[-1]
    assert set(shown) <= set(begins)
    for begin, frame in zip(begins, expected, strict=False):
        # A frame like the one before only prolongs it.
        assert np.array_equal(shown[max(time for time in shown if time <= begin)], frame)


@pytest.mark.parametrize("colour", [None, False])
def test_arrays_are_those_of_the_life(tmp_path, colour):
    store = collect(StoreConfig("pong", steps=80, lanes=2), tmp_path, quiet=True)
    out = tmp_path / "life.npz"
    export_life(store, "npz", 1, out, colour=colour, quiet=True)
    rows = np.arange(40, 80)  # one life for each lane: nobody wins in 40 steps
    with np.load(out, allow_pickle=False) as found:
        assert np.array_equal(found["frames"], store.frames[rows] if colour is False else store.colour_frames(rows))
        assert np.array_equal(found["ram"], store.ram[40:])
        for name in ("action", "reward", "lives", "ended"):
            assert np.array_equal(found[name], store.steps[name][40:])
            assert found[name].dtype == store.steps[name].dtype
        # Random play never takes the no-op; from the last frame nothing is played.
        assert set(found["action"][:-1]) <= {1, 2, 3, 4, 5}
        assert found["action"][-1] == 255
        assert found["action_names"].tolist() == ["NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"]
        # The table of AtariARI: the ball is at RAM 49 and 54.
        assert np.array_equal(found["label_ball_x"], store.ram[40:, 49])
        assert np.array_equal(found["label_ball_y"], store.ram[40:, 54])
    first = out.read_bytes()
    export_life(store, "npz", 1, out, colour=colour, force=True, quiet=True)
    assert out.read_bytes() == first


def test_a_store_without_colour_and_actions_is_exported_without(tmp_path):
    path = write_small_old_store(tmp_path)
    old = export_life(open_store(path), "npz", 1, tmp_path / "old.npz", quiet=True)
    new = export_life(convert_store(path, quiet=True), "npz", 1, tmp_path / "new.npz", quiet=True)
    assert old.path.read_bytes() == new.path.read_bytes()
    with np.load(new.path, allow_pickle=False) as found:
        assert not {"action", "reward", "lives", "ended", "action_names"} & {*found}
        # A bar of nine rows falls by ten rows a frame and becomes lighter.
        for row, frame in enumerate(found["frames"], start=10):
            expected = np.zeros((210, 160))
            expected[10 * row : 10 * row + 9] = 100 + row
            assert np.array_equal(frame, expected)
    for colourless in (open_store(path), open_store(write_small_old_store(tmp_path / "again"))):
        with pytest.raises(UserError, match="has no colour .*collect it again"):
            export_life(colourless, "npz", colour=True, out=tmp_path / "x.npz", quiet=True)
    assert not (tmp_path / "x.npz").exists()


def test_the_longest_life_is_written_here_by_default(store, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lengths = store.episodes["length"].tolist()
    longest = lengths.index(max(lengths))
    main(["data", "export", str(store.path), "--format", "npz"])
    out = tmp_path / f"breakout-life-{longest}.npz"
    size = out.stat().st_size / 1e6
    # 15 steps of 4 frames are a second of the console.
    expected = f"wrote {out.name}: {max(lengths)} frames, {max(lengths) / 15:.1f} seconds, {size:.2f} MB\n"
    assert capsys.readouterr().out == expected
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_the_ending_of_the_name_chooses_the_format(store, tmp_path):
    main(["data", "export", str(store.path), "--out", str(tmp_path / "life.NPZ")])
    assert set(np.load(tmp_path / "life.NPZ")) >= {"frames", "ram"}


def test_a_file_that_exists_is_replaced_only_by_force(store, tmp_path, capsys):
    out = tmp_path / "life.npz"
    out.write_bytes(b"mine")
    assert call("data", "export", str(store.path), "--out", str(out)) == 2
    assert f"{out} exists; choose another name with --out, or replace it with --force" in capsys.readouterr().err
    assert out.read_bytes() == b"mine"
    main(["data", "export", str(store.path), "--out", str(out), "--force"])
    assert "frames" in np.load(out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--episode", "99"], r"has \d+ lives \(0 to \d+\), got episode 99"),
        (["--episode", "-1"], "episode must not be negative, got -1"),
        (["--format", "avi"], r"unknown format 'avi' \(3 formats: gif, mp4, npz\)"),
        (["--out", "none/life.mp4"], "there is no directory none"),
        (["--out", ""], r"\. is a directory and cannot be written"),
        (["--out", "life.gif", "--format", "mp4"], "life.gif ends like a file of format gif, but --format is mp4"),
        (["--fps", "0"], "fps must be at least 1, got 0.0"),
        (["--fps", "nan"], "fps must be a finite number, got nan"),
        (["--fps", "60", "--format", "gif"], "a gif shows at most 50 frames per second, got 60"),
        (["--scale", "0"], "scale must be at least 1, got 0"),
        (["--scale", "16", "--format", "gif"], r"a gif of \d+ frames of 5120 x 3360 pixels is too large"),
        (["--colour", "--no-colour"], "give only one of --colour and --no-colour"),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(store, tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert call("data", "export", str(store.path), *words) == 2
    message = capsys.readouterr().err
    assert re.search(sentence, message)
    assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_into_the_store(store, tmp_path):
    before = sorted(path.name for path in store.path.iterdir())
    with pytest.raises(UserError, match="would be a file in the store"):
        export_life(store, "npz", out=store.path / "ram.npz", force=True, quiet=True)
    assert sorted(path.name for path in store.path.iterdir()) == before


@pytest.mark.parametrize("format", ["mp4", "gif", "npz"])
def test_a_full_disk_is_one_sentence_and_the_file_before_stays(store, small_disk, format):
    pytest.importorskip({"mp4": "imageio_ffmpeg", "gif": "PIL", "npz": "numpy"}[format])
    out = small_disk / f"life.{format}"
    out.write_bytes(b"mine")
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 2 * 4096))
    # A life of Breakout takes more than two pages in each format.
    with pytest.raises(Failure, match=r"cannot write .*life\.\w+: No space left on device$"):
        export_life(store, format, out=out, force=True, quiet=True)
    assert out.read_bytes() == b"mine"
    assert sorted(path.name for path in small_disk.iterdir()) == ["filler", out.name]
    gc.collect()  # the traceback keeps files open, and the disk in use


def test_a_killed_export_leaves_no_file_and_the_next_one_cleans_up(store, tmp_path, start_manicap):
    out = tmp_path / "life.gif"
    words = ("data", "export", store.path, "--out", out, "--scale", "4")
    process = start_manicap(*words)
    while not list(tmp_path.glob(".life.gif.*")):
        assert process.poll() is None, process.communicate()
    process.kill()
    process.wait()
    assert not out.exists()
    export_life(store, "gif", out=out, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_what_is_missing_is_named_with_what_to_install(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"requires pillow: install manicap\[images\]"):
        export_life(store, "gif", out=tmp_path / "a.gif", quiet=True)
    with pytest.raises(UserError, match=r"requires ffmpeg: install manicap\[video\]"):
        export_life(store, "mp4", out=tmp_path / "a.mp4", quiet=True)
    export_life(store, "npz", out=tmp_path / "a.npz", quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_the_ffmpeg_of_the_system_is_used_where_no_other_is_installed(store, tmp_path, monkeypatch, ffmpeg):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ffmpeg").symlink_to(ffmpeg)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    export_life(store, "mp4", out=tmp_path / "a.mp4", quiet=True)
    assert (tmp_path / "a.mp4").stat().st_size > 1000


def test_an_encoder_that_fails_says_why(store, tmp_path, monkeypatch):
    encoder = tmp_path / "ffmpeg"
    encoder.write_text("#!/bin/sh\necho no such codec >&2\nexit 3\n")
    encoder.chmod(0o755)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match="ffmpeg ended with code 3: no such codec"):
        export_life(store, "mp4", out=tmp_path / "a.mp4", quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["ffmpeg"]
