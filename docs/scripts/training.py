"""What training is worth: docs/results/training.csv, docs/images/training.svg and tables of training.md and probing.md.

    python docs/scripts/training.py runs

Reads the results of the grids `probing-labels` and `training` from the directory of their runs, which the two share.
Rows of the file that were not measured again stay; the figure is drawn if the runs of `training` are there. Each
encoder stands beside its own untrained network, and beside the untrained network that sees pixels / 255: what another
input does for both is no gain of training. `quick` is read behind its filter and before it, and the filter also stands
alone, on the untrained network.
"""

import csv
import math
import sys
from collections.abc import Iterable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from manicap.atari.games import find_game
from manicap.domains.result import RunResult
from manicap.probing.reading import Reading
from manicap.probing.state_result import ENCODER

OUTPUT = Path(__file__).parent.parent / "results" / "training.csv"
FIGURE = Path(__file__).parent.parent / "images" / "training.svg"
METHOD = "dim-c+"
LINES = {
    f"{METHOD}, quick": ("#0a6b52", "-", "DIM-C+ as quick trains it"),
    f"{METHOD}, quick, untrained": ("#0a6b52", ":", "untrained, frames as quick sees them"),
    METHOD: ("#b1581f", "-", "DIM-C+ as published, equal seconds"),
    f"{METHOD}, untrained": ("#b1581f", ":", "untrained, pixels / 255"),
}
"""Colour, stroke and name of the curves."""
TRAININGS = {
    METHOD: "as published",
    f"{METHOD}, quick": "`quick`",
    f"{METHOD}, quick, no filter": "`quick`, before its filter",
    f"{METHOD}, filter only": "filter alone, untrained",
}
PUBLISHED = {"st-dim": "ST-DIM", "dim-ua": "DIM-UA", METHOD: "DIM-C+"}
UNTRAINED, PLAIN, COUNTS = "untrained", "untrained, pixels / 255", (50, 200)
Row = dict[str, str]


def results_in(runs_dir: Path) -> list[RunResult]:
    found = (RunResult.read(path) for path in sorted(runs_dir.glob("*/results/*.json")))
    asked = (result for result in found if result.evaluation.probe == "ridge")
    return [result for result in asked if column(result)]


def column(result: RunResult) -> str:
    """`dim-c+`, `dim-c+, quick` and the like; empty for a reading that is not shown. All have the backbone's width."""
    is_output = result.evaluation_config.probe_input == "output"
    if sees_plain_frames(result):
        return "" if is_output else result.method  # as published, the two are one or differ in width
    if result.training.steps == 1:
        return f"{result.method}, filter only" if is_output else ""
    return f"{result.method}, quick" if is_output else f"{result.method}, quick, no filter"


def sees_plain_frames(result: RunResult) -> bool:
    return getattr(result.config.settings, "input", "scaled") == "scaled"


def plain_floors(results: Iterable[RunResult]) -> dict[tuple[str, int], Reading]:
    """By game and seed: the curves of the untrained network that sees pixels / 255."""
    floors = {}
    for result in results:
        if sees_plain_frames(result):
            floors[result.subject, result.seed] = result.evaluation.readings[UNTRAINED]
    return floors


def mean_score(reading: Reading, count: int) -> float:
    """Mean over draws and variables, as far as the labels go."""
    place = reading.counts.index(count)
    scores = reading.scores(tuple(reading.curves))[:, place]
    return float(np.nanmean(scores, 0).clip(0).mean())


def row_of(result: RunResult, floors: dict[tuple[str, int], Reading]) -> Row:
    evaluation = result.evaluation
    ours, own = (evaluation.readings[name] for name in (ENCODER, UNTRAINED))
    plain = floors.get((result.subject, result.seed))
    row = {"game": result.subject, "training": column(result), "seed": str(result.seed)}
    row |= {"steps": str(result.training.steps)}
    for count in (*COUNTS, ours.counts[-1]):
        name = "all" if count == ours.counts[-1] else str(count)
        row |= {f"score {name}": f"{mean_score(ours, count):.4f}", f"own {name}": f"{mean_score(own, count):.4f}"}
        row[f"plain {name}"] = "" if plain is None else f"{mean_score(plain, count):.4f}"
    row |= {"f1": f"{evaluation.f1:.4f}", "own f1": f"{evaluation.floors[UNTRAINED].f1:.4f}"}
    if plain is not None:
        evaluation.readings[PLAIN] = plain
    for name, floor in (("own", UNTRAINED), ("plain", PLAIN)):
        saved = evaluation.saved[floor].overall if floor in evaluation.readings else None
        row[f"saved {name}"] = "" if saved is None else f"{saved.factor:.3f}"
        row[f"saved {name} low"] = "" if saved is None or saved.low is None else f"{saved.low:.3f}"
        row[f"saved {name} high"] = "" if saved is None or saved.high is None else f"{saved.high:.3f}"
        row[f"saved {name} bound"] = "" if saved is None else saved.bound
    return row


def place(row: Row) -> tuple[str, str, int]:
    return row["game"], row["training"], int(row["seed"])


