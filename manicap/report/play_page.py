"""The page of a run on a game, built from the files in its directory: `report.html`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from manicap.atari.annotations import CATEGORIES
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store
from manicap.atari.positions import AxisMap, estimate_positions
from manicap.atari.store import Store, store_path
from manicap.core.config import to_dict
from manicap.core.files import atomic_write
from manicap.domains.result import RunResult
from manicap.probing.metrics import Score as MeasuredScore
from manicap.probing.metrics import Scores
from manicap.probing.state_result import StateEvaluation, StatePredictions
from manicap.report.contents import (
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
from manicap.report.page import build_page
from manicap.report.png import frame_text
from manicap.train.logs import METRICS, read_log

PLAYER_FRAMES = 300
PROBE_NOTES = {
    "linear": "Probes are linear and see frozen features.",
    "logistic": "Probes are logistic regressions, fitted until they converge, and see frozen features.",
    "knn": "The training frames with the nearest frozen features vote on the values of a frame.",
}
POSITION_FRAMES = 1500


def write_play_page(run_dir: Path, data_dir: Path) -> Path:
    """Build `report.html` from `result.json`, `metrics.jsonl`, `predictions.npz` and the probe store.

    What `manicap diagnose` and `manicap nerve` have written is shown too.
    """
    result = RunResult.read(run_dir / "result.json")
    evaluation: StateEvaluation = result.evaluation
    path = run_dir / "report.html"
    page = RunPage(
        title=f"{find_game(result.subject).title}: {result.method}",
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
        probe_note=PROBE_NOTES.get(evaluation.probe, f"The probe is {evaluation.probe} and sees frozen features."),
    )
    atomic_write(path, build_page(page).encode())
    return path


def _categories(evaluation: StateEvaluation) -> list[str]:
    return sorted(evaluation.categories, key=CATEGORIES.index)


def _score(scores: Scores | None, category: str | None) -> Score | None:
    if scores is None:
        return None
    entry: Scores | MeasuredScore = scores if category is None else scores.categories[category]
    return Score(entry.f1, entry.accuracy)


def _row(name: str, result: RunResult, evaluation: StateEvaluation, category: str | None) -> ScoreRow:
    ours = _score(evaluation.scores, category)
    assert ours is not None
    supervised = result.beside.get("supervised")
    return ScoreRow(
        name,
        ours,
        untrained=_score(evaluation.floors.get("untrained"), category),
        majority=_score(evaluation.floors.get("majority"), category),
        supervised=None if supervised is None else _score(supervised.scores, category),
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
    def score(scores: Scores | None, name: str) -> Score | None:
        return None if scores is None else Score(scores.variables[name].f1, scores.variables[name].accuracy)

    found = []
    for category in _categories(evaluation):
        for name in evaluation.categories[category]:
            ours = score(evaluation.scores, name)
            assert ours is not None
            floors = (score(evaluation.floors.get(floor), name) for floor in ("untrained", "majority"))
            found.append(VariableScore(name, category.replace("_", " "), ours, *floors))
    return tuple(found)


def _facts(result: RunResult) -> tuple[Fact, ...]:
    evaluation, above = result.evaluation, result.beside.get("supervised")
    counts = evaluation.counts
    settings = ", ".join(f"{name} {value}" for name, value in to_dict(result.config.settings).items())
    probe_input = result.evaluation_config.probe_input
    entries = {
        "Game": find_game(result.subject).title,
        "Method": f"{result.method} ({settings})",
        "Seed": str(result.seed),
        "Trained on": _training(result),
        "Probed": f"{probe_input}, {evaluation.width:,} features, {evaluation.probe} probe",
        "Probe frames": ", ".join(f"{counts[f'frames_{name}']:,} {name}" for name in ("train", "val", "test")),
        "Protocol": evaluation.protocol,
        "Annotations": evaluation.annotation_set,
        **(
            {"Supervised": f"trained on the labels, with the same budget of steps, {above.width:,} features"}
            if above
            else {}
        ),
        "Versions": ", ".join(f"{name} {number}" for name, number in sorted(result.versions.items())),
    }
    return tuple(Fact(name, value) for name, value in entries.items())


def _training(result: RunResult) -> str:
    steps, frames = result.training.steps, result.config.collect_steps
    if not steps:
        return "nothing: the network keeps its initial weights"
    labels = " with their labels" if result.method == "supervised" else ""
    return f"{frames:,} frames of random play{labels}, {steps:,} steps"


def _player(run_dir: Path, result: RunResult, data_dir: Path) -> Player | None:
    """The longest stretch of test frames, with true and decoded values; None if the store has changed since."""
    evaluation = result.evaluation_config
    path = store_path(evaluation.store_config(result.subject, result.seed), data_dir)
    if not path.is_dir():
        return None
    store = open_store(path)
    if store.fingerprint != result.evaluation.store:
        return None
    predictions = StatePredictions.load(run_dir / "predictions.npz", result.predictions_sha256)
    # A stretch of one life: rows in order, even if duplicates were removed between them.
    lives, counts = np.unique(predictions.episodes, return_counts=True)
    shown = np.flatnonzero(predictions.episodes == lives[counts.argmax()])[:PLAYER_FRAMES]
    rows = predictions.rows[shown]
    return Player(
        frames=tuple(frame_text(store.frames[row]) for row in rows),
        tracks=tuple(
            Track(name, tuple(predictions.true[shown, v].tolist()), tuple(predictions.decoded[shown, v].tolist()))
            for v, name in enumerate(predictions.variables)
        ),
        markers=_markers(store, predictions),
        captions=tuple(f"frame {row}" for row in rows.tolist()),
    )


def _markers(store: Store, predictions: StatePredictions) -> tuple[Marker, ...]:
    """Where RAM values appear on the screen, estimated from the frames; objects without a clear map get no marker."""
    some = np.linspace(0, len(predictions.rows) - 1, min(POSITION_FRAMES, len(predictions.rows))).astype(int)
    labels = {name: predictions.true[some, v] for v, name in enumerate(predictions.variables)}
    maps = estimate_positions(np.array(store.frames[predictions.rows[some]]), labels, predictions.variables)

    def axis(line: AxisMap | None) -> MarkerAxis | None:
        return None if line is None else MarkerAxis(line.slope, line.intercept, line.variable)

    return tuple(Marker(name, axis(m.x), axis(m.y), m.width, m.height) for name, m in maps.items())
