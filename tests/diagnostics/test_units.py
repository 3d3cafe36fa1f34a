import numpy as np

from manicap.diagnostics.units import dead_fraction


def test_a_unit_that_never_changes_is_dead_whatever_its_value():
    # Columns: varies, zero, constant, varies by 1e-9 of the first.
    features = np.array([[0.0, 0, 5, 0], [1, 0, 5, 1e-9], [2, 0, 5, 2e-9]])
    assert dead_fraction(features) == 3 / 4
    assert dead_fraction(features[:, :1]) == 0


def test_if_nothing_varies_all_are_dead():
    assert dead_fraction(np.ones((4, 3))) == 1
