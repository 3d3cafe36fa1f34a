"""What a page and a table show of the label curves of classes."""

from collections.abc import Iterator, Sequence

import numpy as np

from manicap.probing.class_result import CLASS, ClassEvaluation
from manicap.probing.curve_result import ENCODER, UNTRAINED
from manicap.probing.reading import Reading
from manicap.probing.saved_words import saved_sentence, seeds_sentence
from manicap.report.contents import Chart
from manicap.report.image_contents import ClassLabels
from manicap.report.label_values import label_series

PUBLISHED_NOTE = (
    "The published numbers are of another probe: following the code of arXiv 2104.13712, a linear layer trained on new"
    " views in every epoch."
)


def is_probed_as_published(evaluation: ClassEvaluation) -> bool:
    """Whether the accuracies are those of the probe that the published numbers are said to be of."""
    return evaluation.probe == "linear" and evaluation.probe_options.get("features") == "augmented"


def class_labels(evaluation: ClassEvaluation) -> ClassLabels | None:
    """Labels saved against the untrained network, and the label curves; None without them."""
    if UNTRAINED not in evaluation.saved:
        return None
    readings = {name: evaluation.readings[key] for name, key in (("this run", ENCODER), ("untrained", UNTRAINED))}
    series = tuple(label_series(name, each.counts, each.scores((CLASS,))[:, :, 0]) for name, each in readings.items())
    highest = max(value for each in series for value in each.high)
    title = "F1 by number of labelled images"
    return ClassLabels(
        _sentence(evaluation),
        Chart(title, series, "labels", logarithmic=True, limits=(0.0, highest or 1.0)),
        tuple(text for name, each in readings.items() for text in _warnings(name, each)),
    )


def _sentence(evaluation: ClassEvaluation) -> tuple[str, str, str]:
    num_draws = len(evaluation.readings[ENCODER].curves[CLASS])
    return saved_sentence(evaluation.saved[UNTRAINED], UNTRAINED, num_draws, "images")


def _warnings(name: str, reading: Reading) -> list[str]:
    found = []
    if reading.at_end:
        found.append(f"The regularization chosen with all labels ({name}) lies at the end of its grid.")
    if reading.unconverged:
        total = sum(score is not None for draw in reading.curves[CLASS] for score in draw)
        found.append(f"{reading.unconverged} of {total} fits ({name}) stopped before convergence.")
    return found


def label_rows(evaluations: Sequence[ClassEvaluation]) -> Iterator[tuple[str, list[list[float]]]]:
    """F1 of the encoder and of the untrained network, one number per seed; nothing without label curves.

    With as few labels as are compared for labels saved, and with all.
    """
    if not all(UNTRAINED in each.saved for each in evaluations):
        return
    counts = evaluations[0].readings[ENCODER].counts
    for count in dict.fromkeys((evaluations[0].saved[UNTRAINED].at, counts[-1])):
        place = counts.index(count)
        columns = [[_mean_f1(each.readings[name], place) for each in evaluations] for name in (ENCODER, UNTRAINED)]
        yield f"F1, logistic, {count:,} labels", columns


def _mean_f1(reading: Reading, place: int) -> float:
    """Over the draws that have this number of labels."""
    return float(np.nanmean(reading.scores((CLASS,))[:, place, 0]))


def table_notes(evaluations: Sequence[ClassEvaluation], has_published: bool) -> str:
    """Labels saved over seeds, and which probe each number is from."""
    found = []
    if all(UNTRAINED in each.saved for each in evaluations):
        saved = [each.saved[UNTRAINED] for each in evaluations]
        said = "".join(_sentence(evaluations[0])) if len(saved) == 1 else seeds_sentence(saved, UNTRAINED)
        found.append(f"{said} F1 and labels saved: a logistic regression fitted to convergence.")
    if has_published and not is_probed_as_published(evaluations[0]):
        found.append(PUBLISHED_NOTE)
    return " ".join(found)
