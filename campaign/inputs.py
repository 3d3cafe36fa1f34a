"""Malformed calls and files: refused in one sentence; nothing lost, written elsewhere or wrongly accepted."""

from pathlib import Path

from campaign.calls import CALLS, Call
from campaign.files import Changed, change_file
from campaign.flags import Flag, flags_of
from campaign.flips import ONLY_OUTPUT, choose_file, other_result, why_unseen
from campaign.nonsense import word
from campaign.ranges import GAMES, NAMES, problem
from campaign.surroundings import put_traps
from campaign.trees import Tree, changing, lost, read_tree
from campaign.trials import PartName, Trial, Verdict, fault_of
from campaign.workshop import Reference

COMMAND_SHARE = 0.55
"""Trials that malform the call; the others malform a file that it reads."""
CHOSEN = [name for name, call in CALLS.items() if not call.stop]


def patience(reference: Reference) -> float:
    """Seconds after which a call that goes on working is asked to stop: it has been accepted."""
    return 15 + 5 * reference.ended.seconds


class Inputs:
    name: PartName = "inputs"

    def run(self, trial: Trial) -> Verdict:
        return self._malformed_call(trial) if trial.rng.random() < COMMAND_SHARE else self._malformed_file(trial)

    def _malformed_call(self, trial: Trial) -> Verdict:
        call, reference = trial.choose_stage(CHOSEN)
        trial.lay_out(call)
        put_traps(trial.directory)
        words, told, wrong = malform(trial, call, reference.words)
        encoding = trial.rng.choice(["utf-8"] * 9 + ["latin-1", "ascii"])
        before, outside = read_tree(trial.directory), self._outside(trial)
        ended = trial.call(words, patience(reference), encoding=encoding)
        after = read_tree(trial.directory)
        accepted = ended.code == 0 or ended.was_stopped
        why = fault_of(ended) or self._elsewhere(outside, self._outside(trial))
        why = why or self._loss(call, words, before, after, accepted)
        if not why and accepted and wrong:
            why = f"accepted: {'; '.join(wrong)}"
        return Verdict(f"{call.command}", f"{'; '.join(told)} ({encoding})", why, words=tuple(words))

    def _malformed_file(self, trial: Trial) -> Verdict:
        call, reference = trial.choose_reader()
        trial.lay_out(call)
        place = choose_file(trial, reference)
        changed = change_file(trial.rng, trial.directory / place)
        before, outside = read_tree(trial.directory), self._outside(trial)
        ended = trial.call(reference.words, patience(reference))
        why = fault_of(ended) or self._elsewhere(outside, self._outside(trial))
        if not why and ended.code:
            own = changing(reference.before, reference.after) | {place}
            gone = lost(before, read_tree(trial.directory), own)
            why = f"lost: {'; '.join(gone[:3])}" if gone else ""
        unseen = ""
        if not why and not ended.code and (why := other_result(trial, reference, ended, place)):
            # What is the user's own may ask for something else, but not for nonsense.
            unseen = why_unseen(reference, place) or _not_measured(place, changed, why)
            why = f"accepted: {changed.wrong}" if unseen and changed.wrong else "" if unseen else why
            unseen = "" if why else unseen
        said = f"{call.name}: {changed.what} in {place}"
        return Verdict(f"{call.stage} {_kind(place)}", said, why, unseen, reference.words)

    @staticmethod
    def _loss(call: Call, words: list[str], before: Tree, after: Tree, accepted: bool) -> str:
        """An accepted call may change what is its own; a refused one nothing."""
        gone = lost(before, after)
        if accepted:
            gone = [line for line in gone if line.endswith("is missing") and not _may_go(line, call)]
        return f"lost: {'; '.join(gone[:3])}" if gone else ""

    @staticmethod
    def _outside(trial: Trial) -> Tree:
        """Everything of the trial's that is not under its working directory."""
        inside = str(trial.directory.relative_to(trial.root))
        return {
            place: digest
            for place, digest in read_tree(trial.root).items()
            if not place.startswith((inside, "output/"))
        }

    @staticmethod
    def _elsewhere(before: Tree, after: Tree) -> str:
        new = [place for place in after if after[place] != before.get(place)]
        return f"wrote outside of its working directory: {', '.join(new[:3])}" if new else ""


