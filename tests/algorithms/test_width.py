"""The width of what a probe sees, told before anything is trained."""

import pytest

from manicap.algorithms import METHODS
from manicap.algorithms.base import MethodContext
from manicap.algorithms.width import feature_width


# 3456 = 9 x 6 x 64 features, 11,264 = 11 x 8 x 128 in the local map (arXiv 2405.13848, Table 4).
@pytest.mark.parametrize(
    ("method", "probe_input", "expected"),
    [
        ("st-dim", "output", 256),
        ("st-dim", "backbone", 3456),
        ("st-dim", "local", 11_264),
        ("dim-c+", "output", 3456),
        ("dim-ua", "output", 4096),
    ],
)
def test_the_width_of_each_input(method, probe_input, expected):
    settings = METHODS[method].settings_type()
    assert feature_width(method, settings, probe_input, MethodContext()) == expected
    assert feature_width(method, settings, probe_input, MethodContext((3, 210, 160))) == expected


def test_it_follows_the_size_of_frames():
    # 84 -> 20 -> 9 -> 3 -> 1 after the four convolutions.
    assert feature_width("st-dim", METHODS["st-dim"].settings_type(), "backbone", MethodContext((4, 84, 84))) == 64
