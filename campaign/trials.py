"""A trial: named by its part, seed and index, made in a directory of its own, ended with a verdict."""

import contextlib
import random
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from campaign.calls import CALLS, Call
from campaign.child import Request
from campaign.forking import Ended, ForkServer
from campaign.trees import changing, differences, lost, read_tree, unfinished_logs
from campaign.workshop import Reference, Unprepared, Workshop

PartName = Literal["kills", "inputs", "flips", "disk"]


@dataclass(frozen=True)
class Verdict:
    """What came of a trial."""

    stage: str
    what: str
    """What was done, so that a reader can judge."""
    why: str = ""
    """Why it did not hold; empty if it held."""
    unseen: str = ""
    """Why no check can see it, where that was said beforehand."""
    words: tuple[str, ...] = ()
    """The call."""
    strikes: int = 1
    """Kills that fell, or other disturbances, in this trial."""


@dataclass(frozen=True)
class Done:
    index: int
    verdict: Verdict
    kept: Path | None
    """Directory of a trial that did not hold."""


class Part(Protocol):
    """One kind of disaster."""

    name: PartName

    def run(self, trial: "Trial") -> Verdict: ...


class Trial:
    """The place and the randomness of one trial."""

    def __init__(
        self, part: PartName, seed: int, index: int, workshop: Workshop, server: ForkServer, calls: Collection[str]
    ) -> None:
        self.index, self.workshop, self.server, self.calls = index, workshop, server, calls
        self.rng = random.Random(f"{part} {seed} {index}")
        self.root = workshop.directory / "trials" / f"{part}-{seed}-{index}"
        self.directory = self.root / "a" / "b" / "work"
        """Working directory of the calls: two directories deep, so that `../../x` stays in the trial's own."""
        self.output = self.root / "output"
        self.cleanup = contextlib.ExitStack()
        """What is to be undone when the trial has been judged and, if need be, kept."""

    def choose(self, calls: Iterable[str]) -> tuple[Call, Reference]:
        """One of these calls, or of those among them that the campaign was told to keep to."""
        names = sorted({*calls} & {*self.calls}) if self.calls else sorted(calls)
        if not names:
            raise Unprepared(f"none of the calls that were named is of use here: {', '.join(self.calls)}")
        call = CALLS[self.rng.choice(names)]
        return call, self.workshop.reference(call, self.server)

    def choose_stage(self, calls: Iterable[str]) -> tuple[Call, Reference]:
        """A call of a command that is as likely as any other, however many calls there are of it."""
        names = sorted({*calls} & {*self.calls} or calls)
        command = self.rng.choice(sorted({CALLS[name].command for name in names}))
        return self.choose(name for name in names if CALLS[name].command == command)

    def choose_reader(self) -> tuple[Call, Reference]:
        """A call that reads files which others have left; every stage is as likely as any other."""
        readers = [call for call in CALLS.values() if call.needs and not call.stop]
        readers = [call for call in readers if call.name in self.calls] or readers
        while True:
            stage = self.rng.choice(sorted({call.stage for call in readers}))
            call, reference = self.choose(call.name for call in readers if call.stage == stage)
            if reference.reads:
                return call, reference

    def lay_out(self, call: Call) -> None:
        """The files that the call finds."""
        self.workshop.lay_out(call, self.directory, self.server)

    def call(self, words: Iterable[str], limit: float, **changes: object) -> Ended:
        request = Request(tuple(words), self.directory, self.output, limit, **changes)  # type: ignore[arg-type]
        return self.server.call(request)


def run_trials(
    part: Part,
    seed: int,
    indexes: Iterable[int],
    workshop: Workshop,
    servers: list[ForkServer],
    keep: Callable[[Trial, Verdict], Path],
    calls: Collection[str] = (),
) -> Iterator[Done]:
    """The verdict of each trial, as they come; a trial that did not hold is kept, the others are removed."""
    free = list(servers)

    def run(index: int) -> Done:
        server = free.pop()
        trial = Trial(part.name, seed, index, workshop, server, calls)
        with trial.cleanup:
            try:
                verdict = part.run(trial)
            except Unprepared as error:
                verdict = Verdict("(prepare)", "a call without any disturbance", str(error))
            finally:
                free.append(server)
            kept = keep(trial, verdict) if verdict.why else None
        shutil.rmtree(trial.root, ignore_errors=True)
        return Done(index, verdict, kept)

    with ThreadPoolExecutor(len(servers)) as pool:
        running: set[Future[Done]] = set()
        try:
            for index in indexes:
                running.add(pool.submit(run, index))
                if len(running) == len(servers):
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            for future in running:
                yield future.result()
        except BaseException:  # Ctrl-C: trials under way end at once, with their servers
            for server in servers:
                server.close()
            raise


def loss_in(trial: Trial, reference: Reference) -> str:
    """What the call found and is gone or changed now, but for what it changes itself when it is left alone."""
    own = changing(reference.before, reference.after) | unfinished_logs(reference.before)
    gone = lost(reference.before, read_tree(trial.directory), own)
    return f"lost: {'; '.join(gone[:3])}" if gone else ""


def finish(trial: Trial, reference: Reference) -> str:
    """Make the call once more and leave it alone: why it does not end as if it had never been disturbed."""
    ended = trial.call(reference.words, reference.limit)
    if why := fault_of(ended):
        return why
    if ended.code:
        return f"refused to go on: {ended.stderr.strip()[-300:]}"
    found = differences(reference.after, read_tree(trial.directory))
    return f"{len(found)} files are not those of an undisturbed call: {'; '.join(found[:3])}" if found else ""


def fault_of(ended: Ended) -> str:
    """What is wrong with the way a call ended, whatever it was about: empty if it succeeded or said why it did not."""
    if ended.was_killed:
        return ""
    if ended.hung:
        return "hung, and did not end on SIGTERM"
    if ended.code < 0:
        return f"ended by {signal.Signals(-ended.code).name}: {_tail(ended)}"
    if "Traceback (most recent call last)" in ended.stderr + ended.stdout:
        return f"traceback: {_tail(ended)}"
    if ended.was_stopped:
        return "" if ended.code in (0, 143) else f"ended with code {ended.code} after SIGTERM: {_tail(ended)}"
    if ended.code not in (0, 1, 2):
        return f"ended with code {ended.code}: {_tail(ended)}"
    if ended.code and not says_why(ended):
        return f"ended with code {ended.code} and not with one sentence: {_tail(ended)}"
    return ""


def says_why(ended: Ended) -> bool:
    """One line that begins with `manicap:` at the end, or the parser's box."""
    lines = ended.stderr.strip().splitlines()
    if ended.code == 2 and lines and re.search("[╯┘]$|For full helptext", ended.stderr.strip()):
        return True
    return bool(lines) and bool(re.match(r"manicap: \S", lines[-1]))


def quoted(words: Iterable[str]) -> str:
    """A call as one would type it, shortened where a word is thousands of characters long."""
    shown = (word if len(word) < 200 else f"{word[:100]}...({len(word)} characters)" for word in words)
    return " ".join(["manicap", *map(shlex.quote, shown)])


def _tail(ended: Ended) -> str:
    lines = ended.stderr.strip().splitlines()
    return lines[-1][:300] if lines else "(nothing on stderr)"
