import json

import numpy as np

from manicap.diagnostics.groups import GroupCapacity, mean_measures, measure_groups
from tests.diagnostics.shapes import spheres


def found_of(points):
    rng = np.random.default_rng(0)
    return measure_groups(spheres(rng, rng.standard_normal((5, 12)), points, 2, 0.5), np.random.default_rng(1))


def test_what_was_found_survives_a_file():
    found = found_of(20)
    assert found.trend.limit is not None
    assert GroupCapacity.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.manifolds == 5


def test_features_that_have_collapsed_have_no_capacity():
    assert measure_groups([np.ones((4, 3)), np.ones((5, 3))], np.random.default_rng(0)) is None


def test_a_limit_that_is_missing_is_left_out_of_the_mean():
    many, few = found_of(20), found_of(5)
    assert few.trend.limit is None
    means = mean_measures({"many": many, "few": few})
    assert means["glue_limit"] == many.trend.limit
    assert means["glue_capacity"] == (many.glue.capacity + few.glue.capacity) / 2
    assert mean_measures({}) == {}
