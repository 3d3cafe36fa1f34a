"""The page of a run on a game, built from the files in its directory: `report.html`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.config import to_dict
from manicap.core.files import atomic_write
from manicap.domains.result import RunResult
from manicap.play.categories import in_order
from manicap.play.places import AxisMap, PixelMap
from manicap.probing.curve_result import UNTRAINED
from manicap.probing.metrics import Score as MeasuredScore
from manicap.probing.metrics import Scores
from manicap.probing.saved_words import factor_words
from manicap.probing.state_result import StateEvaluation, StatePredictions
from manicap.report.contents import (
    TOLERANCE,
    Fact,
    Marker,
    MarkerAxis,
    Player,
    PublishedScore,
    RunPage,
    Score,
    ScoreRow,
    Track,
    VariableScore,
)
from manicap.report.curves import training_charts
from manicap.report.diagnostics import observation_charts, read_diagnosis
from manicap.report.label_values import label_reading, reading_warnings
from manicap.report.page import build_page
from manicap.report.png import frame_text
from manicap.report.run_command import again
from manicap.train.logs import METRICS, read_log

PLAYER_FRAMES = 300
PROBE_NOTES = {
    "ridge": "The probe is ridge: places and numbers are read from frozen features by ridge regression, names by"
    " logistic regression, with all training labels.",
    "discriminant": "Probes are penalized discriminant analyses, solved exactly, of frozen features, with all training"
    " labels.",
    "linear": "Probes are linear and see frozen features.",
    "logistic": "Probes are logistic regressions, fitted until they converge, and see frozen features.",
    "knn": "The training frames with the nearest frozen features vote on the values of a frame.",
}
PUBLISHED_NOTE = (
    "The published numbers were measured with the 2019 code's linear probe, this run with {probe}: the columns are not"
    " comparable."
)
KINDS = {"class": "name"}
"""What a kind is called on the page, if not by its own name."""
PAGE_HEIGHT = 210
"""Of a frame in the units of markers: pixels of Atari's."""


def write_play_page(run_dir: Path, data_dir: Path) -> Path:
    """Build `report.html` from `result.json`, `metrics.jsonl`, `predictions.npz` and the probe store.

    What `manicap diagnose` and `manicap nerve` have written is shown too.
    """
    result = RunResult.read(run_dir / "result.json")
    evaluation: StateEvaluation = result.evaluation
    path = run_dir / "report.html"
    page = RunPage(
        title=f"{result.domain.subject_title(result.subject)}: {result.method}",
        method=result.method,
        overall=_overall(result),
        converged=_converged(result),
        rows=tuple(_row(name.replace("_", " "), result, evaluation, name) for name in _categories(evaluation)),
        caveat="; ".join(result.differences_from_paper) + "." if result.differences_from_paper else "",
        facts=_facts(result),
        variables=_variables(evaluation),
        charts=(*training_charts(read_log(run_dir, METRICS)), *observation_charts(run_dir)),
        player=_player(run_dir, result, data_dir),
        diagnosis=read_diagnosis(run_dir),
        published_source=result.domain.source,
        probe=evaluation.probe,
        probe_note=_probe_note(evaluation),
        published_note="" if evaluation.probe == "linear" else PUBLISHED_NOTE.format(probe=evaluation.probe),
        labels=label_reading(evaluation, result.beside),
        left_out=_left_out(evaluation),
        warnings=reading_warnings(evaluation),
        commands=tuple(Fact(*each) for each in again(result, f"runs/{run_dir.name}")),
    )
    atomic_write(path, build_page(page).encode())
    return path


def _probe_note(evaluation: StateEvaluation) -> str:
    note = PROBE_NOTES.get(evaluation.probe, f"The probe is {evaluation.probe} and sees frozen features.")
    if evaluation.annotation_set == "recorded":
        note += " The exact value of a real number is its bin, one of ten of equal frequency."
    return note


def _categories(evaluation: StateEvaluation) -> list[str]:
    return in_order(evaluation.categories)


