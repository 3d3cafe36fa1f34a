"""Where objects are drawn: maps recovered from frames made with known ones."""

import numpy as np
import pytest

from manicap.atari.positions import MIN_CONTRAST, estimate_positions
from manicap.play.places import AxisMap, object_axes

NUM_FRAMES = 300


@pytest.fixture(scope="module")
def made():
    """A 2 x 4 ball at (x - 40, 180 - y), a 16 x 4 paddle at rows from 2 p - 10 in columns 140 to 143, a busy score."""
    generator = np.random.default_rng(0)
    labels = {
        "ball_x": generator.integers(50, 150, NUM_FRAMES),
        "ball_y": generator.integers(20, 120, NUM_FRAMES),
        "paddle_y": generator.integers(30, 90, NUM_FRAMES),
        "paddle_x": np.full(NUM_FRAMES, 188),
        "ghost_x": generator.integers(0, 160, NUM_FRAMES),
        "ghost_y": generator.integers(0, 200, NUM_FRAMES),
        "score": generator.integers(0, 21, NUM_FRAMES),
    }
    labels = {name: values.astype(np.uint8) for name, values in labels.items()}
    frames = np.full((NUM_FRAMES, 210, 160), 87, np.uint8)
    for t in range(NUM_FRAMES):
        x, y, p = (int(labels[name][t]) for name in ("ball_x", "ball_y", "paddle_y"))
        frames[t, 180 - y : 184 - y, x - 40 : x - 38] = 236
        frames[t, 2 * p - 10 : 2 * p + 6, 140:144] = 147
        frames[t, 2:12, 20 : 30 + int(labels["score"][t])] = 200
    return frames, labels


@pytest.fixture(scope="module")
def maps(made):
    frames, labels = made
    return estimate_positions(frames, labels, list(labels))


def test_a_ball_is_found_with_both_slopes_and_its_centre(maps):
    # Columns x - 40 and x - 39, centre x - 39.5; rows 180 - y to 183 - y, centre 181.5 - y.
    assert maps["ball"].x == AxisMap("ball_x", 1.0, -39.5)
    assert maps["ball"].y == AxisMap("ball_y", -1.0, 181.5)
    assert (maps["ball"].width, maps["ball"].height) == (2, 4)
    assert maps["ball"].contrast > 0.9


def test_a_paddle_whose_x_never_changes_gets_its_column_from_the_frames(maps):
    # Rows 2 p - 10 to 2 p + 5, centre 2 p - 2.5; columns 140 to 143.
    assert maps["paddle"].y == AxisMap("paddle_y", 2.0, -2.5)
    assert maps["paddle"].x == AxisMap(None, 0.0, 141.5)


def test_values_that_place_nothing_on_the_screen_get_no_map(maps):
    assert set(maps) == {"ball", "paddle"}


def test_an_object_with_one_variable_that_also_roams_is_found_on_that_axis_alone():
    generator = np.random.default_rng(1)
    rows, columns = generator.integers(0, 200, 200), generator.integers(0, 150, 200)
    frames = np.zeros((200, 210, 160), np.uint8)
    for t in range(200):
        frames[t, rows[t] : rows[t] + 5, columns[t] : columns[t] + 3] = 99
    found = estimate_positions(frames, {"fish_y": rows.astype(np.uint8)}, ["fish_y"])["fish"]
    assert found.y == AxisMap("fish_y", 1.0, 2.0)
    assert found.x is None
    assert (found.width, found.height) == (160, 5)


def test_two_calls_give_the_same_maps(made, maps):
    frames, labels = made
    assert estimate_positions(frames, labels, list(labels)) == maps


def test_a_still_screen_has_no_positions():
    frames = np.zeros((50, 210, 160), np.uint8)
    assert estimate_positions(frames, {"ball_x": np.arange(50, dtype=np.uint8)}, ["ball_x"]) == {}


def test_an_object_seen_too_seldom_is_left_out(made):
    frames, labels = made
    seldom = np.random.default_rng(2).random(NUM_FRAMES) > MIN_CONTRAST - 0.15
    hidden = frames.copy()
    hidden[seldom] = 87
    assert "ball" not in estimate_positions(hidden, labels, ["ball_x", "ball_y"])


def test_names_pair_by_stem():
    names = ["ball_x", "ball_y", "player_missile_x1", "player_missile_y1", "enemy_car_x_0", "enemy_y", "score", "xylem"]
    assert object_axes(names) == {
        "ball": {"x": "ball_x", "y": "ball_y"},
        "player missile 1": {"x": "player_missile_x1", "y": "player_missile_y1"},
        "enemy car 0": {"x": "enemy_car_x_0"},
        "enemy": {"y": "enemy_y"},
    }


def test_labels_of_another_length_are_refused():
    frames = np.zeros((5, 210, 160), np.uint8)
    with pytest.raises(ValueError, match=r"needs 5 labels of 'ball_x', got 4"):
        estimate_positions(frames, {"ball_x": np.zeros(4, np.uint8)}, ["ball_x"])
    with pytest.raises(ValueError, match=r"frames uint8 \[n, height, width\], got float64"):
        estimate_positions(frames.astype(float), {}, [])
