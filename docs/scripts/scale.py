"""What the scale of features does to a probe: docs/results/probing-scale.csv and the table of docs/probing.md.

    python docs/scripts/scale.py runs

Reads the results of the grid `probing-scale` from the directory of its runs.
"""

import csv
import sys
from pathlib import Path
from statistics import mean

from manicap.atari.games import find_game
from manicap.domains.result import RunResult

OUTPUT = Path(__file__).parent.parent / "results" / "probing-scale.csv"
SCALES = {
    "none": "as they are",
    "tenth": "x 0.1",
    "tenfold": "x 10",
    "standardised": "standardised",
    "whitened": "whitened",
}
PROBES = ("linear", "ridge")
Row = dict[str, str]


def rows_in(runs_dir: Path) -> list[Row]:
    found = []
    for path in sorted(runs_dir.glob("*/results/*.json")):
        result = RunResult.read(path)
        evaluation = result.evaluation
        if result.evaluation_config.probe_input != "output" or result.method != "st-dim":
            continue
        found.append(
            {
                "game": result.subject,
                "probe": evaluation.probe,
                "features": evaluation.probe_options["rescaling"],
                "width": str(evaluation.width),
                "seed": str(result.seed),
                "steps": str(result.training.steps),
                "f1": f"{evaluation.f1:.4f}",
                "untrained f1": f"{evaluation.floors['untrained'].f1:.4f}",
            }
        )
    return found


def write_table(rows: list[Row]) -> None:
    """F1 of ST-DIM and of the same network untrained, in brackets."""
    columns = [(probe, scale) for probe in PROBES for scale in SCALES if pick(rows, probe, scale)]
    print("| game | " + " | ".join(f"{probe}, {SCALES[scale]}" for probe, scale in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for game in sorted({row["game"] for row in rows}):
        own = [row for row in rows if row["game"] == game]
        print(f"| {find_game(game).title} | " + " | ".join(cell(pick(own, *column)) for column in columns) + " |")
    print("| **mean** | " + " | ".join(cell(pick(rows, *column)) for column in columns) + " |")


def pick(rows: list[Row], probe: str, scale: str) -> list[Row]:
    return [row for row in rows if row["probe"] == probe and row["features"] == scale]


def cell(rows: list[Row]) -> str:
    if not rows:
        return ""
    trained, untrained = (mean(float(row[name]) for row in rows) for name in ("f1", "untrained f1"))
    return f"{trained:.2f} ({untrained:.2f})"


def main(runs_dir: Path) -> None:
    rows = rows_in(runs_dir)
    with OUTPUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_table(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
