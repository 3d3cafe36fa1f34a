import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from manicap.report.nerve_figure import chart_middles, flatten, nerve_svg


def test_equal_values_draw_equal_bytes_and_it_is_svg():
    rng = np.random.default_rng(0)
    points, membership = rng.standard_normal((60, 3)), rng.dirichlet(np.ones(3), 60)
    drawn = [nerve_svg(points, membership, [(0,), (1,), (2,), (0, 1), (0, 1, 2)], "a title") for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert ElementTree.fromstring(drawn[0]).tag.endswith("svg")
    assert "nerve: 3 charts, 1 edges, 1 triangles" in drawn[0]


def test_a_chart_lies_in_the_middle_of_its_points():
    # Chart 0 holds the first point whole and half of the second: (1 x 0 + 1/2 x 3) / (3/2) = 1.
    flat, membership = np.array([[0.0, 0], [3, 0]]), np.array([[1.0, 0], [0.5, 0.5]])
    assert chart_middles(flat, membership) == pytest.approx(np.array([[1.0, 0], [3, 0]]), abs=1e-12)


def test_many_dimensions_are_shown_along_the_two_main_ones():
    # Corners of a rectangle in the last two of five dimensions: its long side comes first.
    points = np.array([[0, 0, 0, a, b] for a in (-1.0, 1) for b in (-3.0, 3)])
    assert flatten(points) == pytest.approx(points[:, [4, 3]], abs=1e-12)
