"""Frames recorded elsewhere become one store, whatever file they came in; bad files are refused in one sentence."""

import csv
import zipfile

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.environments.importing import record_from
from manicap.environments.integrity import verify_environment_store
from manicap.environments.recording import record_store
from tests.environments.conftest import content, stores

N = 150
"""More than one block of 128 rows."""


def arrays():
    rng = np.random.default_rng(0)
    return {
        "frames": rng.integers(0, 256, (N, 48, 50, 3)).astype(np.uint8),
        "episode": np.repeat([7, 3, 4], 50),
        "label_x": np.arange(N) % 30 - 5,
        "label_speed": np.linspace(-1, 1, N),
        "label_door": np.array(["shut", "open", "ajar"])[np.arange(N) % 3],
        "label_lit": np.arange(N) % 2 == 0,
        "actions": 2 + np.arange(N) % 4,
        "rewards": np.sin(np.arange(N)),
    }


def write_npz(path, **changes):
    found = {name: array for name, array in {**arrays(), **changes}.items() if array is not None}
    np.savez(path, **found)
    return path


def write_hdf5(path, found):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed: pip install 'manicap[hdf5]'")
    with h5py.File(path, "w") as file:
        for name, array in found.items():
            array = array.astype(object) if array.dtype.kind == "U" else array
            file[name.replace("label_", "labels/")] = array
    return path


