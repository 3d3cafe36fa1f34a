"""Labels saved in words: fewer, more, bounds, no clear difference, nothing readable."""

import pytest

from manicap.probing.labels_saved import LabelsSaved, Saved
from manicap.probing.saved_words import (
    floor_words,
    interval_words,
    overall_words,
    saved_sentence,
    seeds_sentence,
    terminal_sentence,
    two_digits,
    unread_sentence,
)


def saved(factor, low=None, high=None, bound="", unread=(), variables=("ball_x", "ball_y")):
    each = {name: Saved(factor, low, high, bound) for name in variables}
    return LabelsSaved(200, Saved(factor, low, high, bound), each, unread)


@pytest.mark.parametrize(
    ("value", "shown"), [(7463, "7,500"), (37.3, "37"), (1.04, "1"), (0.426, "0.43"), (175, "180"), (35000, "35,000")]
)
def test_two_significant_digits(value, shown):
    assert two_digits(value) == shown


def test_fewer_labels():
    # 37.3 x 200 = 7,460.
    assert str(saved_sentence(saved(37.3, 20.4, 60.3), "untrained", 5)) == (
        "200 labelled frames do what 7,500 do on the untrained network: 37 x fewer,"
        " 95 % interval 20 to 60 over 5 draws."
    )
    assert saved_sentence(saved(37.3, 20.4, 60.3), "untrained", 5).number == "37 x fewer"


def test_more_labels_than_the_floor_are_said_to_be_more():
    # 1 / 0.4 = 2.5, and the ends of the interval change places: 1 / 0.5 = 2, 1 / 0.25 = 4.
    assert str(saved_sentence(saved(0.4, 0.25, 0.5), "pixels, random", 5)) == (
        "200 labelled frames do only what 80 do on random projections of the pixels: the encoder needs 2.5 x more,"
        " 95 % interval 2 to 4 over 5 draws."
    )


@pytest.mark.parametrize("found", [saved(1.1, 0.8, 1.5), saved(0.9, 0.8, 1.5), saved(1.0)])
def test_an_interval_with_1_in_it_is_no_clear_difference(found):
    sentence = str(saved_sentence(found, "untrained", 5))
    assert sentence.endswith("which is no clear difference.")
    assert "fewer" not in sentence
    assert "more" not in sentence


def test_a_lower_bound_has_no_upper_end():
    assert str(saved_sentence(saved(12.5, 12, 13, "at least"), "untrained", 5)) == (
        "200 labelled frames do what at least 2,500 do on the untrained network: at least 12 x fewer,"
        " 95 % interval from 12 up over 5 draws."
    )
    # At least 0.5 may be anything above it, also 1.
    assert str(saved_sentence(saved(0.5, 0.4, 0.6, "at least"), "untrained", 5)).endswith("no clear difference.")


def test_an_upper_bound_below_1_is_a_lower_bound_of_the_labels_needed():
    assert saved_sentence(saved(0.25, 0.2, 0.5, "at most"), "untrained", 5).number == "at least 4 x more"
    assert interval_words(Saved(0.25, 0.2, 0.5, "at most")) == "up to 0.5"
    assert str(saved_sentence(saved(4.0, 3, 5, "at most"), "untrained", 5)).endswith("no clear difference.")


def test_one_draw_has_no_interval():
    assert str(saved_sentence(saved(2.0), "untrained", 1)) == (
        "200 labelled frames do what 400 do on the untrained network: 2 x fewer."
    )
    assert interval_words(Saved(2.0, None, None, "")) == ""


def test_nothing_readable_is_no_factor_of_1():
    found = saved(1.0, 1.0, 1.0, unread=("ball_x", "ball_y"))
    for sentence in (str(saved_sentence(found, "untrained", 5)), terminal_sentence(found, "untrained", 5)):
        assert sentence == (
            "With 200 labelled frames nothing is readable, neither from the encoder nor from the untrained network:"
            " no labels are saved."
        )
    assert seeds_sentence([found, found], "untrained").startswith("With 200 labelled frames nothing is readable")
    assert overall_words(found) == "nothing read"
    assert unread_sentence(found) == ""


def test_variables_that_neither_reads_are_named():
    assert unread_sentence(saved(2.0, unread=("ball_y",))) == (
        "Read from neither with 200 labels, counted as 1 x: ball_y."
    )


def test_a_floor_of_another_width_keeps_it():
    assert floor_words("pixels, principal (256)") == "principal components of the pixels (256)"
    assert floor_words("mine") == "mine"


def test_seeds_are_averaged_as_factors():
    # The geometric mean of 1, 2 and 32 is the cube root of 64; the arithmetic one would be 11.7.
    sentence = seeds_sentence([saved(1.0), saved(2.0), saved(32.0, bound="at least")], "untrained")
    assert sentence == (
        "Labels saved against the untrained network at 200 labels: at least 4 x, geometric mean over 3 seeds (1 to 32)."
    )
    assert ": 4 x," in seeds_sentence([saved(2.0, bound="at most"), saved(8.0, bound="at least")], "untrained")