def _not_measured(place: str, changed: Changed, why: str) -> str:
    """Why a grid may run or plan a cell whose result was removed; the files must be those of an undisturbed call."""
    is_removed = changed.what == "missing" and Path(place).parent.name == "results"
    return "a result that is missing was not measured yet" if is_removed and why == ONLY_OUTPUT else ""


def _may_go(line: str, call: Call) -> bool:
    """A run that was resumed to its end needs no checkpoints any more, a compressed store no array of frames."""
    return call.command in ("data remove", "data convert") or "/checkpoints/" in line


def malform(trial: Trial, call: Call, usual: tuple[str, ...]) -> tuple[list[str], list[str], list[str]]:
    """Words with one to three flags given nonsense, or with words lost, doubled or strange; what is wrong with them."""
    rng, words = trial.rng, list(usual)
    told: list[str] = []
    wrong: list[str] = []
    if rng.random() < 0.1:
        return (*_shuffled(trial, words), [])
    flags = flags_of(call.command, words[len(call.command.split()) :])
    for flag in rng.sample(flags, min(len(flags), rng.choice([1, 1, 1, 1, 2, 2, 3]))):
        count = rng.choice([0, 1, 2, 3]) if flag.is_list else 1
        values = [word(rng, flag.kind) for _ in range(count)]
        told.append(f"{flag.field} = {', '.join(map(_shown, values)) or 'nothing'}")
        wrong += [fault for value in values if (fault := _wrong(flag, value))]
        _place(words, flag, values, len(call.command.split()))
    return words, told or ["no flags"], wrong


def _place(words: list[str], flag: Flag, values: list[str], start: int) -> None:
    """Put the values in the place of those that the call has, or at its end."""
    if flag.is_positional:
        first = next((number for number in range(start, len(words)) if not words[number].startswith("--")), None)
        if first is None or (first > start and words[first - 1].startswith("--")):
            words[start:start] = values
        else:
            words[first : first + 1] = values
        return
    if flag.name in words:
        number = words.index(flag.name)
        stop = next((n for n in range(number + 1, len(words)) if words[n].startswith("--")), len(words))
        del words[number:stop]
    if flag.kind == "bool":
        words.append(f"{flag.name}={values[0]}" if values[0] != "no" else flag.name)
    elif len(values) == 1 and values[0].startswith("-"):
        words.append(f"{flag.name}={values[0]}")  # as one has to write it
    else:
        words += [flag.name, *values]


def _shuffled(trial: Trial, words: list[str]) -> tuple[list[str], list[str]]:
    rng, number = trial.rng, trial.rng.randrange(len(words))
    kind = rng.choice(["lost", "doubled", "strange", "unknown", "help", "swapped", "all"])
    if kind == "lost":
        del words[number]
    elif kind == "doubled":
        words[number:number] = [words[number]]
    elif kind == "strange":
        words[number] = word(rng, "str")
    elif kind == "unknown":
        words.append(rng.choice(["--unknown", "--unknown=1", "-x", "--", "extra"]))
    elif kind == "help":
        words.append("--help")
    elif kind == "swapped":
        other = rng.randrange(len(words))
        words[number], words[other] = words[other], words[number]
    else:
        words = [word(rng, "str") for _ in range(rng.randrange(4))]
    return words, [f"a word {kind}"]


def _wrong(flag: Flag, text: str) -> str:
    """Why no call with this value may be accepted; empty if it may."""
    if flag.is_optional and text == "None":
        return ""
    if flag.kind in ("int", "float"):
        try:
            value = int(text) if flag.kind == "int" else float(text)
        except ValueError:
            return f"{flag.field} is no number: {_shown(text)}"
        return problem(flag.field, value)
    if flag.field == "game" and text.strip().lower() in GAMES:  # spaces around a name are not part of it
        return ""
    if flag.kind == "choice" or flag.field in NAMES:
        return f"{flag.field} is unknown: {_shown(text)}"
    return ""


def _shown(text: str) -> str:
    return repr(text) if len(text) < 60 else f"{text[:20]!r}... ({len(text)} characters)"


def _kind(place: str) -> str:
    name = place.rsplit("/", 1)[-1]
    return name if name.endswith((".toml", ".jsonl")) else "*." + name.rsplit(".", 1)[-1]
