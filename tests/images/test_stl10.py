import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.images.stl10 import PUBLISHED, open_stl10
from tests.images.files import STL10, write_stl10


def open_small(directory, split):
    return open_stl10(directory, split, layout=STL10, download=False)


def test_columns_become_rows(tmp_path):
    images, labels = write_stl10(tmp_path)
    for split in ("train", "test"):
        dataset = open_small(tmp_path, split)
        assert np.array_equal(dataset.images[:], images[split])
        assert dataset.labels.tolist() == (labels[split] - 1).tolist()
    # The first bytes of the file are the first column, from the top down.
    head = (tmp_path / "stl10_binary" / "train_X.bin").read_bytes()[:3]
    assert open_small(tmp_path, "train").images[0][0, :3, 0].tolist() == list(head)


def test_pretraining_takes_train_and_unlabelled_images_without_labels(tmp_path):
    images, _ = write_stl10(tmp_path)
    dataset = open_small(tmp_path, "pretrain")
    assert np.array_equal(dataset.images[:], np.concatenate([images["train"], images["unlabeled"]]))
    assert dataset.labels is None
    assert dataset.num_classes == 10


def test_probing_needs_no_unlabelled_images(tmp_path):
    write_stl10(tmp_path)
    (tmp_path / "stl10_binary" / "unlabeled_X.bin").unlink()
    assert len(open_small(tmp_path, "train")) == 10
    with pytest.raises(UserError, match="stl10_binary lacks unlabeled_X.bin; put the archive stl10_binary.tar.gz"):
        open_small(tmp_path, "pretrain")


def test_the_published_counts():
    # 5,000 training, 8,000 test and 100,000 unlabelled images (the dataset's page).
    assert (PUBLISHED.num_train, PUBLISHED.num_test, PUBLISHED.num_unlabeled) == (5_000, 8_000, 100_000)


def test_images_and_labels_of_the_wrong_size_are_told_together(tmp_path):
    write_stl10(tmp_path)
    folder = tmp_path / "stl10_binary"
    (folder / "test_X.bin").write_bytes(bytes(20 * 3 * 64 * 64))  # images of 64 x 64
    (folder / "test_y.bin").write_bytes(bytes(19))
    with pytest.raises(UserError) as error:
        open_small(tmp_path, "test")
    assert f"test_X.bin has {20 * 3 * 64 * 64} bytes, expected {20 * 3 * 96 * 96}" in str(error.value)
    assert "test_y.bin has 19 bytes, expected 20" in str(error.value)


@pytest.mark.parametrize("label", [0, 11])
def test_a_label_out_of_range_is_named(tmp_path, label):
    _, labels = write_stl10(tmp_path)
    labels["train"][4] = label
    (tmp_path / "stl10_binary" / "train_y.bin").write_bytes(bytes(labels["train"].tolist()))
    with pytest.raises(UserError, match=f"train_y.bin: image 4 has the label {label}, but labels range from 1 to 10"):
        open_small(tmp_path, "train")
