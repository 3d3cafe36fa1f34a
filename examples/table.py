"""The table that every example prints: how well state variables are read off features, untrained ones beside them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # processes that only play import this file too, and need no torch
    from manicap.domains.result import RunResult


def print_table(title: str, results: "list[RunResult]") -> None:
    """One line per state variable: R2 of numbers, F1 of classes. Untrained networks stand before the trained ones."""
    print(f"\n{title}\n")
    names = [result.method for result in results]
    untrained = [result.evaluation.floors["untrained"] for result in results]
    trained = [result.evaluation.scores for result in results]
    if all(scores == untrained[0] for scores in untrained):  # one network, the same initial weights
        heads, columns = ["untrained", *names], [untrained[0], *trained]
    else:
        heads = [word for name in names for word in (f"{name}, untrained", name)]
        columns = [scores for pair in zip(untrained, trained, strict=True) for scores in pair]
    _print_row("variable", "score", *heads)
    _print_row(*["---"] * (2 + len(heads)))
    evaluation = results[0].evaluation
    for variable in evaluation.variables:
        metric = "F1" if evaluation.kinds[variable] == "class" else "R2"
        scores = (getattr(column.variables[variable], metric.lower()) for column in columns)
        _print_row(variable, metric, *(f"{score:.3f}" for score in scores))
    print()
    for result in results:
        if "untrained" in result.evaluation.saved:  # by the ridge probe
            saved = result.evaluation.saved["untrained"].overall
            interval = "" if saved.low is None else f" [{saved.low:.2g}, {saved.high:.2g}]"
            print(f"{result.method}: labels saved {saved}{interval}")
    if evaluation.dropped:
        print(f"hardly varies, and is not scored: {', '.join(evaluation.dropped)}")


def _print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |")
