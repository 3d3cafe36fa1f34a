import math

import numpy as np
import pytest

from manicap.statistics.estimates import Estimate, Interval, PairedTest, mean
from manicap.statistics.scales import order_metrics, scale_of

RATIO, PLAIN = scale_of("labels_saved"), scale_of("f1")


def test_the_mean_of_2_and_8_is_4_as_a_factor_and_5_as_a_number():
    # sqrt(2 * 8) = 4
    assert RATIO.back(mean(RATIO.values([2, 8]))) == pytest.approx(4, rel=1e-12)
    assert PLAIN.back(mean(PLAIN.values([2, 8]))) == 5


def test_a_factor_and_its_inverse_cancel():
    assert RATIO.back(mean(RATIO.values([4, 1 / 4]))) == pytest.approx(RATIO.neutral, rel=1e-12)
    assert (RATIO.neutral, PLAIN.neutral) == (1, 0)


def test_differences_of_logarithms_come_back_as_factors():
    difference = math.log(6) - math.log(4)
    paired = RATIO.paired(PairedTest(difference, 0.25, 3))
    assert paired.difference == pytest.approx(1.5, rel=1e-12)
    assert (paired.p_value, paired.num_pairs) == (0.25, 3)
    found = RATIO.estimate(Estimate(0.0, Interval(-math.log(2), math.log(3))))
    np.testing.assert_allclose([found.value, found.interval.low, found.interval.high], [1, 0.5, 3], rtol=1e-12)
    assert RATIO.interval(None) is None
    assert PLAIN.estimate(Estimate(0.1, Interval(0.0, 0.2))) == Estimate(0.1, Interval(0.0, 0.2))


def test_texts_of_factors_and_of_shares():
    assert RATIO.text(12.34, Interval(8.1, 18.94)) == "12.3 x [8.1, 18.9]"
    assert RATIO.difference_text(1.4) == "x 1.4"
    assert RATIO.difference_text(1.4, Interval(1.1, 1.8)) == "x 1.4 [1.1, 1.8]"
    assert RATIO.spread_text(12.34, 1.4) == "12.3 ×÷ 1.4"
    assert RATIO.spread_text(12.34, None) == "12.3 x"
    assert (RATIO.text(999.4), RATIO.text(12345.6)) == ("999 x", "12,346 x")  # never 1.23e+04
    assert PLAIN.text(0.7123, Interval(0.65, 0.77)) == "0.712 [0.650, 0.770]"
    assert PLAIN.text(0.7123, Interval(0.7123, 0.7123)) == "0.712"  # a point is not an interval
    assert PLAIN.difference_text(0.1, Interval(-0.05, 0.15)) == "+0.100 [-0.050, +0.150]"
    assert PLAIN.spread_text(0.8432, 0.0121) == "0.843 ± 0.012"


def test_without_label_curves_exact_values_come_before_r2():
    metrics = ("labels_saved", "r2", "f1", "accuracy")
    assert order_metrics(metrics, {"f1", "r2", "labels_saved"}) == ["labels_saved", "r2", "f1"]
    assert order_metrics(metrics, {"f1", "r2", "accuracy"}) == ["f1", "accuracy", "r2"]
    assert order_metrics(("accuracy", "top5"), {"top5", "accuracy"}) == ["accuracy", "top5"]
