"""Coordinates: written by the user, drawn where the object is."""

import pytest

from manicap.environments.coordinates import check_variables, coordinate_problems, pixel_maps
from manicap.environments.labels import Column

BALL = ("ball_x:x:0:10", "ball_y:y:4:-4")


def test_the_two_edges_of_the_frame_have_the_values_that_were_given():
    ball = pixel_maps(BALL, ("ball_x", "ball_y"), height=48, width=64)["ball"]
    # The centre of the first pixel is at 0, so edges are half a pixel outside of the first and the last.
    for axis, values, pixels in ((ball.x, (0, 5, 10), (-0.5, 31.5, 63.5)), (ball.y, (4, 0, -4), (-0.5, 23.5, 47.5))):
        assert [axis.slope * value + axis.intercept for value in values] == pytest.approx(pixels)
    assert (ball.x.variable, ball.y.variable) == ("ball_x", "ball_y")


def test_variables_are_paired_by_the_object_in_their_names():
    entries = ("enemy_x_3:x:0:1", "enemy_y_3:y:0:1", "cart_position:x:-2.4:2.4", "x:y:0:1", "a:b_x:x:0:1e2")
    names = [entry.rsplit(":", 3)[0] for entry in entries]
    found = pixel_maps(entries, names, 64, 64)
    axes = {name: (each.x and each.x.variable, each.y and each.y.variable) for name, each in found.items()}
    assert axes == {
        "enemy 3": ("enemy_x_3", "enemy_y_3"),
        "cart position": ("cart_position", None),
        "x": (None, "x"),  # its name says otherwise, the user knows better
        "a:b": ("a:b_x", None),
    }


def test_what_is_not_decoded_is_not_drawn():
    found = pixel_maps(BALL, ("ball_y", "score"), 48, 64)
    assert found["ball"].x is None
    assert pixel_maps(BALL, ("score",), 48, 64) == {}


@pytest.mark.parametrize(
    "entry", ["", "ball_x", "x:0:10", ":x:0:10", "a:z:0:1", "a:x:0", "a:x:1:1", "a:x:0:inf", "a:x:b:1"]
)
def test_what_is_not_a_coordinate_is_told_with_an_example(entry):
    (problem,) = coordinate_problems((entry,))
    assert problem.startswith("coordinates are written like ball_x:x:0:10")
    assert problem.endswith(f"got {entry!r}")


def test_an_object_has_one_place():
    assert coordinate_problems(BALL) == []
    problem = "coordinates give the x of ball twice: ball_x:x:0:10, ball_x:x:1:9"
    assert coordinate_problems((*BALL, "ball_x:x:1:9")) == [problem]


def test_only_numbers_that_were_recorded_are_coordinates():
    columns = (Column("ball_x", "float", "number"), Column("door", "str", "class"))
    assert check_variables(BALL[:1], columns) == []
    problems = check_variables(("ball:x:0:1", "door:y:0:1"), columns)
    assert problems[0].startswith("coordinates: unknown state variable 'ball'; did you mean 'ball_x'?")
    assert problems[1] == "door is a class and cannot be a coordinate"
