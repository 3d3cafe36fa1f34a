"""Numbers that differ by little and are far from 0, such as times and positions on a map, are read as those near 0."""

import numpy as np
import pytest

from manicap.probing import ProbeData
from manicap.probing.discriminant_probes import DiscriminantProbes
from manicap.probing.ridge import FEW
from manicap.probing.ridge_probes import RidgeProbes

FAR, UNIT = 1e6, 1e-3  # float32 has steps of 1/16 at 1e6


def make_data(count, origin, unit=UNIT):
    """One number that four features tell, but for noise of a tenth of its deviation."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((count, 4)).astype(np.float32)
    near = features @ [1.0, -2.0, 0.5, 0.0] + 0.23 * rng.standard_normal(count)
    labels = np.digitize(near, np.quantile(near, np.linspace(0, 1, 11)[1:-1]))
    values = origin + unit * near[:, None]
    return ProbeData(features, labels[:, None], np.arange(count) // 20, ("number",), values)


def ridge_score(count, origin, unit=UNIT):
    data = make_data(count, origin, unit)
    return RidgeProbes(curves=False).fit(data).read(data, ["time"]).curves["time"][0][0]


@pytest.mark.parametrize("count", [400, FEW + 200])  # all frames at once, and sums over them
def test_a_regression_explains_as_much_of_numbers_far_from_0(count):
    near = ridge_score(count, 0.0)
    assert near > 0.98
    # Of values near 1e6, float64 rounds off 1e-10, a ten-millionth of what they differ by.
    assert ridge_score(count, FAR) == pytest.approx(near, abs=1e-5)


@pytest.mark.parametrize("unit", [1e-27, 1e24])  # kilograms of an atom and of the Earth: float32 has no squares of them
def test_a_regression_explains_as_much_in_any_unit(unit):
    assert ridge_score(FEW + 200, 0.0, unit) == pytest.approx(ridge_score(FEW + 200, 0.0), abs=1e-5)


@pytest.mark.parametrize("probe", [RidgeProbes, DiscriminantProbes])
def test_numbers_are_decoded_in_their_own_units(probe):
    data = make_data(400, FAR)
    _, numbers = probe().fit(data, data).decode(data.features)
    # A tenth of their deviation is noise, which nobody can read: its mean size is 0.23 sqrt(2 / pi).
    assert np.abs(numbers - data.values).mean() == pytest.approx(0.23 * np.sqrt(2 / np.pi) * UNIT, rel=0.1)


def test_the_description_of_numbers_does_not_depend_on_their_origin():
    lengths = []
    for origin in (0.0, FAR):
        data = make_data(400, origin)
        lengths.append(RidgeProbes().fit(data).read(data, ["time"]).bits["time"])
    assert lengths[1] == pytest.approx(lengths[0], rel=1e-4)
