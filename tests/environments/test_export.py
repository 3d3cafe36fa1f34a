"""An episode as a file: other programs read from it what the store holds, and manicap makes the same store of it."""

import subprocess

import numpy as np
import pytest

from manicap.cli.main import main
from manicap.core.errors import UserError
from manicap.environments.export import exportable_episodes
from manicap.environments.importing import record_from
from manicap.play.export import Wanted, export_episode

SILENT = {"actions", "rewards", "ended", "episode", "frames"}


def export(store, out, **wanted):
    return export_episode(exportable_episodes(store), Wanted(out.suffix[1:], out=out, quiet=True, **wanted))


def rows_of(store, number):
    episode = store.episodes[number]
    return np.arange(episode["start"], episode["start"] + episode["length"])


def test_arrays_are_those_of_the_episode(record_here, tmp_path):
    store = record_here("Walk")
    export(store, tmp_path / "play.npz", episode=2)
    rows = rows_of(store, 2)
    with np.load(tmp_path / "play.npz", allow_pickle=False) as found:
        assert {*found} == SILENT | {"label_x", "label_door", "label_lit", "label_speed"}
        np.testing.assert_array_equal(found["frames"], store.colour_frames(rows))
        np.testing.assert_array_equal(found["actions"], store.actions[rows])
        np.testing.assert_array_equal(found["rewards"], store.rewards[rows])
        np.testing.assert_array_equal(found["ended"], store.steps["ended"][rows])
        assert {*found["episode"].tolist()} == {2}
        # Walk draws its square in orange at three times its place.
        square = found["frames"][..., 0] == 250
        x, y = square.any(1).argmax(1) // 3, square.any(2).argmax(1) // 3
        assert found["label_x"].tolist() == (x - 3).tolist()
        assert found["label_lit"].tolist() == (x > 8).tolist()
        assert found["label_door"].tolist() == [("shut", "open", "ajar")[each] for each in x * y % 3]
        np.testing.assert_allclose(found["label_speed"], x / 10 - y, rtol=0, atol=1e-12)


def test_the_arrays_can_be_recorded_from(record_here, tmp_path):
    store = record_here("Walk")
    export(store, tmp_path / "play.npz")  # the longest
    rows = rows_of(store, store.episodes["length"].argmax())
    again = record_from(tmp_path / "play.npz", "walk", data_dir=tmp_path, quiet=True)
    np.testing.assert_array_equal(again.colour_frames(slice(None)), store.colour_frames(rows))
    np.testing.assert_array_equal(again.actions, store.actions[rows])
    ours, theirs = store.given_labels(rows), again.given_labels(again.rows)
    assert {name: values.tolist() for name, values in theirs.items()} == {
        name: values.tolist() for name, values in ours.items()
    }


def test_continuous_actions_and_no_labels(record_here, tmp_path):
    store = record_here("Pushed", frames="observation.image", colour=False)
    export(store, tmp_path / "play.npz", episode=0)
    with np.load(tmp_path / "play.npz", allow_pickle=False) as found:
        assert {*found} == SILENT
        np.testing.assert_array_equal(found["frames"], store.frames[:7])  # it ends at its seventh step
        assert found["actions"].shape == (7, 2)
    with pytest.raises(UserError, match=r"has no colour .*: record it again in colour"):
        export(store, tmp_path / "colour.npz", colour=True)


def test_films_show_square_pixels(record_here, tmp_path, capsys, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="install manicap[images]")
    monkeypatch.chdir(tmp_path)
    store = record_here("Walk")
    rows = rows_of(store, 1)
    main(["data", "export", str(store.path), "--format", "gif", "--episode", "1", "--scale", "3", "--fps", "10"])
    assert capsys.readouterr().out.startswith(f"wrote Walk-episode-1.gif: {len(rows)} frames, {len(rows) / 10} seconds")
    with image.open(tmp_path / "Walk-episode-1.gif") as film:
        first = np.array(film.convert("RGB"))
    np.testing.assert_array_equal(first, store.colour_frames(rows[0]).repeat(3, 0).repeat(3, 1))


def test_an_mp4_has_even_sides(record_here, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="install manicap[video]").get_ffmpeg_exe()
    store = record_here("Walk", frame_size=(51, 49))
    with pytest.raises(UserError, match="an mp4 of 49 x 51 pixels is not possible: give an even scale"):
        export(store, tmp_path / "play.mp4", scale=1)
    assert not (tmp_path / "play.mp4").exists()
    export(store, tmp_path / "play.mp4", scale=2)
    said = subprocess.run([ffmpeg, "-i", tmp_path / "play.mp4"], capture_output=True, text=True, check=False).stderr
    assert "98x102" in said
