"""Frames of another size: exact means, and the same whether a frame is resized as a whole or where it changed."""

from fractions import Fraction

import numpy as np
import pytest

from manicap.play.pictures import AreaResizer, resize_by_area

RNG_SEED = 3


def by_hand(frame, height, width):
    """Each pixel in turn, in exact fractions; halves to even."""
    H, W = frame.shape
    found = np.empty((height, width), np.uint8)
    for i in range(height):
        for j in range(width):
            mean = Fraction(0)
            for y in range(i * H // height, -(-(i + 1) * H // height)):
                for x in range(j * W // width, -(-(j + 1) * W // width)):
                    mean += _share(i, y, H, height) * _share(j, x, W, width) * int(frame[y, x])
            found[i, j] = round(mean)
    return found


def _share(new_pixel, old_pixel, old, new):
    low, high = Fraction(new_pixel * old, new), Fraction((new_pixel + 1) * old, new)
    return max(Fraction(0), min(high, old_pixel + 1) - max(low, old_pixel)) / (high - low)


@pytest.mark.parametrize("size", [(8, 8), (5, 7), (12, 9), (16, 40), (1, 1)])
def test_a_pixel_is_the_mean_of_its_area_exactly(size):
    # Few values, so that many means are halves.
    frame = np.random.default_rng(RNG_SEED).integers(0, 3, (16, 20), dtype=np.uint8)
    assert np.array_equal(resize_by_area(frame, *size), by_hand(frame, *size))


def test_sums_beyond_float32_are_exact():
    # 401 x 600 pixels have no common edges inside: one mean over all of them, a half below 128 by one in 481,200.
    frame = np.full((401, 600), 127, np.uint8)
    frame.reshape(-1)[: 401 * 600 // 2] = 128
    assert resize_by_area(frame, 1, 1) == 128  # 127.5, to even
    frame[0, 0] -= 1
    assert resize_by_area(frame, 1, 1) == 127


@pytest.mark.parametrize("shape", [(40, 60), (40, 60, 3), (41, 53, 3), (40, 64), (40, 64, 3), (40, 56, 3)])
def test_what_changes_is_resized_as_a_whole_frame_would_be(shape):
    rng, resize = np.random.default_rng(RNG_SEED), AreaResizer(16, 24)
    frame = rng.integers(0, 256, shape, dtype=np.uint8)
    for step in range(40):
        whole = AreaResizer(16, 24)(frame)
        assert np.array_equal(resize(frame), whole), step
        y, x, height, width = rng.integers(0, (30, 40, 12, 16))
        frame[y : y + height, x : x + width] = rng.integers(0, 256, shape[2:], dtype=np.uint8)  # in place, as some do


@pytest.mark.parametrize("column", range(16))
def test_one_changed_byte_is_seen_wherever_it_is(column):
    # 48 bytes per row: six words of eight, whose edges are not those of pixels.
    resize, frame = AreaResizer(8, 16), np.zeros((8, 16, 3), np.uint8)
    resize(frame)
    for channel in range(3):
        changed = frame.copy()
        changed[5, column, channel] = 200
        assert np.array_equal(resize(changed), changed), channel
        assert not resize(frame).any()


def test_frames_that_are_views_of_another_array_are_resized_as_their_copies():
    whole = np.random.default_rng(RNG_SEED).integers(0, 256, (2, 64, 40, 3), dtype=np.uint8)
    resize = AreaResizer(16, 24)
    for frame in whole.swapaxes(1, 2)[:, ::-1]:  # as pygame's pixels are: columns first
        assert np.array_equal(resize(frame), AreaResizer(16, 24)(frame.copy()))


def test_a_resized_frame_is_not_changed_by_the_next():
    resize, black = AreaResizer(8, 8), np.zeros((16, 16, 3), np.uint8)
    first = resize(black)
    assert resize(black + 255).min() == 255
    assert first.max() == 0


def test_frames_of_another_shape_are_resized_anew():
    resize = AreaResizer(8, 8)
    assert resize(np.zeros((16, 16), np.uint8)).shape == (8, 8)
    assert resize(np.full((24, 16, 3), 9, np.uint8)).tolist() == np.full((8, 8, 3), 9).tolist()
