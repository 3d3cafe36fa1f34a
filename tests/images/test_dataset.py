"""Rows over several arrays, subsets and held-out parts, the registry's errors."""

import subprocess
import sys

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.images import hold_out, open_dataset, subset
from manicap.images.dataset import ImageDataset, ImageRows, stratified_rows

ALL = np.arange(7 * 3 * 2 * 2, dtype=np.uint8).reshape(7, 3, 2, 2)


def dataset(labels):
    count = len(labels)
    images = np.arange(count * 3, dtype=np.uint8).reshape(count, 3, 1, 1)
    names = ("a", "b", "c")
    return ImageDataset("toy", "train", ImageRows([images]), np.array(labels), names, (0.5,) * 3, (0.5,) * 3, "f" * 12)


@pytest.mark.parametrize(
    "index",
    [0, -1, slice(None), slice(5, 1, -2), np.array([6, 0, 3, 3]), np.array([[1, 2], [5, 4]]), np.arange(7) % 2 == 0],
)
def test_parts_are_indexed_as_one_array(index):
    rows = ImageRows([ALL[:3], ALL[3:4], ALL[4:]])
    assert rows.shape == (7, 3, 2, 2)
    assert np.array_equal(rows[index], ALL[index])


def test_rows_become_an_array():
    assert np.array_equal(np.asarray(ImageRows([ALL[:3], ALL[3:]])), ALL)


def test_what_is_taken_keeps_images_labels_and_order_together():
    whole = dataset([0, 1, 2, 0, 1, 2])
    part = whole.take(np.array([5, 0, 1])).take(np.array([2, 0]))  # rows 1 and 5
    assert np.array_equal(part.images[:], whole.images[[1, 5]])
    assert part.labels.tolist() == [1, 2]
    assert part.fingerprint not in (whole.fingerprint, whole.take(np.array([5, 1])).fingerprint)


def test_shares_of_classes_are_exact_to_within_one():
    # 10 of 8 + 6 + 6: quotas 4, 3, 3. 7 of them: 2.8, 2.1, 2.1: the largest remainder takes the last one.
    labels = np.repeat([0, 1, 2], [8, 6, 6])
    for count, expected in ((10, [4, 3, 3]), (7, [3, 2, 2])):
        rows = stratified_rows(labels, count, np.random.default_rng(0))
        assert np.bincount(labels[rows]).tolist() == expected
        assert (np.diff(rows) > 0).all()


def test_every_image_of_a_class_is_equally_likely():
    # 6 of 12 images in each of 2000 draws: 1000 expected, standard deviation sqrt(2000 / 4) = 22.4; 4 of them is 90.
    counts = np.zeros(12)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        counts[stratified_rows(np.arange(12) % 3, 6, rng)] += 1
    assert abs(counts - 1000).max() < 90


def test_a_held_out_part_and_the_rest_share_nothing_and_repeat_by_seed():
    whole = dataset([0, 1, 2] * 20)
    rest, held = hold_out(whole, 0.1, np.random.default_rng(3))
    assert np.bincount(held.labels).tolist() == [2, 2, 2]
    firsts = [set(part.images[:][:, 0, 0, 0].tolist()) for part in (rest, held)]
    assert not firsts[0] & firsts[1]
    assert len(firsts[0] | firsts[1]) == 60
    assert hold_out(whole, 0.1, np.random.default_rng(3))[1].fingerprint == held.fingerprint
    assert hold_out(whole, 0.1, np.random.default_rng(4))[1].fingerprint != held.fingerprint


def test_a_subset_of_unlabelled_images_is_drawn_from_all():
    whole = dataset([0] * 30)
    unlabelled = ImageDataset("toy", "pretrain", whole.images, None, ("a",), (0.5,) * 3, (0.5,) * 3, "f" * 12)
    part = subset(unlabelled, 12, np.random.default_rng(0))
    assert len(part) == 12
    assert part.labels is None


def test_impossible_parts_are_refused():
    with pytest.raises(UserError, match="has 3 train images, fewer than 4"):
        subset(dataset([0, 1, 2]), 4, np.random.default_rng(0))
    with pytest.raises(UserError, match="leaves one of the two parts empty"):
        hold_out(dataset([0, 1, 2]), 0.1, np.random.default_rng(0))


def test_unknown_names_list_the_valid_ones(tmp_path):
    with pytest.raises(UserError, match="unknown dataset 'cifar'; did you mean 'cifar10'"):
        open_dataset("cifar", tmp_path, "train")
    with pytest.raises(UserError, match="unknown split 'val'.*pretrain, test, train"):
        open_dataset("cifar10", tmp_path, "val")


def test_readers_load_without_torch_pooch_and_pillow():
    code = (
        "import sys; import manicap.images; print([name for name in ('pooch', 'PIL', 'torch') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
