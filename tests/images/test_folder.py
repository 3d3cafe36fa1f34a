import contextlib
import hashlib
import json
import os
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from manicap.core.errors import Failure, UserError
from manicap.images import open_dataset
from manicap.images.folder import verify_folder
from manicap.images.selection import require_dataset

RNG = np.random.default_rng(0)
PIXELS = {  # [H, W, 3]
    "train/cat/a.png": RNG.integers(0, 256, (6, 5, 3), dtype=np.uint8),
    "train/cat/b.PNG": RNG.integers(0, 256, (6, 5, 3), dtype=np.uint8),
    "train/dog/a.png": RNG.integers(0, 256, (6, 5, 3), dtype=np.uint8),
    "test/dog/z.png": RNG.integers(0, 256, (6, 5, 3), dtype=np.uint8),
}


@pytest.fixture
def folder(tmp_path):
    for name, pixels in PIXELS.items():
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    (tmp_path / "pictures" / "train" / "cat" / "notes.txt").write_text("not an image")
    return tmp_path / "pictures"


def open_split(folder, split="train"):
    return open_dataset("folder", folder, split, quiet=True)


def test_pictures_become_images_in_order_of_their_names(folder):
    train, test = open_split(folder), open_split(folder, "test")
    expected = np.stack([PIXELS[name].transpose(2, 0, 1) for name in sorted(PIXELS) if name.startswith("train")])
    assert np.array_equal(train.images[:], expected)
    assert train.labels.tolist() == [0, 0, 1]
    assert train.class_names == test.class_names == ("cat", "dog")
    assert test.labels.tolist() == [1]
    np.testing.assert_allclose(train.mean, expected.mean((0, 2, 3)) / 255, rtol=1e-12)
    np.testing.assert_allclose(train.std, expected.std((0, 2, 3)) / 255, rtol=1e-12)
    assert test.mean == train.mean


def test_a_second_open_decodes_nothing(folder, monkeypatch):
    first = open_split(folder)
    monkeypatch.setattr("manicap.images.folder.decode", lambda path: pytest.fail("decoded again"))
    assert open_split(folder).fingerprint == first.fingerprint
    assert isinstance(open_split(folder).images._parts[0], np.memmap)


def test_a_changed_picture_is_decoded_again(folder):
    first = open_split(folder)
    Image.fromarray(PIXELS["test/dog/z.png"]).save(folder / "train/cat/a.png")
    second = open_split(folder)
    assert second.fingerprint != first.fingerprint
    assert np.array_equal(second.images[0], PIXELS["test/dog/z.png"].transpose(2, 0, 1))


def test_a_damaged_cache_is_built_again(folder):
    first = open_split(folder)
    images = first.images[:]
    cache = folder / ".manicap" / "train.npy"
    content = bytearray(cache.read_bytes())
    content[-1] ^= 1
    cache.write_bytes(content)
    os.utime(cache, ns=(1, 1))  # no clock is so coarse that the time stamp is the old one
    assert open_split(folder).fingerprint == first.fingerprint
    assert np.array_equal(open_split(folder).images[:], images)
    (folder / ".manicap" / "train.json").write_text("{")
    assert open_split(folder).fingerprint == first.fingerprint


def test_the_cache_is_hashed(folder):
    open_split(folder)
    info = json.loads((folder / ".manicap" / "train.json").read_text())
    assert len(info["sha256"]) == 64
    assert info["shape"] == [3, 3, 6, 5]


def test_class_folders_alone_are_training_images(folder):
    assert len(open_split(folder / "train", "pretrain")) == 3
    with pytest.raises(UserError, match="a test split requires a folder 'test' beside 'train'"):
        open_split(folder / "train", "test")


def test_gray_and_transparent_pictures_become_three_channels(folder):
    Image.fromarray(np.full((6, 5), 7, np.uint8)).save(folder / "train/cat/a.png")
    assert (open_split(folder).images[0] == 7).all()


def test_pictures_of_two_sizes_are_refused_and_leave_no_cache(folder):
    Image.fromarray(np.zeros((6, 7, 3), np.uint8)).save(folder / "train/dog/b.jpg")
    with pytest.raises(UserError, match=r"dog/b.jpg is 7 x 6 and .*cat/a.png is 5 x 6: all images must have one size"):
        open_split(folder)
    assert [path.name for path in (folder / ".manicap").iterdir()] == [".lock"]


def test_test_pictures_of_another_size_are_refused(folder):
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "test/dog/z.png")
    with pytest.raises(UserError, match="test images are 8 x 8 and train images 5 x 6"):
        open_split(folder, "test")


def test_a_class_only_in_test_is_refused(folder):
    (folder / "test" / "cow").mkdir()
    Image.fromarray(PIXELS["test/dog/z.png"]).save(folder / "test/cow/a.png")
    with pytest.raises(UserError, match="classes that train lacks: cow"):
        open_split(folder, "test")


def test_a_truncated_picture_is_named(folder):
    path = folder / "train/cat/a.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(UserError, match=r"cat/a.png cannot be decoded"):
        open_split(folder)


def test_an_empty_folder_says_what_was_expected(tmp_path):
    with pytest.raises(UserError, match=r"there are no images .*/<class>/\*.png"):
        open_split(tmp_path)


def test_without_pillow_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match=r"requires pillow: install manicap\[images\]"):
        open_split(folder)


