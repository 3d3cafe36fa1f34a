import pytest

from manicap.report.curves import loss_parts, training_charts


def line(step, split="train", **values):
    return {"split": split, "epoch": 0, "step": step, **values}


IMAGES = [
    line(1, loss=1.5, contrast=2.0, capacity=-0.5, capacity_pretraining_percentage_error=60.0, chart_usage=1.5),
    line(2, loss=0.7, contrast=1.3, capacity=-0.6, capacity_pretraining_percentage_error=55.0, chart_usage=1.4),
]


def test_parts_are_what_adds_up_to_the_loss():
    assert loss_parts(IMAGES) == ["contrast", "capacity"]
    # In float32 the sum is off by a rounding.
    assert loss_parts([line(1, loss=-14.2300003, a=-14.2, b=-0.03, c=5.0)]) == ["a", "b"]
    assert loss_parts([line(1, loss=1.0, contrast=1.0, other=3.0)]) == ["contrast"]
    assert loss_parts([line(1, loss=1.0, other=3.0)]) == []
    assert loss_parts([]) == []


def test_images_have_a_curve_of_each_part_though_nothing_is_validated():
    charts = {chart.title: chart.series for chart in training_charts([*IMAGES, line(2, "check", knn=0.4, linear=0.5)])}
    assert list(charts) == [
        "Loss",
        "Part of the loss: contrast",
        "Part of the loss: capacity",
        "Pretraining percentage error: what the nuclear norm lacks of its bound",
        "Accuracy of the checks",
    ]
    (capacity,) = charts["Part of the loss: capacity"]
    assert (capacity.name, capacity.steps, capacity.values) == ("training", (1, 2), (-0.5, -0.6))


def test_frames_have_their_validation_beside():
    lines = [line(1, loss=3.0, local=1.0, **{"global": 2.0}), line(4, "val", loss=2.5, local=1.0, **{"global": 1.5})]
    charts = {chart.title: chart.series for chart in training_charts(lines)}
    assert list(charts) == ["Loss", "Part of the loss: local", "Part of the loss: global"]
    assert [series.values for series in charts["Part of the loss: global"]] == [(2.0,), (1.5,)]


@pytest.mark.parametrize("lines", [[], [line(1, loss=1.0, contrast=1.0)]])
def test_a_loss_of_one_part_is_drawn_once(lines):
    assert [chart.title for chart in training_charts(lines)] == ["Loss"][: len(lines)]
