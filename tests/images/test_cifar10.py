import os
import re
import shutil

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.images.cifar10 import PUBLISHED, RECORD, open_cifar10
from manicap.images.inventory import find_image_files
from tests.images.files import CIFAR10, NAMES, write_cifar10


def open_small(directory, split="train"):
    return open_cifar10(directory, split, layout=CIFAR10, download=False)


def test_records_become_images_and_labels(tmp_path):
    written = write_cifar10(tmp_path)
    train, test = open_small(tmp_path), open_small(tmp_path, "test")
    batches = [written[f"data_batch_{number}"] for number in range(1, 6)]
    assert np.array_equal(train.images[:], np.concatenate([images for _, images in batches]))
    assert train.labels.tolist() == np.concatenate([labels for labels, _ in batches]).tolist()
    assert train.labels.dtype == np.int64
    assert np.array_equal(test.images[:], written["test_batch"][1])
    assert train.class_names == tuple(NAMES)
    assert train.num_classes == 10
    assert train.images.shape == (100, 3, 32, 32)


def test_pretraining_uses_the_training_images(tmp_path):
    write_cifar10(tmp_path)
    assert open_small(tmp_path, "pretrain").fingerprint == open_small(tmp_path).fingerprint
    assert open_small(tmp_path, "test").fingerprint != open_small(tmp_path).fingerprint


def test_the_published_sizes_are_those_of_the_published_files():
    # 10,000 records of 1 + 3072 bytes; the site says each file should be exactly 30730000 bytes long.
    assert PUBLISHED.images_per_file * RECORD == 30_730_000


def test_images_stay_on_disk_until_indexed(tmp_path):
    write_cifar10(tmp_path)
    images = open_small(tmp_path).images
    assert all(isinstance(part, np.memmap) and not part.flags.writeable for part in images._parts)


def test_a_truncated_file_is_named_with_its_size(tmp_path):
    write_cifar10(tmp_path)
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"data_batch_3.bin has {20 * 3073 - 1} bytes, expected {20 * 3073}"):
        open_small(tmp_path)
    assert len(open_small(tmp_path, "test")) == 20  # the other split is sound


def test_small_files_are_refused_where_the_published_ones_are_expected(tmp_path):
    write_cifar10(tmp_path)
    with pytest.raises(UserError, match=r"test_batch.bin has 61460 bytes, expected 30730000"):
        open_cifar10(tmp_path, "test", download=False)


def test_a_label_out_of_range_is_named_with_its_image(tmp_path):
    write_cifar10(tmp_path)
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin"
    content = bytearray(path.read_bytes())
    content[7 * RECORD] = 10
    path.write_bytes(content)
    with pytest.raises(UserError, match="data_batch_2.bin: image 7 has the label 10, but labels range from 0 to 9"):
        open_small(tmp_path)


def test_missing_files_are_listed_with_where_to_put_them(tmp_path):
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_5.bin").unlink()
    with pytest.raises(UserError) as error:
        open_small(tmp_path)
    assert "cifar-10-batches-bin lacks data_batch_5.bin; put the archive cifar-10-binary.tar.gz (162 MB" in str(
        error.value
    )
    assert f"into {tmp_path}" in str(error.value)


@pytest.mark.parametrize("content", [b"cat\ndog\n", b"", b"\xff\xfe" * 10])
def test_a_names_file_with_other_than_the_ten_names_is_refused(tmp_path, content):
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "batches.meta.txt").write_bytes(content)
    with pytest.raises(UserError, match=r"batches.meta.txt does not contain the ten class names"):
        open_small(tmp_path)


def test_bytes_that_changed_after_the_first_open_are_found(tmp_path):
    write_cifar10(tmp_path)
    first = open_small(tmp_path).fingerprint
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_4.bin"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape("the sha256 of data_batch_4.bin no longer matches manifest.json")):
        open_small(tmp_path)
    content[100] ^= 1
    path.write_bytes(content)
    assert open_small(tmp_path).fingerprint == first


def test_a_copy_elsewhere_has_the_same_fingerprint(tmp_path):
    write_cifar10(tmp_path / "here")
    first = open_small(tmp_path / "here").fingerprint
    shutil.copytree(tmp_path / "here", tmp_path / "there", copy_function=shutil.copyfile)  # new time stamps
    assert open_small(tmp_path / "there").fingerprint == first


def test_a_damaged_manifest_is_said_to_be_one(tmp_path):
    write_cifar10(tmp_path)
    open_small(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "manifest.json").write_text("{")
    with pytest.raises(UserError, match="manifest.json is damaged .*; remove it"):
        open_small(tmp_path)


def test_a_flipped_bit_is_found_at_the_next_open_and_by_verify_though_the_time_stamp_was_set_back(tmp_path):
    write_cifar10(tmp_path)
    open_small(tmp_path)
    files = find_image_files(tmp_path)
    assert (files.kind, files.verify()) == ("cifar10", [])
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert files.verify() == ["data_batch_3.bin has changed (its sha256 differs from that in manifest.json)"]
    with pytest.raises(UserError, match=re.escape("data_batch_3.bin no longer matches manifest.json")):
        open_small(tmp_path)


def test_a_flipped_digit_of_the_manifest_is_damage_not_another_fingerprint(tmp_path):
    write_cifar10(tmp_path)
    open_small(tmp_path)
    path = tmp_path / "cifar-10-batches-bin" / "manifest.json"
    content = bytearray(path.read_bytes())
    content[re.search(rb"[0-9a-f]{64}", content).start()] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="manifest.json is damaged"):
        open_small(tmp_path)


def test_files_never_read_are_hashed_by_the_first_verify(tmp_path):
    write_cifar10(tmp_path)
    files = find_image_files(tmp_path / "cifar-10-batches-bin")
    assert files.path == tmp_path
    assert files.verify() == []
    (tmp_path / "cifar-10-batches-bin" / "test_batch.bin").unlink()
    assert files.verify() == ["test_batch.bin is missing"]


def test_a_kept_archive_is_verified_by_its_published_md5(tmp_path):
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"cut")
    (fault,) = find_image_files(tmp_path).verify()
    assert "cifar-10-binary.tar.gz (3 bytes) has md5" in fault
