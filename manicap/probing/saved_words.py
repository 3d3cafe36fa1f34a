"""Labels saved in words, the same on a page and in the terminal.

    str(saved_sentence(evaluation.saved["untrained"], "untrained", num_draws=5))
    # 200 labelled frames do what 7,500 do on the untrained network: 37 x fewer, 95 % interval 20 to 60 over 5 draws.

An encoder that needs more labels than the floor is said to, and a factor that may as well be 1 is not called better.
"""

from collections.abc import Sequence
from statistics import geometric_mean
from typing import NamedTuple

from manicap.probing.labels_saved import Bound, LabelsSaved, Saved, joined_bound

FLOORS = {
    "untrained": "the untrained network",
    "pixels, random": "random projections of the pixels",
    "pixels, principal": "principal components of the pixels",
    "supervised": "the supervised network",
}
OPPOSITE: dict[Bound, Bound] = {"at most": "at least", "at least": "at most", "": ""}


class SavedSentence(NamedTuple):
    before: str
    number: str
    """The words to emphasise."""
    after: str

    def __str__(self) -> str:
        return "".join(self)


def floor_words(name: str) -> str:
    """A floor as it stands in a sentence; its width, if it differs from the encoder's, stays behind it."""
    plain, _, width = name.partition(" (")
    return FLOORS.get(plain, plain) + (f" ({width}" if width else "")


def two_digits(value: float) -> str:
    """Two significant digits: 7463 is `7,500`, 37.3 is `37`, 1.04 is `1`."""
    return f"{float(f'{value:.2g}'):,g}"


def factor_words(saved: Saved) -> str:
    """`37 x`, `at least 12 x`"""
    return f"{saved.bound} {two_digits(saved.factor)} x".strip()


def overall_words(saved: LabelsSaved) -> str:
    """The factor over all variables, unless neither reads any."""
    return "nothing read" if reads_nothing(saved) else factor_words(saved.overall)


def reads_nothing(saved: LabelsSaved) -> bool:
    return len(saved.unread) == len(saved.variables)


def interval_words(saved: Saved) -> str:
    """`20 to 60`; one end if the factor is only a bound, empty if there was one draw."""
    if saved.low is None or saved.high is None:
        return ""
    low, high = two_digits(saved.low), two_digits(saved.high)
    return {"at least": f"from {low} up", "at most": f"up to {high}", "": f"{low} to {high}"}[saved.bound]


def saved_sentence(saved: LabelsSaved, floor: str, num_draws: int, samples: str = "frames") -> SavedSentence:
    """What the encoder's labels are worth on the floor."""
    other, overall, at = floor_words(floor), saved.overall, f"{saved.at:,} labelled {samples}"
    if reads_nothing(saved):
        return SavedSentence(
            f"With {at} ", "nothing is readable", f", neither from the encoder nor from {other}: no labels are saved."
        )
    worth = f"{overall.bound} {two_digits(saved.floor_labels)}".strip()
    if _may_be_one(overall):
        interval = _over_draws(overall, num_draws)
        return SavedSentence(
            f"{at} do what {worth} do on {other}: ",
            factor_words(overall),
            f"{interval}, which is no clear difference.",
        )
    if overall.factor > 1:
        before, number, found = f"{at} do what {worth} do on {other}: ", " fewer", overall
    else:
        before, number = f"{at} do only what {worth} do on {other}: the encoder needs ", " more"
        found = _inverse(overall)
    return SavedSentence(before, factor_words(found) + number, f"{_over_draws(found, num_draws)}.")


def terminal_sentence(saved: LabelsSaved, floor: str, num_draws: int) -> str:
    """The factor first, by its name, then what it means."""
    sentence = str(saved_sentence(saved, floor, num_draws))
    return sentence if reads_nothing(saved) else f"Labels saved: {factor_words(saved.overall)}. {sentence}"


def unread_sentence(saved: LabelsSaved) -> str:
    """The variables that count as 1 x because neither reads them; empty if there are none, or no others."""
    if not saved.unread or reads_nothing(saved):
        return ""
    return f"Read from neither with {saved.at:,} labels, counted as 1 x: {', '.join(saved.unread)}."


def seeds_sentence(found: Sequence[LabelsSaved], floor: str) -> str:
    """Over several seeds: the geometric mean of the factors, and their range."""
    if all(map(reads_nothing, found)):
        return str(saved_sentence(found[0], floor, num_draws=1))
    factors = [each.overall.factor for each in found]
    bound = joined_bound(each.overall.bound for each in found)
    mean = factor_words(Saved(geometric_mean(factors), None, None, bound))
    return (
        f"Labels saved against {floor_words(floor)} at {found[0].at:,} labels: {mean}, geometric mean over"
        f" {len(found)} seeds ({two_digits(min(factors))} to {two_digits(max(factors))})."
    )


def _may_be_one(saved: Saved) -> bool:
    """Whether the interval, open on the side to which a bound leaves it open, contains 1."""
    low = saved.factor if saved.low is None else saved.low
    high = saved.factor if saved.high is None else saved.high
    return (low <= 1 or saved.bound == "at most") and (high >= 1 or saved.bound == "at least")


def _inverse(saved: Saved) -> Saved:
    low, high = (None if end is None else 1 / end for end in (saved.high, saved.low))
    return Saved(1 / saved.factor, low, high, OPPOSITE[saved.bound])


def _over_draws(saved: Saved, num_draws: int) -> str:
    interval = interval_words(saved)
    return f", 95 % interval {interval} over {num_draws} draws" if interval else ""
