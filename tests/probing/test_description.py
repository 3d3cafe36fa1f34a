import math

import numpy as np
import pytest

from manicap.probing.description import code_bits, number_probabilities


def normal(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def probability(true, predicted, deviation, num_values=256):
    arrays = (np.array([[float(x)]]) for x in (true, predicted))
    return float(number_probabilities(*arrays, np.array([float(deviation)]), num_values)[0, 0])


def test_a_number_has_the_probability_of_its_unit_interval():
    assert probability(100, 101.3, 2) == pytest.approx(normal(-0.8 / 2) - normal(-1.8 / 2))


def test_the_values_of_a_byte_have_all_the_probability():
    for predicted in (-5.0, 3.2, 254.9, 300.0):
        total = sum(probability(value, predicted, 3.0) for value in range(256))
        assert total == pytest.approx(1)


def test_far_from_the_prediction_the_probability_is_small_and_not_zero_by_cancellation():
    assert probability(130, 100, 4) == pytest.approx(probability(70, 100, 4), rel=1e-9)
    assert 0 < probability(130, 100, 4) < 1e-11


def test_a_probe_is_never_certain():
    # Deviation 0 counts as 0.1: a half off is 5 deviations away.
    assert probability(100, 100, 0) == pytest.approx(1, abs=1e-5)
    assert probability(101, 100, 0) == pytest.approx(normal(-5), rel=1e-3)


def test_a_code_has_room_for_values_never_seen():
    # After 98 labels one hundredth goes to the 256 values alike.
    bits = code_bits(np.array([0.0, 1.0, 0.5]), 256, 98)
    expected = [-math.log2(0.01 / 256), -math.log2(0.99 + 0.01 / 256), -math.log2(0.495 + 0.01 / 256)]
    np.testing.assert_allclose(bits, expected)