def test_a_flipped_bit_of_the_cache_is_not_trained_on_though_the_time_stamp_was_set_back(folder):
    first = open_split(folder)
    images = first.images[:]
    cache = folder / ".manicap" / "train.npy"
    flip_last_bit(cache)
    assert np.array_equal(open_split(folder).images[:], images)


def test_a_flipped_bit_of_a_picture_is_noticed_though_the_time_stamp_was_set_back(folder):
    first = open_split(folder).fingerprint
    before = (folder / "train/cat/a.png").stat()
    pixels = PIXELS["train/cat/a.png"].copy()
    pixels[0, 0, 0] ^= 1
    Image.fromarray(pixels).save(folder / "train/cat/a.png")
    os.utime(folder / "train/cat/a.png", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert open_split(folder).fingerprint != first


@pytest.mark.parametrize("key", ["mean", "std", "shape", "sha256"])
def test_a_changed_description_is_not_believed(folder, key):
    first = open_split(folder)
    path = folder / ".manicap" / "train.json"
    info = json.loads(path.read_text())
    info[key] = info[key][::-1]
    path.write_text(json.dumps(info))
    again = open_split(folder)
    assert (again.mean, again.std, again.fingerprint) == (first.mean, first.std, first.fingerprint)
    assert again.images.shape == first.images.shape


def test_verify_names_what_has_changed(folder):
    open_split(folder, "test")
    assert verify_folder(folder) == []
    flip_last_bit(folder / ".manicap" / "test.npy")
    Image.fromarray(PIXELS["test/dog/z.png"]).save(folder / "train/cat/a.png")
    (folder / "train/dog/a.png").unlink()
    faults = verify_folder(folder)
    assert len(faults) == 3
    assert any(".manicap/test.npy has changed" in fault for fault in faults)
    assert f"{folder}/train/cat/a.png has changed since it was decoded" in faults
    assert f"{folder}/train/dog/a.png is missing" in faults


def test_hashes_are_those_of_sha256sum(folder):
    open_split(folder)
    lines = (folder / ".manicap" / "train.sha256").read_text().splitlines()
    expected = hashlib.sha256((folder / "train/cat/a.png").read_bytes()).hexdigest()
    assert lines[0] == f"{expected}  cat/a.png"
    assert len(lines) == 3


def test_what_a_killed_writer_left_is_cleared_at_the_next_decoding(folder):
    (folder / ".manicap").mkdir()
    (folder / ".manicap" / ".train.npy.a1b2c3d4.scratch").write_bytes(b"half")
    (folder / ".manicap" / "notes.txt").write_text("mine")
    open_split(folder)
    names = {path.name for path in (folder / ".manicap").iterdir()}
    assert names == {".lock", "train.npy", "train.json", "train.sha256", "notes.txt"}


def test_a_decompression_bomb_is_refused_by_name_and_size(folder):
    # 1 bit a pixel: 8 MB of pixels, 10,000 x 6,401 are 64 million.
    Image.new("1", (10_000, 6_401)).save(folder / "train/dog/b.png")
    with pytest.raises(UserError, match=r"dog/b.png cannot be decoded \(it has 10000 x 6401 pixels, more"):
        open_split(folder)


def test_a_picture_beyond_pillows_own_limit_is_refused(folder):
    Image.new("1", (20_000, 9_000)).save(folder / "train/dog/b.png")  # 180 million: Pillow raises at twice 89
    with pytest.raises(UserError, match=r"dog/b.png cannot be decoded"):
        open_split(folder)


@pytest.mark.parametrize("target", ["b.png", "nowhere.png"])
def test_a_link_in_a_circle_or_to_nowhere_is_named(folder, target):
    (folder / "train/dog/b.png").symlink_to(target)
    with pytest.raises(UserError, match=r"dog/b.png cannot be read \(.*\); repair or remove it"):
        open_split(folder)


def test_a_pipe_with_the_name_of_a_picture_is_not_waited_for(folder):
    os.mkfifo(folder / "train/dog/b.png")
    with pytest.raises(UserError, match=r"dog/b.png is not a regular file"):
        open_split(folder)


def test_a_name_that_is_not_utf8_is_said_to_be_one(folder):
    os.rename(folder / "train/dog", os.fsencode(folder / "train") + b"/d\xffg")
    with pytest.raises(UserError, match="is not UTF-8; rename it"):
        open_split(folder)


def test_damage_of_any_byte_of_a_picture_is_a_sentence_or_another_fingerprint(folder):
    path = folder / "train/cat/a.png"
    content, first = path.read_bytes(), open_split(folder)
    rng = np.random.default_rng(0)
    for place in rng.choice(len(content), 40, replace=False):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        with contextlib.suppress(UserError):
            again = open_split(folder)
            same = np.array_equal(again.images[:], first.images[:])
            assert same == (again.fingerprint == first.fingerprint)


def test_what_does_not_fit_is_refused_before_it_is_decoded(folder, monkeypatch):
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage._replace(free=100))
    with pytest.raises(Failure, match=r"the decoded images of .*train need 0.000 GB, but only 0.000 GB are free in"):
        open_split(folder)


def test_the_word_folder_is_answered_with_what_to_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="name a folder of images by its path: --dataset PATH"):
        require_dataset("folder")
    with pytest.raises(UserError, match="unknown dataset"):
        require_dataset("x" * 5000)


def flip_last_bit(path):
    """With the time stamp of before."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
