from dataclasses import replace

import pytest

from manicap.algorithms.base import MethodContext
from manicap.domains.atari.config import atari_preset
from manicap.domains.images.config import ImageConfig
from manicap.train.double_descent import capacity_warning
from manicap.train.setup import build_method
from tests.algorithms.small_images import small_image_settings


def warning_of(method, batch_size, **settings):
    config = atari_preset("quick", "pong", method)
    narrow = {"hidden_units": 8} if method == "dim-c+" else {}
    config = replace(config, batch_size=batch_size, settings=replace(config.settings, units=16, **narrow, **settings))
    return capacity_warning(config, build_method(config, MethodContext()))


def test_a_batch_as_large_as_the_heads_are_wide_is_warned_of():
    assert "as many samples as the heads have units (16)" in warning_of("dim-c+", 16)
    assert warning_of("dim-c+", 17) is None
    assert warning_of("dim-c+", 16, epsilon=0.0, target_ratio=0.1) is not None


@pytest.mark.parametrize(("method", "settings"), [("dim-c+", {"epsilon": 0.0}), ("st-dim", {})])
def test_without_a_capacity_term_there_is_nothing_to_warn_of(method, settings):
    assert warning_of(method, 16, **settings) is None


def test_mmcr_maximises_the_norm_without_a_regularizer():
    settings = small_image_settings("mmcr")
    config = ImageConfig(method="mmcr", settings=settings, batch_size=settings.units)
    context = MethodContext(input_shape=(3, 32, 32))
    assert capacity_warning(config, build_method(config, context)) is not None
