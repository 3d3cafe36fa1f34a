import json
import os
import sys

import numpy as np
import pytest
from PIL import Image

from manicap.core.errors import UserError
from manicap.images import open_dataset

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
    monkeypatch.setattr("manicap.images.folder._decode", lambda path: pytest.fail("decoded again"))
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
    with pytest.raises(UserError, match="a test split needs a folder 'test' beside 'train'"):
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
    with pytest.raises(UserError, match="classes that train does not have: cow"):
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
    with pytest.raises(UserError, match=r"needs pillow: install manicap\[images\]"):
        open_split(folder)