def write_folder(path, found):
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed: pip install 'manicap[images]'")
    (path / "frames").mkdir(parents=True)
    for row, frame in enumerate(found["frames"]):
        image.fromarray(frame).save(path / "frames" / f"{row:06}.png")
    names = {"actions": "action", "rewards": "reward"}
    columns = [name for name in found if name != "frames"]
    with (path / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([names.get(name, name.removeprefix("label_")) for name in columns])
        table.writerows(zip(*(found[name].tolist() for name in columns), strict=True))
    return path


@pytest.fixture
def import_here(tmp_path):
    def call(path, name="robot", **settings):
        return record_from(path, name, data_dir=tmp_path / "data", quiet=True, **settings)

    return call


def test_a_store_holds_what_the_file_holds(import_here, tmp_path):
    store, found = import_here(write_npz(tmp_path / "play.npz"), label_kinds=("x:place",)), arrays()
    np.testing.assert_array_equal(store.colour_frames(slice(None)), found["frames"])
    np.testing.assert_array_equal(store.actions, found["actions"])
    np.testing.assert_array_equal(store.rewards, found["rewards"])
    assert store.episodes.tolist() == [(0, 0, 50), (0, 50, 50), (0, 100, 50)]
    assert np.flatnonzero(store.steps["ended"]).tolist() == [49, 99, 149]
    assert [(each.name, each.kind) for each in store.variables] == [
        ("door", "class"),
        ("lit", "class"),
        ("speed", "number"),
        ("x", "place"),
    ]
    labels = store.labelling().labels(store.rows)
    assert labels["x"].tolist() == (found["label_x"] + 5).tolist()
    assert np.array(["ajar", "open", "shut"])[labels["door"]].tolist() == found["label_door"].tolist()
    assert labels["lit"].tolist() == found["label_lit"].tolist()
    np.testing.assert_array_equal(store.labelling().values(store.rows, ["speed"])[:, 0], found["label_speed"])
    assert store.labelling("play").labels(store.rows[:3])["next_action"].tolist() == [0, 1, 2]
    assert store.subject == "robot"
    assert store.path.parent == tmp_path / "data/environments/robot"
    assert verify_environment_store(store.path) == []


def test_every_kind_of_file_gives_the_same_store(import_here, tmp_path):
    found = arrays()
    compressed = tmp_path / "compressed.npz"
    np.savez_compressed(compressed, **{**found, "frames": np.asfortranarray(found["frames"])})
    files = [
        write_npz(tmp_path / "play.npz"),
        compressed,
        write_hdf5(tmp_path / "play.h5", found),
        write_folder(tmp_path / "play", found),
    ]
    contents = [content(import_here(path)) for path in files]
    for other in contents[1:]:
        assert set(other) == set(contents[0])
        for name in ("frames.zst", "steps.npy", "actions.npy", "labels.npy", "episodes.npy"):
            assert other[name] == contents[0][name], name


def test_a_changed_file_is_another_store_and_the_same_is_opened(import_here, tmp_path):
    first = import_here(write_npz(tmp_path / "play.npz"))
    assert import_here(write_npz(tmp_path / "copy.npz")).path == first.path
    assert import_here(write_npz(tmp_path / "play.npz", rewards=np.zeros(N))).path != first.path


def test_gray_frames_other_sizes_and_what_is_missing(import_here, tmp_path):
    gray = arrays()["frames"][..., 0].repeat(8, axis=1)
    path = write_npz(tmp_path / "play.npz", frames=gray, actions=None, rewards=None)
    with pytest.raises(UserError, match=r"robot has frames of 384 x 50; sides must be 48 to 256"):
        import_here(path)
    store = import_here(path, frame_size=(48, 50))
    np.testing.assert_array_equal(store.frames[:], arrays()["frames"][..., 0])
    assert not store.has_colour
    with pytest.raises(UserError, match="has no actions: they were not in the file"):
        _ = store.actions
    with pytest.raises(UserError, match="has no rewards"):
        _ = store.rewards
    with pytest.raises(UserError, match="has neither actions nor rewards"):
        store.labelling("play")


def test_continuous_actions(import_here, tmp_path):
    actions = np.random.default_rng(1).normal(size=(N, 3))
    store = import_here(write_npz(tmp_path / "play.npz", actions=actions))
    np.testing.assert_array_equal(store.actions, actions.astype(np.float32))


def changed(name, row, value):
    array = arrays()[name].astype(np.asarray(value).dtype)
    array[row] = value
    return {name: array}


BAD = [
    ({"label_x": np.arange(9)}, r"'x' has 9 rows, and there are 150 frames"),
    ({"label_x": np.zeros((N, 2))}, r"'x' is \[150, 2\], not \[150\]"),
    (changed("label_speed", 140, np.nan), r"the label 'speed' is nan at row 140"),
    (changed("rewards", 3, np.inf), r"'rewards' is inf at row 3"),
    ({"frames": arrays()["frames"] / 255}, r"the frame of .* is float64 \[48, 50, 3\] at row 0; needed is uint8"),
    ({"frames": np.zeros((N, 48, 50, 4), np.uint8)}, r"uint8 \[48, 50, 4\] at row 0; needed is uint8 \[H, W, 3\]"),
    ({"frames": np.zeros((0, 48, 50), np.uint8)}, "has no frames"),
    ({"frames": None}, r"has no array 'frames'; it has: episode, "),
    ({"episode": None}, "has no 'episode': it needs the number of the episode of each frame"),
    ({"episode": np.repeat([1, 2, 1], 50)}, r"episode 1 begins again at row 100; its rows must follow one another"),
    ({"episode": np.zeros(N)}, "'episode' is float64; needed are whole numbers"),
    ({"actions": np.zeros((N, 2, 2))}, r"'actions' is float64 \[150, 2, 2\]; needed is int \[N\] or float \[N, A\]"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_a_bad_file_is_refused_in_one_sentence(import_here, tmp_path, changes, message):
    with pytest.raises(UserError, match=message) as raised:
        import_here(write_npz(tmp_path / "play.npz", **changes))
    assert "\n" not in str(raised.value)
    assert stores(tmp_path) == []


def test_nothing_is_unpickled(import_here, tmp_path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("unpickled",)

    for name in ("frames", "label_x"):
        trap = np.array([Trap()] * N, object)
        np.savez(tmp_path / "trap.npz", **{**arrays(), name: trap}, allow_pickle=True)
        with pytest.raises(UserError, match="Object arrays cannot be loaded|are Python objects, which are not loaded"):
            import_here(tmp_path / "trap.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("name", ["frames", "label_x"])
def test_a_file_damaged_on_the_way_is_refused_in_one_sentence(import_here, tmp_path, save, name):
    path = tmp_path / "play.npz"
    save(path, **arrays())
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo(f"{name}.npy")
    place = entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2
    content[place : place + 8] = bytes(255 - byte for byte in content[place : place + 8])
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"cannot read .*play.npz: ") as raised:
        import_here(path)
    assert "\n" not in str(raised.value)
    assert stores(tmp_path) == []


def test_what_is_not_used_is_not_loaded(import_here, tmp_path):
    # Objects are refused when they are loaded; 150 rows of 2^50 numbers fit into no memory.
    plain = import_here(write_npz(tmp_path / "play.npz"))
    np.savez(tmp_path / "more.npz", **arrays(), about=np.array([{"by": "me"}], object), allow_pickle=True)
    assert import_here(tmp_path / "more.npz").frames[:].tolist() == plain.frames[:].tolist()
    path = write_hdf5(tmp_path / "more.h5", arrays())
    with pytest.importorskip("h5py").File(path, "a") as file:
        file.create_dataset("depth", (N, 2**50), "f4")
        file.create_dataset("camera/frames", (N, 2**50), "f4")
    assert import_here(path).frames[:].tolist() == plain.frames[:].tolist()


def test_a_label_under_two_names_is_refused(import_here, tmp_path):
    path = write_npz(tmp_path / "play.npz", **{"labels/x": np.zeros(N)})
    with pytest.raises(UserError, match=r"play.npz has the label 'x' twice, as label_x and as labels/x: remove one"):
        import_here(path)


def test_a_label_named_like_an_array_does_not_hide_its_length(import_here, tmp_path):
    path = write_npz(tmp_path / "play.npz", rewards=np.zeros(9), label_rewards=np.zeros(N))
    with pytest.raises(UserError, match=r"'rewards' has 9 rows, and there are 150 frames"):
        import_here(path)


def test_files_that_are_no_recordings(import_here, tmp_path):
    with pytest.raises(UserError, match=r"there is no file .*play.npz"):
        import_here(tmp_path / "play.npz")
    (tmp_path / "play.npz").write_bytes(b"not a zip")
    with pytest.raises(UserError, match=r"play.npz is not an .npz file, or it is damaged: write it with numpy.savez"):
        import_here(tmp_path / "play.npz")
    with pytest.raises(UserError, match=r"neither a folder nor ends in .npz, .h5, .hdf5"):
        import_here(tmp_path / "play.mat")
    (tmp_path / "play.h5").write_bytes(b"not HDF5")
    pytest.importorskip("h5py")
    with pytest.raises(UserError, match=r"cannot read .*play.h5"):
        import_here(tmp_path / "play.h5")


def test_bad_folders(import_here, tmp_path):
    folder = write_folder(tmp_path / "play", {name: array[:5] for name, array in arrays().items()})
    table = folder / "labels.csv"
    text = table.read_text()
    table.write_text(text + "1,2\n")
    with pytest.raises(UserError, match=r"line 7 of .*labels.csv has 2 values, and the first line has 7 names"):
        import_here(folder)
    head, first, *rest = text.splitlines(keepends=True)
    name = head.split(",")[1]
    table.write_text("".join([head, first, ",".join([rest[0].split(",")[0], "", *rest[0].split(",")[2:]]), *rest[1:]]))
    with pytest.raises(UserError, match=rf"line 3 of .*labels.csv has no {name}: a label must have a value everywhere"):
        import_here(folder)
    table.write_text("".join(text.splitlines(keepends=True)[:4]))
    with pytest.raises(UserError, match="'episode' has 3 rows, and there are 5 frames"):
        import_here(folder)
    table.write_text("")
    with pytest.raises(UserError, match="is not a table with a line of names"):
        import_here(folder)
    table.write_text(text)
    image = sorted((folder / "frames").iterdir())[3]
    image.write_bytes(image.read_bytes()[:40])
    with pytest.raises(UserError, match=r"cannot read the image .*000003.png"):
        import_here(folder)
    table.unlink()
    with pytest.raises(UserError, match=r"cannot read .*labels.csv: No such file"):
        import_here(folder)
    with pytest.raises(UserError, match=r"there are no images in .*frames: it needs frames/\*.png"):
        import_here(tmp_path)
    assert stores(tmp_path) == []


def test_an_imported_store_is_opened_by_its_config_but_not_played(import_here, tmp_path):
    store = import_here(write_npz(tmp_path / "play.npz"))
    assert record_store(store.config, tmp_path / "data").path == store.path
    with pytest.raises(UserError, match="its frames were recorded elsewhere: import their file again"):
        record_store(store.config, tmp_path / "other")
