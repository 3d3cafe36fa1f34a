import itertools

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.topology.nerve import betti_numbers, build_nerve, sweep_thresholds


def test_four_arcs_of_a_circle_by_hand():
    # Neighbours share half of a sample each: a square without its inside.
    q = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0, 0.5]])
    nerve = build_nerve(q, threshold=0.1)
    assert nerve.of_dimension(1) == [(0, 1), (0, 3), (1, 2), (2, 3)]
    assert nerve.betti_numbers == (1, 1, 0)
    # Above one half the charts no longer meet, and three of them hold no sample.
    assert build_nerve(q, threshold=0.5).betti_numbers == (1, 0, 0)


def test_a_sample_in_three_charts_fills_their_triangle():
    nerve = build_nerve(np.full((1, 3), 1 / 3), threshold=0.2)
    assert nerve.simplices == ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
    assert nerve.betti_numbers == (1, 0, 0)


def test_the_threshold_takes_simplices_away_and_never_adds_any():
    q = np.random.default_rng(0).dirichlet(np.full(6, 0.5), 200)
    found = [set(nerve.simplices) for nerve in sweep_thresholds(q)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(found))
    assert len(found[-1]) < len(found[0])


@pytest.mark.parametrize(
    ("simplices", "expected"),
    [
        ([(0,), (1,)], (2, 0, 0)),
        (list(itertools.combinations(range(4), 3)), (1, 0, 1)),  # the faces of a tetrahedron: a sphere
        ([(0, 1, 2, 3)], (1, 0, 0)),  # and its inside
        # Seven points make a torus (Möbius 1861): triangles {i, i+1, i+3} and {i, i+2, i+3} modulo 7.
        ([t for i in range(7) for t in ((i, (i + 1) % 7, (i + 3) % 7), (i, (i + 2) % 7, (i + 3) % 7))], (1, 2, 1)),
    ],
)
def test_betti_numbers_of_known_complexes(simplices, expected):
    assert betti_numbers(simplices) == expected


def test_a_threshold_that_is_no_probability_is_refused():
    with pytest.raises(UserError, match=r"\[0, 1\)"):
        build_nerve(np.eye(2), threshold=1.5)


def test_without_gudhi_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gudhi", None)
    with pytest.raises(UserError, match=r"manicap\[topology\]"):
        build_nerve(np.eye(2))