def _shown(score: MeasuredScore, with_error: bool) -> Score:
    error = score.error if with_error else None
    return Score(score.f1, score.accuracy, macro_f1=score.macro_f1, r2=score.r2, error=error)


def _row(name: str, result: RunResult, evaluation: StateEvaluation, category: str | None) -> ScoreRow:
    members = () if category is None else evaluation.categories[category]
    # Units of places are alike, those of numbers are not.
    are_places = bool(members) and all(evaluation.kinds[member] == "place" for member in members)

    def score(scores: Scores) -> Score:
        return _shown(scores.overall if category is None else scores.categories[category], are_places)

    def floor(key: str) -> Score | None:
        return score(evaluation.floors[key]) if key in evaluation.floors else None

    majority = floor("majority")
    supervised = result.beside.get("supervised")
    return ScoreRow(
        name,
        score(evaluation.scores),
        untrained=floor("untrained"),
        majority=None if majority is None else replace(majority, r2=None),  # the mean, not a mode, has R2 0
        supervised=None if supervised is None else score(supervised.scores),
    )


def _overall(result: RunResult) -> ScoreRow:
    def published(scores: Mapping[str, tuple[float, float | None]]) -> Score:
        (f1, f1_std), (accuracy, accuracy_std) = scores["f1"], scores["accuracy"]
        return Score(f1, accuracy, f1_std, accuracy_std)

    row = _row("mean over categories", result, result.evaluation, None)
    entries = (PublishedScore(entry.method, published(entry.scores)) for entry in result.published)
    return replace(row, published=tuple(entries))


def _converged(result: RunResult) -> ScoreRow | None:
    if "converged" not in result.beside:
        return None
    return replace(_row("mean, converged probe", result, result.beside["converged"], None), supervised=None)


def _variables(evaluation: StateEvaluation) -> tuple[VariableScore, ...]:
    untrained = evaluation.saved.get(UNTRAINED)
    saved = {} if untrained is None else untrained.variables
    found = []
    for category in _categories(evaluation):
        for name in evaluation.categories[category]:
            floors = {key: _shown(scores.variables[name], True) for key, scores in evaluation.floors.items()}
            kind = evaluation.kinds[name]
            found.append(
                VariableScore(
                    name,
                    category.replace("_", " "),
                    _shown(evaluation.scores.variables[name], True),
                    untrained=floors.get("untrained"),
                    majority=floors.get("majority"),
                    kind=KINDS.get(kind, kind),
                    saved=factor_words(saved[name]) if name in saved else "",
                    unseen=evaluation.unseen.get(name),
                )
            )
    return tuple(found)


def _left_out(evaluation: StateEvaluation) -> tuple[str, ...]:
    """Variables, frames and lives that do not count, a sentence each."""
    counts, found = evaluation.counts, []
    if evaluation.dropped:
        found.append(f"Variables that hardly vary: {', '.join(evaluation.dropped)}.")
    uncounted = sorted(set(evaluation.scores.variables) - set(evaluation.variables))
    if uncounted:
        found.append(f"Variables in no category, which were read but do not count: {', '.join(uncounted)}.")
    if counts.get("test_frames_seen_in_training"):
        found.append(f"Test frames that also occur in training: {counts['test_frames_seen_in_training']:,}.")
    if counts.get("episodes_too_short"):
        frames = counts["frames_in_short_episodes"]
        found.append(f"Lives that are too short: {counts['episodes_too_short']:,}, with {frames:,} frames.")
    return tuple(found)


