"""What was tried, what held and what did not."""

import shlex
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from campaign.trials import Done, PartName, quoted

SHOWN = 3
"""Failures of a stage that the table tells of; all are listed below it."""


@dataclass
class _Row:
    tried: int = 0
    strikes: int = 0
    unseen: int = 0
    failures: list[Done] = field(default_factory=list)


class Tally:
    """The verdicts so far."""

    def __init__(self, seed: int, calls: Collection[str] = ()) -> None:
        """Both are part of what repeats a trial."""
        self.flags = f"--seed {seed}" + (f" --calls {shlex.join(calls)}" if calls else "")
        self.rows: dict[tuple[PartName, str], _Row] = defaultdict(_Row)

    def add(self, part: PartName, done: Done) -> None:
        row = self.rows[part, done.verdict.stage]
        row.tried += 1
        row.strikes += done.verdict.strikes
        row.unseen += bool(done.verdict.unseen)
        if done.verdict.why:
            row.failures.append(done)

    @property
    def num_failures(self) -> int:
        return sum(len(row.failures) for row in self.rows.values())

    def print(self, console: Console) -> None:
        table = Table()
        for name in ("part", "stage", "tried", "strikes", "held", "cannot be seen", "did not hold", "why"):
            table.add_column(name, justify="left" if name in ("part", "stage", "why") else "right", overflow="fold")
        for (part, stage), row in sorted(self.rows.items()):
            whys = list(dict.fromkeys(_short(done.verdict.why) for done in row.failures))[:SHOWN]
            held = row.tried - len(row.failures) - row.unseen
            numbers = (row.tried, row.strikes, held, row.unseen, len(row.failures))
            table.add_row(part, stage, *map(str, numbers), escape("\n".join(whys)))
        console.print(table)
        for (part, _), row in sorted(self.rows.items()):
            for done in row.failures:
                console.print(_describe(part, self.flags, done), markup=False, highlight=False, soft_wrap=True)


def _describe(part: PartName, flags: str, done: Done) -> str:
    verdict = done.verdict
    return (
        f"\n{part} {done.index}: {verdict.what}\n  {verdict.why}\n  the call: {quoted(verdict.words)}\n"
        f"  again:    python -m campaign {part} {flags} --only {done.index}\n  kept in:  {done.kept}"
    )


def _short(why: str) -> str:
    return why if len(why) < 160 else why[:157] + "..."


def write_report(path: Path, tally: Tally) -> None:
    with path.open("w", errors="backslashreplace") as file:  # values that are no text are reported too
        tally.print(Console(file=file, width=200))
