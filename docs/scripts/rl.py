"""Learning curves of agents: docs/images/rl.svg, docs/results/rl.csv and the tables of docs/rl.md.

    python docs/scripts/rl.py results/rl

Reads what `examples/rl.py` wrote. A curve is the mean over seeds of the returns of finished games, in windows of the
steps (upper row) and of CPU seconds (lower row); thin lines are single seeds.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT.parent / "examples"))

from rl import final_return, interval, print_table  # noqa: E402

FIGURE, OUTPUT = ROOT / "images" / "rl.svg", ROOT / "results" / "rl.csv"
LINES = {
    "scratch": ("#7a4fa3", "CnnPolicy from pixels"),
    "untrained": ("#8a8a8a", "untrained network, frozen"),
    "dim-c+": ("#0a6b52", "DIM-C+, frozen"),
    "dim-c+@output": ("#4fae93", "DIM-C+ and coherence filter, frozen"),
    "st-dim": ("#b1581f", "ST-DIM, frozen"),
}
WINDOWS = 12
Result = dict[str, Any]


def read_results(folder: Path) -> list[Result]:
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    order = list(LINES)
    return sorted(found, key=lambda each: (each["game"], order.index(each["method"]), each["seed"]))


def curve(result: Result, axis: int, end: float) -> NDArray[np.float64]:
    """Mean return of the games that finished in each window of steps (axis 0) or seconds (axis 1); NaN if none did."""
    games = np.array(result["games"], np.float64).reshape(-1, 3)
    window = np.minimum((games[:, axis] / end * WINDOWS).astype(int), WINDOWS - 1)
    return np.array([games[window == each, 2].mean() if (window == each).any() else np.nan for each in range(WINDOWS)])


def draw_panel(panel: Axes, results: list[Result], axis: int) -> None:
    end = max(each[("steps", "seconds")[axis]] for each in results)
    middle = (np.arange(WINDOWS) + 0.5) / WINDOWS * end
    for method, (colour, label) in LINES.items():
        curves = [curve(each, axis, end) for each in results if each["method"] == method]
        if not curves:
            continue
        for each in curves:
            known = ~np.isnan(each)
            panel.plot(middle[known], each[known], color=colour, linewidth=0.6, alpha=0.5)
        with np.errstate(all="ignore"):
            counts = (~np.isnan(curves)).sum(0)
            mean = np.nansum(curves, 0) / counts
        known = counts == len(curves)
        panel.plot(middle[known], mean[known], color=colour, label=label, linewidth=2)
    panel.set_xlabel(("steps", "CPU seconds of one core")[axis], fontsize=9)
    panel.locator_params(axis="x", nbins=4)
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def draw(results: list[Result]) -> None:
    games = list(dict.fromkeys(each["game"] for each in results))
    matplotlib.rcParams["svg.hashsalt"] = "manicap"
    figure = Figure(figsize=(3.6 * len(games), 5.6), layout="constrained")
    panels = figure.subplots(2, len(games), squeeze=False)
    for column, game in enumerate(games):
        own = [each for each in results if each["game"] == game]
        panels[0, column].set_title(game.title(), fontsize=10, loc="left")
        for axis in (0, 1):
            draw_panel(panels[axis, column], own, axis)
    named = {label: line for panel in panels[0] for line, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3, frameon=False)
    figure.supylabel("return of finished games, unclipped", fontsize=10)
    figure.savefig(FIGURE, metadata={"Date": None})


def return_at_seconds(result: Result, seconds: float) -> float | None:
    """Mean return of the games that finished in the last fifth of the first so many seconds."""
    found = [value for _, when, value in result["games"] if 0.8 * seconds < when <= seconds]
    return sum(found) / len(found) if found else None


def print_equal_seconds(results: list[Result]) -> None:
    """All agents of a game after as many seconds as the quickest of them took."""
    print("\n| game | CPU seconds | agent | return |\n|---|---|---|---|")
    for game in dict.fromkeys(each["game"] for each in results):
        own = [each for each in results if each["game"] == game]
        seconds = min(each["seconds"] for each in own)
        for method in dict.fromkeys(each["method"] for each in own):
            values = [return_at_seconds(each, seconds) for each in own if each["method"] == method]
            known = [value for value in values if value is not None]
            print(f"| {game} | {seconds:.0f} | {method} | {interval(known) if known else 'no game finished'} |")


def write_csv(results: list[Result]) -> None:
    with OUTPUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["game", "agent", "seed", "steps", "cpu seconds", "finished games", "return"])
        for each in results:
            final = final_return(each)
            shown = "" if final is None else f"{final:.3f}"
            facts = [each["game"], each["method"], each["seed"], each["steps"], each["seconds"], len(each["games"])]
            writer.writerow([*facts, shown])


def main(folder: Path) -> None:
    results = read_results(folder)
    print_table(results)
    print_equal_seconds(results)
    write_csv(results)
    draw(results)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