def _facts(result: RunResult) -> tuple[Fact, ...]:
    evaluation, above = result.evaluation, result.beside.get("supervised")
    counts = evaluation.counts
    settings = ", ".join(f"{name} {value}" for name, value in to_dict(result.config.settings).items())
    probe_input = result.evaluation_config.probe_input
    entries = {
        result.domain.subject_field.capitalize(): result.domain.subject_title(result.subject),
        "Method": f"{result.method} ({settings})",
        "Seed": str(result.seed),
        "Trained on": _training(result),
        "Frames": evaluation.view,
        "Probed": f"{probe_input}, {evaluation.width:,} features, {evaluation.probe} probe",
        "Probe frames": ", ".join(f"{counts[f'frames_{name}']:,} {name}" for name in ("train", "val", "test")),
        "Protocol": evaluation.protocol,
        "Annotations": evaluation.annotation_set,
        **(
            {"Supervised": f"trained on the labels, with the same budget of steps, {above.width:,} features"}
            if above
            else {}
        ),
        "Took": ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in sorted(evaluation.seconds.items()))
        + f" ({evaluation.threads} thread{'s' * (evaluation.threads != 1)})",
        "Versions": ", ".join(f"{name} {number}" for name, number in sorted(result.versions.items())),
    }
    return tuple(Fact(name, value) for name, value in entries.items())


def _training(result: RunResult) -> str:
    steps, frames = result.training.steps, result.config.collect_steps
    if not steps:
        return "nothing: the network keeps its initial weights"
    labels = " with their labels" if result.method == "supervised" else ""
    policy = getattr(result.config, "policy", "random")
    kind = "random play" if policy == "random" else f"play by {policy}"
    return f"{frames:,} frames of {kind}{labels}, {steps:,} steps"


def _player(run_dir: Path, result: RunResult, data_dir: Path) -> Player | None:
    """The longest stretch of test frames, with true and decoded values; None if the store has changed since."""
    store = result.domain.play(result.config, result.evaluation_config, data_dir)
    if store is None or store.fingerprint != result.evaluation.store:
        return None
    predictions = StatePredictions.load(run_dir / "predictions.npz", result.predictions_sha256)
    # A stretch of one life: rows in order, even if duplicates were removed between them.
    lives, counts = np.unique(predictions.episodes, return_counts=True)
    shown = np.flatnonzero(predictions.episodes == lives[counts.argmax()])[:PLAYER_FRAMES]
    rows, tolerances = predictions.rows[shown], _tolerances(predictions)
    true, decoded = (each[shown] for each in (predictions.true_shown, predictions.shown))
    in_colour = result.config.colour and store.has_colour
    shown_frames = store.colour_frames(rows) if in_colour else store.frames[rows]
    height, width = shown_frames.shape[1:3]
    unit = PAGE_HEIGHT / height
    return Player(
        frames=tuple(frame_text(frame) for frame in shown_frames),
        tracks=tuple(
            Track(name, tuple(_short(true[:, v])), tuple(_short(decoded[:, v])), tolerances[v])
            for v, name in enumerate(predictions.variables)
        ),
        markers=_markers(result.domain.places(result.evaluation_config, store, predictions), unit),
        captions=tuple(f"frame {row}" for row in rows.tolist()),
        frame_width=unit * width,
        frame_height=unit * height,
    )


def _short(values: NDArray[Any]) -> list[float]:
    """Whole numbers as they are, others with four digits: they are read by people."""
    if np.array_equal(values, values.round()):
        return list(values.astype(np.int64).tolist())
    return [float(f"{value:.4g}") for value in values.tolist()]


def _tolerances(predictions: StatePredictions) -> list[float]:
    """Exact values must be right; regressed ones may be off by a share of the variable's range."""
    if predictions.numbers is None:
        return [0] * len(predictions.variables)
    true = predictions.true_shown.astype(np.float64)
    near = TOLERANCE * (true.max(0) - true.min(0))
    near = np.where((true == true.round()).all(0), near.round(), near)
    return [float(each) for each in np.where(np.isnan(predictions.numbers).all(0), 0, near)]


def _markers(places: Mapping[str, PixelMap], unit: float) -> tuple[Marker, ...]:
    """In units of `PAGE_HEIGHT`, so that marks are equally large on frames of any size."""

    def axis(line: AxisMap | None) -> MarkerAxis | None:
        if line is None:
            return None
        return MarkerAxis(unit * line.slope, unit * (line.intercept + 0.5) - 0.5, line.variable)

    return tuple(
        Marker(name, axis(found.x), axis(found.y), unit * found.width, unit * found.height)
        for name, found in places.items()
    )