def write_trainings(rows: list[Row]) -> None:
    """The table of training.md: DIM-C+ as published and as quick trains it."""
    chosen = [row for row in rows if row["training"] in TRAININGS]
    scores = ("50 labels", "200", "all", "exact F1", "labels saved", "beside pixels / 255")
    write_head("game", "training", *scores)
    for row in chosen:
        print("| " + " | ".join(cells_of(row)) + " |")
    print()
    write_head("training", "games", *scores)
    for training in TRAININGS:
        if own := [row for row in chosen if row["training"] == training]:
            print(mean_line(TRAININGS[training], own))


def write_methods(rows: list[Row]) -> None:
    """The table of probing.md: methods as published."""
    published: dict[str, dict[str, Row]] = {method: {} for method in PUBLISHED}
    for row in rows:
        if row["training"] in PUBLISHED:
            published[row["training"]][row["game"]] = row
    print()
    heads = (f"{title}, {name}" for title in PUBLISHED.values() for name in ("200", "saved"))
    write_head("game", "untrained, 200 labels", *heads)
    for game in published[METHOD]:
        floor = float(published[METHOD][game]["own 200"])
        cells = [find_game(game).title, f"{floor:.2f}"]
        for found in published.values():
            row = found.get(game)
            cells += ["", ""] if row is None else [f"{float(row['score 200']):.2f}", factor(row, "own")]
        print("| " + " | ".join(cells) + " |")


def write_head(*heads: str) -> None:
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")


def cells_of(row: Row) -> list[str]:
    scores = [f"{float(row[f'score {n}']):.2f} ({float(row[f'own {n}']):.2f})" for n in ("50", "200", "all")]
    f1 = f"{float(row['f1']):.3f} ({float(row['own f1']):.3f})"
    names = [find_game(row["game"]).title, TRAININGS[row["training"]]]
    return [*names, *scores, f1, factor(row, "own"), factor(row, "plain")]


def mean_line(training: str, rows: list[Row]) -> str:
    """Means over the games, geometric for labels saved; in brackets the untrained networks."""

    def mean(name: str) -> float:
        return sum(float(row[name]) for row in rows) / len(rows)

    def geometric(name: str) -> str:
        known = [math.log(float(row[name])) for row in rows if row[name]]
        return f"{math.exp(sum(known) / len(known)):.1f}" if len(known) == len(rows) else ""

    scores = [f"{mean(f'score {count}'):.2f} ({mean(f'own {count}'):.2f})" for count in ("50", "200", "all")]
    f1 = f"{mean('f1'):.3f} ({mean('own f1'):.3f})"
    cells = (training, str(len(rows)), *scores, f1, geometric("saved own"), geometric("saved plain"))
    return "| " + " | ".join(cells) + " |"


def draw(results: list[RunResult]) -> None:
    """Label curves of DIM-C+, quick and published, and of their untrained networks, a panel for each game."""
    chosen = [result for result in results if result.method == METHOD and result.seed == 0]
    games = sorted({result.subject for result in chosen})
    matplotlib.rcParams["svg.hashsalt"] = "manicap"
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    panels = figure.subplots(2, math.ceil(len(games) / 2), sharex=True, squeeze=False).flatten()
    for panel, game in zip(panels, games, strict=False):
        curves = {}
        for result in chosen:
            if result.subject == game:
                readings = result.evaluation.readings
                curves |= {column(result): readings[ENCODER], f"{column(result)}, untrained": readings[UNTRAINED]}
        draw_panel(panel, find_game(game).title, curves)
    for panel in panels[len(games) :]:
        panel.remove()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    for panel in panels[len(panels) // 2 :]:
        panel.set_xlabel("labelled frames", fontsize=9)
    figure.supylabel("mean score over the variables", fontsize=10)
    figure.savefig(FIGURE, metadata={"Date": None})


def draw_panel(panel: Axes, title: str, curves: dict[str, Reading]) -> None:
    for name, (colour, stroke, label) in LINES.items():
        if name in curves:
            scores = [mean_score(curves[name], count) for count in curves[name].counts]
            panel.plot(curves[name].counts, scores, stroke, color=colour, label=label, linewidth=1.8)
    panel.set_title(title, fontsize=10, loc="left")
    panel.set_xscale("log")
    panel.set_xticks([50, 200, 1000, 5000], ["50", "200", "1,000", "5,000"])
    panel.minorticks_off()
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def factor(row: Row, floor: str) -> str:
    if not row[f"saved {floor}"]:
        return ""
    sign = {"at least": "≥ ", "at most": "≤ "}.get(row[f"saved {floor} bound"], "")
    low, high = (float(row[f"saved {floor} {end}"] or "nan") for end in ("low", "high"))
    return f"{sign}{float(row[f'saved {floor}']):.1f} [{low:.1f}, {high:.1f}]"


def main(runs_dir: Path) -> None:
    results = results_in(runs_dir)
    floors = plain_floors(results)
    found = {place(row): row for row in csv.DictReader(OUTPUT.open(newline=""))} if OUTPUT.is_file() else {}
    found |= {place(row): row for row in (row_of(result, floors) for result in results)}
    rows = [found[key] for key in sorted(found)]
    with OUTPUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_trainings(rows)
    write_methods(rows)
    if any(column(result) == f"{METHOD}, quick" for result in results):
        draw(results)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
