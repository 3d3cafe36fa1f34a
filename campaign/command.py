"""The campaign's command line."""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from campaign.calls import CALLS
from campaign.disk import Disk
from campaign.flips import Flips
from campaign.forking import ForkServer, load_everything
from campaign.inputs import Inputs
from campaign.kills import Kills
from campaign.table import Tally, write_report
from campaign.trials import Part, PartName, Trial, Verdict, quoted, run_trials
from campaign.workshop import Workshop, read_small_cifar10
from manicap.core.errors import UserError, unknown_choice
from manicap.core.progress import Tracker

PARTS: dict[PartName, type[Part]] = {"kills": Kills, "inputs": Inputs, "flips": Flips, "disk": Disk}
MEMORY_DISK = Path("/dev/shm")
"""A killed process loses nothing that it has written, so a disk in memory is as good and does not wait for fsync."""
MEMORY_NEEDED = 3 * 2**30
"""References of all calls take 1 GB; the rest is for the trials under way."""
KEPT_TREES = 20
"""Failures of a part whose files are kept; of further ones only the output is."""


def campaign(
    parts: Annotated[tuple[PartName, ...], tyro.conf.Positional] = ("kills", "inputs", "flips", "disk"),
    trials: int = 200,
    seed: int = 0,
    only: tuple[int, ...] = (),
    calls: tuple[str, ...] = (),
    workers: int = 1,
    scratch: Path | None = None,
    failures: Path = Path("campaign-failures"),
) -> None:
    """Kill, feed with nonsense, flip bits and fill disks; tell what did not hold. Exit code 1 if anything did not.

    A trial again, alone: python -m campaign flips --seed 0 --only 137

    Args:
        parts: kills, inputs, flips, disk; all of them if absent.
        trials: Trials of each part.
        seed: A trial is named by part, seed and number, and does the same whenever it is made.
        only: Numbers of the trials to make, of one part.
        calls: Keep to these calls, named as in campaign/calls.py.
        workers: Trials at a time.
        scratch: Directory to work in, removed afterwards; in memory where that is possible, if absent.
        failures: Where what did not hold is kept.
    """
    indexes = only or tuple(range(trials))
    for name in calls:
        if name not in CALLS:
            raise unknown_choice("call", name, CALLS)
    load_everything()
    read_small_cifar10()
    if scratch is None and MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > MEMORY_NEEDED:
        scratch = MEMORY_DISK
    tally, console = Tally(seed, calls), Console()
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(ForkServer()) for _ in range(workers)]
        directory = Path(tempfile.mkdtemp(prefix="campaign-", dir=scratch))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        workshop = Workshop(directory)
        try:
            for name in dict.fromkeys(parts):
                with Tracker(name, len(indexes), "trials") as tracker:
                    keep = Keeper(failures / name)
                    for done in run_trials(PARTS[name](), seed, indexes, workshop, servers, keep, calls):
                        tally.add(name, done)
                        if done.verdict.why:
                            tracker.say(
                                f"{name} {done.index} did not hold: {done.verdict.what}: {done.verdict.why[:300]}"
                            )
                        tracker.advance(detail=f"{tally.num_failures} did not hold")
        except KeyboardInterrupt:
            console.print("interrupted; so far:")
    tally.print(console)
    if tally.num_failures:
        write_report(failures / "report.txt", tally)
        sys.exit(1)


class Keeper:
    """Puts aside what a trial has left that did not hold."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.kept = directory, 0

    def __call__(self, trial: Trial, verdict: Verdict) -> Path:
        target = self.directory / trial.root.name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        (target / "what.txt").write_text(
            f"{verdict.what}\n{verdict.why}\n{quoted(verdict.words)}\n", errors="backslashreplace"
        )
        self.kept += 1
        source = trial.root if self.kept <= KEPT_TREES else trial.output
        if source.exists():
            shutil.copytree(source, target / source.name, symlinks=True, ignore_dangling_symlinks=True)
        return target


def main() -> None:
    try:
        tyro.cli(campaign, prog="python -m campaign")
    except UserError as error:
        sys.exit(f"campaign: {error}")
