"""What the scale of features does to a probe: docs/results/probing-scale.csv and the table of docs/probing.md.

    python docs/scripts/scale.py runs

Reads the results of the grid `probing-scale` from the directory of its runs. Rows of the file that were not measured
again stay.
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


def place(row: Row) -> tuple[str, str, str, int]:
    return row["game"], row["probe"], row["features"], int(row["seed"])


def write_table(rows: list[Row]) -> None:
    """F1 of ST-DIM and of the same network untrained, in brackets, for the games that were probed in every way."""
    ways = [(probe, scale) for probe in PROBES for scale in SCALES if pick(rows, probe, scale)]
    games = sorted({row["game"] for row in rows})
    games = [game for game in games if sum(row["game"] == game for row in rows) == len(ways)]
    print("| probe | features | " + " | ".join(find_game(game).title for game in games) + " |")
    print("|---|---|" + "---|" * len(games))
    for probe, scale in ways:
        cells = [cell([row for row in pick(rows, probe, scale) if row["game"] == game]) for game in games]
        print(f"| {probe} | {SCALES[scale]} | " + " | ".join(cells) + " |")


def pick(rows: list[Row], probe: str, scale: str) -> list[Row]:
    return [row for row in rows if row["probe"] == probe and row["features"] == scale]


def cell(rows: list[Row]) -> str:
    if not rows:
        return ""
    trained, untrained = (mean(float(row[name]) for row in rows) for name in ("f1", "untrained f1"))
    return f"{trained:.2f} ({untrained:.2f})"


def main(runs_dir: Path) -> None:
    found = {place(row): row for row in csv.DictReader(OUTPUT.open(newline=""))} if OUTPUT.is_file() else {}
    found |= {place(row): row for row in rows_in(runs_dir)}
    rows = [found[key] for key in sorted(found)]
    with OUTPUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_table(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
