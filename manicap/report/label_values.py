"""What the page shows of an evaluation with label curves, from its readings."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from manicap.probing.curve_result import ENCODER, UNTRAINED
from manicap.probing.labels_saved import LabelsSaved, comparison_count
from manicap.probing.layers import LABELS
from manicap.probing.reading import Reading
from manicap.probing.saved_words import (
    interval_words,
    overall_words,
    reads_nothing,
    saved_sentence,
    two_digits,
    unread_sentence,
)
from manicap.probing.state_result import StateEvaluation
from manicap.report.contents import BitsRow, Chart, ControlRow, LabelReading, LayerRow, SavedRow, Series

OURS = "this run"
LOWEST = -0.25
"""Where label charts end below; R2 has no lower bound."""


def label_reading(evaluation: StateEvaluation, others: Mapping[str, StateEvaluation]) -> LabelReading | None:
    """None for a probe without label curves. `others` are shown beside the floors."""
    if ENCODER not in evaluation.readings:
        return None
    own, untrained = evaluation.readings[ENCODER], evaluation.readings.get(UNTRAINED)
    readings = _ordered(evaluation, others)
    return LabelReading(
        sentence=_sentence(evaluation, own),
        num_labels=comparison_count(own.counts),
        note=unread_sentence(evaluation.saved[_floor(evaluation)]) if evaluation.saved else "",
        curve=_mean_chart(readings, evaluation.variables),
        saved=_saved(evaluation),
        variables=tuple(_variable_chart(name, evaluation, own, untrained) for name in evaluation.variables),
        widths=_widths(own, untrained),
        layers=_layers(own, untrained),
        layers_note=f"Mean score of every layer, read by the same probe from {LABELS:,} labels at most; widest first.",
        controls=_controls(evaluation, own, untrained),
        bits=_bits(evaluation, own, untrained),
    )


def reading_warnings(evaluation: StateEvaluation) -> tuple[str, ...]:
    """Fits whose settings may not be the best, of the encoder and of each floor."""
    found = []
    for name in [ENCODER, *sorted(set(evaluation.readings) - {ENCODER})]:
        reading = evaluation.readings.get(name)
        if reading is None:
            continue
        of = OURS if name == ENCODER else name
        if reading.at_end:
            found.append(
                f"The regularization chosen for {', '.join(reading.at_end)} ({of}) lies at the end of its grid; one"
                " beyond it might score higher."
            )
        if reading.unconverged:
            fits = "1 fit" if reading.unconverged == 1 else f"{reading.unconverged} fits"
            found.append(f"{fits} of names ({of}) stopped before convergence; more steps might score higher.")
    return tuple(found)


def _floor(evaluation: StateEvaluation) -> str:
    """The floor of the headline: the untrained network, if it was probed."""
    return UNTRAINED if UNTRAINED in evaluation.saved else sorted(evaluation.saved)[0]


def _sentence(evaluation: StateEvaluation, own: Reading) -> tuple[str, str, str]:
    if not evaluation.saved:
        return ("No floor was probed in the same way, so ", "labels saved is unknown", ".")
    floor = _floor(evaluation)
    return saved_sentence(evaluation.saved[floor], floor, _num_draws(own))


def _num_draws(reading: Reading) -> int:
    return len(next(iter(reading.curves.values())))


def _ordered(evaluation: StateEvaluation, others: Mapping[str, StateEvaluation]) -> dict[str, Reading]:
    """By the name that is shown: this run, the untrained network, then the others."""
    floors = sorted(set(evaluation.readings) - {ENCODER}, key=lambda name: (name != UNTRAINED, name))
    beside = {name: each.readings[ENCODER] for name, each in others.items() if ENCODER in each.readings}
    return {OURS: evaluation.readings[ENCODER], **{name: evaluation.readings[name] for name in floors}, **beside}


def _mean_chart(readings: Mapping[str, Reading], variables: tuple[str, ...]) -> Chart:
    series = (label_series(name, each.counts, each.scores(variables).mean(2)) for name, each in readings.items())
    return _label_chart("Mean score over variables: R², F1 for names", tuple(series))


def _variable_chart(name: str, evaluation: StateEvaluation, own: Reading, untrained: Reading | None) -> Chart:
    found = {OURS: own} if untrained is None else {OURS: own, "untrained": untrained}
    series = (label_series(shown, each.counts, each.scores((name,))[:, :, 0]) for shown, each in found.items())
    return _label_chart(f"{name}, {'F1' if evaluation.kinds[name] == 'class' else 'R²'}", tuple(series))


def label_series(name: str, counts: tuple[int, ...], scores: NDArray[np.float64]) -> Series:
    """Scores [draws, counts]: the mean of the draws, and their range."""
    mean, low, high = (tuple(f(scores, axis=0).tolist()) for f in (np.nanmean, np.nanmin, np.nanmax))
    return Series(name, counts, mean, low, high)


def _label_chart(title: str, series: tuple[Series, ...]) -> Chart:
    lowest = min(value for each in series for value in each.low if math.isfinite(value))
    return Chart(title, series, "labels", logarithmic=True, limits=(min(0.0, max(lowest, LOWEST)), 1.0))


def _saved(evaluation: StateEvaluation) -> tuple[SavedRow, ...]:
    floors = sorted(evaluation.saved, key=lambda name: (name != UNTRAINED, name))
    return tuple(_saved_row(floor, evaluation.saved[floor]) for floor in floors)


def _saved_row(floor: str, saved: LabelsSaved) -> SavedRow:
    worth = "–" if reads_nothing(saved) else f"{saved.overall.bound} {two_digits(saved.floor_labels)}".strip()
    return SavedRow(floor, overall_words(saved), interval_words(saved.overall), worth)


def _widths(own: Reading, untrained: Reading | None) -> Chart | None:
    if not own.components:
        return None
    found = {f"{OURS}, components": own.components}
    if untrained is not None:
        found["untrained, components"] = untrained.components
    found[f"{OURS}, random"] = own.random
    if untrained is not None:
        found["untrained, random"] = untrained.random
    series = tuple(
        Series(name, tuple(sorted(scores)), tuple(scores[k] for k in sorted(scores))) for name, scores in found.items()
    )
    lowest = min(value for each in series for value in each.values)
    limits = (min(0.0, max(lowest, LOWEST)), 1.0)
    return Chart("Mean R² by number of directions", series, "directions", logarithmic=True, limits=limits)


def _layers(own: Reading, untrained: Reading | None) -> tuple[LayerRow, ...]:
    """Widest first, which is the order of the network; a result's file does not keep that."""
    floor = {} if untrained is None else untrained.layers
    return tuple(
        LayerRow(name, width, score, floor[name][1] if name in floor else None)
        for name, (width, score) in sorted(own.layers.items(), key=lambda item: (-item[1][0], item[0]))
    )


def _controls(evaluation: StateEvaluation, own: Reading, untrained: Reading | None) -> tuple[ControlRow, ...]:
    return tuple(
        ControlRow(
            name,
            _with_all_labels(own, name),
            own.control[name],
            None if untrained is None else _with_all_labels(untrained, name),
            None if untrained is None else untrained.control[name],
        )
        for name in evaluation.variables
        if name in own.control
    )


def _with_all_labels(reading: Reading, variable: str) -> float:
    score = reading.curves[variable][0][-1]
    assert score is not None  # the first draw has all sizes
    return score


def _bits(evaluation: StateEvaluation, own: Reading, untrained: Reading | None) -> tuple[BitsRow, ...]:
    return tuple(
        BitsRow(
            name,
            own.bits[name] / 1000,
            None if untrained is None else untrained.bits[name] / 1000,
            own.plain_bits / 1000,
        )
        for name in evaluation.variables
    )
