"""Which regularizers raise the norm, the measured capacity, the score: docs/results/regularizers.csv and its tables.

    python docs/scripts/regularizers.py runs data

Reads the runs of the grids `regularizers` and `regularizers-laptop` (or of `manicap run` with their settings) in a
directory, diagnoses those that are not diagnosed yet, and compares each with the run without a regularizer of the same
game and seed.
"""

import csv
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.runs import RunDiagnosis
from manicap.domains.result import RunResult
from manicap.jobs.diagnosis import diagnose_run
from manicap.probing.reading import Reading
from manicap.probing.state_result import ENCODER
from manicap.train.logs import DIAGNOSTICS, read_log

OUTPUT = Path(__file__).parent.parent / "results" / "regularizers.csv"
NONE, UNTRAINED, COUNTS = "none", "untrained", (50, 200)
SHARES = ("regularizer_loss_share", "regularizer_gradient_share")
COMPARED = ("norm percent", "capacity", "glue capacity", "score 50", "score 200", "f1")
Row = dict[str, str | float]


def mean_score(reading: Reading, count: int) -> float:
    """Mean over draws and variables, as far as the labels go."""
    scores = reading.scores(tuple(reading.curves))[:, reading.counts.index(count)]
    return float(np.nanmean(scores, 0).clip(0).mean())


def shares_of(run_dir: Path) -> Row:
    """Means over the second half of training, if the run was diagnosed on the way."""
    lines = read_log(run_dir, DIAGNOSTICS)
    found = {name: [line[name] for line in lines[len(lines) // 2 :] if name in line] for name in SHARES}
    return {name.removeprefix("regularizer_"): float(np.mean(each)) if each else "" for name, each in found.items()}


def diagnosis_of(run_dir: Path, data_dir: Path) -> RunDiagnosis:
    path = run_dir / "diagnostics.json"
    return RunDiagnosis.read(path) if path.is_file() else diagnose_run(run_dir, data_dir=data_dir, quiet=True)


def row_of(run_dir: Path, data_dir: Path) -> Row:
    [path] = (run_dir / "results").glob("*.json")
    result, found = RunResult.read(path), diagnosis_of(run_dir, data_dir)
    settings, readings = result.config.settings, result.evaluation.readings
    row: Row = {
        "game": result.subject,
        "seed": result.seed,
        "regularizer": getattr(settings, "regularizer", None) or "capacity",
        "target ratio": getattr(settings, "target_ratio", None) or "",
        "steps": result.training.steps,
        **shares_of(run_dir),
        "norm percent": 100 - found.measures["centroid_percent_error"],
        "head cosine": found.measures["head_cosine"],
        "capacity": found.measures["manifold_capacity"],
        "glue capacity": found.measures["glue_capacity"],
        "effective rank": found.measures["effective_rank_centered"],
    }
    for count in (*COUNTS, readings[ENCODER].counts[-1]):
        name = str(count) if count in COUNTS else "all"
        row[f"score {name}"] = mean_score(readings[ENCODER], count)
        row[f"untrained {name}"] = mean_score(readings[UNTRAINED], count)
    return row | {"f1": result.evaluation.f1, "untrained f1": result.evaluation.floors[UNTRAINED].f1}


def write_table(rows: list[Row]) -> None:
    heads = (
        "game",
        "regularizer",
        "ratio",
        "gradient",
        "norm, %",
        "capacity",
        "GLUE",
        "50 labels",
        "200",
        "all",
        "exact F1",
    )
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for row in rows:
        scores = [f"{row[f'score {n}']:.3f} ({row[f'untrained {n}']:.3f})" for n in ("50", "200", "all")]
        share = "" if row["gradient_share"] == "" else f"{row['gradient_share']:.3f}"
        cells = [row["game"], row["regularizer"], row["target ratio"], share, f"{row['norm percent']:.1f}"]
        cells += [f"{row['capacity']:.3f}", f"{row['glue capacity']:.3f}", *scores]
        cells += [f"{row['f1']:.3f} ({row['untrained f1']:.3f})"]
        print("| " + " | ".join(map(str, cells)) + " |")


def changes(rows: list[Row]) -> NDArray[np.float64]:
    """What each regularizer changed, [runs, measures]: the difference to none of the same game and seed."""
    floors = {(row["game"], row["seed"]): row for row in rows if row["regularizer"] == NONE}
    pairs = [(row, floors[row["game"], row["seed"]]) for row in rows if row["regularizer"] != NONE]
    return np.array([[float(row[name]) - float(floor[name]) for name in COMPARED] for row, floor in pairs])


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Spearman's, without ties."""
    return float(np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1])


def main(runs_dir: Path, data_dir: Path) -> None:
    finished = [path.parent.parent for path in sorted(runs_dir.glob("*/results/*.json"))]
    rows = [row_of(run_dir, data_dir) for run_dir in finished]
    rows.sort(key=lambda row: (str(row["game"]), str(row["seed"]), str(row["target ratio"]), str(row["regularizer"])))
    with OUTPUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{x:.4f}" if isinstance(x, float) else x for key, x in row.items()})
    write_table(rows)
    found = changes(rows)
    for place, name in enumerate(COMPARED):
        print(f"{name}: raised in {int((found[:, place] > 0).sum())} of {len(found)} runs")
    for one, other in combinations(range(len(COMPARED)), 2) if len(found) > 2 else ():
        value = rank_correlation(found[:, one], found[:, other])
        print(f"rank correlation of the changes of {COMPARED[one]} and {COMPARED[other]}: {value:+.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
