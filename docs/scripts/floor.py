"""The floor of AtariARI beside what was published: docs/results/probing-floor.csv and the table of docs/probing.md.

    python docs/scripts/floor.py runs [more runs]

Reads the results of the grids `probing-floor` and `probing-floor-wide` from the directories of their runs. Rows of the
file that were not measured again stay.
"""

import csv
import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from statistics import mean

from manicap.atari.games import GAME_LISTS, find_game
from manicap.domains.published import published_scores
from manicap.domains.result import RunResult
from manicap.probing.state_result import StateEvaluation

OUTPUT = Path(__file__).parent.parent / "results" / "probing-floor.csv"
FLOORS = ("majority", "pixels, random", "pixels, principal")
SET, OTHER_SETS = "corrected", ("ari-2019", "ari-2020")
Row = dict[str, str]


def rows_of(runs_dir: Path) -> Iterator[Row]:
    for path in sorted(runs_dir.glob("*/results/*.json")):
        result = RunResult.read(path)
        evaluation = result.evaluation
        if result.method != "random-cnn" or evaluation.probe != "discriminant":
            continue
        yield {
            "game": result.subject,
            "annotations": evaluation.annotation_set,
            "features": str(evaluation.width),
            "seed": str(result.seed),
            "f1": f"{evaluation.f1:.4f}",
            "r2": f"{evaluation.scores.overall.r2:.4f}",
        } | {f"f1 {name}": f"{floor_f1(evaluation, name):.4f}" for name in FLOORS}


def place(row: Row) -> tuple[str, str, int, int]:
    return row["game"], row["annotations"], int(row["features"]), int(row["seed"])


def floor_f1(evaluation: StateEvaluation, name: str) -> float:
    """Of the floor of this name; its number of features may stand behind it."""
    [scores] = [scores for key, scores in evaluation.floors.items() if key.partition(" (")[0] == name]
    return float(scores.f1)


def write_table(rows: list[Row]) -> None:
    """Published columns, which are from the 2019 probe, then the floor, mean over seeds."""
    first = json.loads(files("manicap.domains").joinpath("published.json").read_text())
    by_2019 = first["stdim_paper_arxiv_1906_08226"]["f1_random_agent"]
    widths = sorted({int(row["features"]) for row in rows})
    heads = ["game", "random-cnn", "ST-DIM", "DIM-C+", "supervised", "majority", "pixels", *map(str, widths)]
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "---|" * (len(heads) - 1))
    columns: list[list[float | None]] = []
    for game in GAME_LISTS["paper"]:
        own = [row for row in rows if row["game"] == game and row["annotations"] == SET]
        if not own:
            continue
        old, paper = (
            by_2019[game.replace("_", "")],
            {each.method: each.scores["f1"][0] for each in published_scores(game)},
        )
        values = [old.get("random-cnn"), paper["st-dim"], paper["dim-c+"], old.get("supervised")]
        seeds = {row["seed"]: row for row in own}.values()  # the same pixels stand in the rows of all widths
        values += [mean(float(row[f"f1 {name}"]) for row in seeds) for name in ("majority", "pixels, random")]
        values += [average(own, width) for width in widths]
        columns.append(values)
        print(f"| {find_game(game).title} | " + " | ".join(map(number, values)) + " |")
    means = [
        mean(v for v in column if v is not None) if None not in column else None
        for column in zip(*columns, strict=True)
    ]
    print("| **mean** | " + " | ".join(map(number, means)) + " |")


def write_sets(rows: list[Row]) -> None:
    """Games whose score depends on the annotation set, at 3456 features, over the seeds that have all of them."""
    names = (*OTHER_SETS, SET)
    for game in GAME_LISTS["paper"]:
        by_seed: dict[str, dict[str, float]] = {}
        for row in rows:
            if row["game"] == game and row["features"] == "3456":
                by_seed.setdefault(row["seed"], {})[row["annotations"]] = float(row["f1"])
        complete = [scores for scores in by_seed.values() if len(scores) == len(names)]
        if not complete:
            continue
        means = [mean(scores[name] for scores in complete) for name in names]
        if max(means) - min(means) > 0.005:
            print(f"| {find_game(game).title} | " + " | ".join(map(number, means)) + " |")


def write_seeds(rows: list[Row]) -> None:
    """How far the seeds of one network are apart."""
    for width in sorted({int(row["features"]) for row in rows}):
        ranges = {}
        for game in GAME_LISTS["paper"]:
            own = [
                row
                for row in rows
                if (row["game"], row["annotations"]) == (game, SET) and int(row["features"]) == width
            ]
            if len(own) > 1:
                scores = [float(row["f1"]) for row in own]
                ranges[game] = max(scores) - min(scores)
        if ranges:
            widest = max(ranges, key=lambda game: ranges[game])
            print(
                f"{width} features: from the lowest to the highest seed {mean(ranges.values()):.3f} on average over"
                f" {len(ranges)} games, at most {ranges[widest]:.3f} ({find_game(widest).title})"
            )


def average(rows: list[Row], width: int) -> float | None:
    found = [float(row["f1"]) for row in rows if int(row["features"]) == width]
    return mean(found) if found else None


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def main(directories: list[str]) -> None:
    found = {place(row): row for row in csv.DictReader(OUTPUT.open(newline=""))} if OUTPUT.is_file() else {}
    found |= {place(row): row for directory in directories for row in rows_of(Path(directory))}
    rows = [found[key] for key in sorted(found)]
    with OUTPUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    write_table(rows)
    print()
    write_sets(rows)
    print()
    write_seeds(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
