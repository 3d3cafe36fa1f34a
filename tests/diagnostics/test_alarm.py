from manicap.diagnostics.alarm import LIMITS, collapse_alarms, within_limits


def test_a_sound_representation_raises_no_alarm():
    measured = {"effective_rank_centered": 40.0, "spread": 0.6, "dead_fraction": 0.1, "head_cosine": 0.3}
    assert collapse_alarms(measured) == []


def test_every_limit_has_its_alarm_and_states_itself():
    past = {limit.measure: limit.value + (1 if limit.side == "at most" else -1e-3) for limit in LIMITS}
    alarms = collapse_alarms(past)
    assert len(alarms) == len(LIMITS)
    assert all(f"(should be {x.side} {x.value:g})" in alarm for alarm, x in zip(alarms, LIMITS, strict=True))


def test_at_the_limit_there_is_no_alarm_yet():
    assert collapse_alarms({limit.measure: limit.value for limit in LIMITS}) == []


def test_the_sentence():
    assert collapse_alarms({"effective_rank_centered": 1.02}) == [
        "rank collapse: the features vary along 1.02 directions (should be at least 3)"
    ]


def test_an_undefined_measure_is_an_alarm():
    assert collapse_alarms({"head_cosine": float("nan")}) == [
        "similar heads: the mean cosine of their outputs is undefined (should be at most 0.98)"
    ]


def test_without_an_alarm_the_numbers_are_told_and_nothing_is_claimed():
    measured = {"effective_rank_centered": 12.345, "dead_fraction": 0.57, "lidar": 3.0}
    assert collapse_alarms(measured) == []
    assert within_limits(measured) == (
        "all measures are within their limits: centred effective rank 12.3 (at least 3),"
        " fraction of dead units 0.57 (at most 0.9)"
    )
    assert within_limits({}) == "no measure with a limit was taken"
