"""One bit or byte changed in a file that a later call reads: the call gives the same result, or says what is wrong.

Half of the flips leave the file's time stamp as it was, as decay of a disk does. Stores and images are hashed again
only when a time stamp has changed (reading gigabytes at every start would cost minutes): there `data verify` must find
it.
"""

import os
from fnmatch import fnmatch
from pathlib import Path

from campaign.forking import Ended
from campaign.trees import Tree, changing, differences, lost, read_tree
from campaign.trials import PartName, Trial, Verdict, fault_of
from campaign.workshop import Reference

OTHER = "another result"
ONLY_OUTPUT = f"{OTHER}, and no word: stdout differs"
HASHED_ONCE = ("data/*", "pictures/*")
"""Where bytes with an unchanged time stamp are the business of `data verify`."""
MUST_NOTICE = ("data verify",)
"""Calls for which the same result as before is the wrong one."""
UNSEEN = {
    "points.npy": "points are the user's: other points are another request",
    "pictures/*.png": "nothing is known of images before their first use; runs carry their hash",
    "data/cifar10/cifar-10-batches-bin/*": "nothing is known of images before their first use; runs carry their hash",
    "*.toml": "a grid file is typed by the user: another character is another request, and runs carry their config",
    "*/metrics.jsonl": "a curve on a page: the numbers behind it are in the result, which is checked",
    "*/diagnostics.jsonl": "a curve on a page",
}
"""Files in which a flip can make another sound text that no check can tell from what was meant."""


class Flips:
    name: PartName = "flips"

    def run(self, trial: Trial) -> Verdict:
        call, reference = trial.choose_reader()
        trial.lay_out(call)
        place = choose_file(trial, reference)
        path, is_silent = trial.directory / place, trial.rng.random() < 0.5
        what = flip(trial, path, is_silent)
        before = read_tree(trial.directory)
        ended = trial.call(reference.words, reference.limit)
        said = f"{call.name}: {what} of {place}{', time stamp kept' if is_silent else ''}"
        why = fault_of(ended) or self._loss(trial, before, reference, place, ended)
        if not why and ended.code == 0:
            why = other_result(trial, reference, ended, place)
            if call.name in MUST_NOTICE and not why:
                why = "not noticed by the command that is there to notice it"
        unseen = ""
        if why.startswith(OTHER):
            found_later = is_silent and _matches(place, HASHED_ONCE) and self._found_by_verify(trial)
            unseen = "" if found_later else why_unseen(reference, place)
            why = "" if found_later or unseen else why
        return Verdict(call.stage, said, why, unseen, reference.words)

    @staticmethod
    def _loss(trial: Trial, before: Tree, reference: Reference, place: str, ended: Ended) -> str:
        """A call that refuses must leave everything as it was."""
        if ended.code == 0:
            return ""
        gone = lost(before, read_tree(trial.directory), changing(before, reference.after) | {place})
        return f"lost: {'; '.join(gone[:3])}" if gone else ""

    @staticmethod
    def _found_by_verify(trial: Trial) -> bool:
        words = ["data", "verify"]
        if (trial.directory / "pictures").exists():
            words.append("pictures")
        ended = trial.call(words, 60)
        return ended.code == 2 and not fault_of(ended)


def choose_file(trial: Trial, reference: Reference) -> str:
    """A file that the call reads; each kind is as likely as any other, however many files there are of it."""
    kinds: dict[str, list[str]] = {}
    for place in reference.reads:
        parts = Path(place).parts
        kinds.setdefault(
            f"{parts[0]} {len(parts)} {Path(place).suffix} {parts[-1].strip('0123456789')[:4]}", []
        ).append(place)
    return trial.rng.choice(kinds[trial.rng.choice(sorted(kinds))])


def flip(trial: Trial, path: Path, is_silent: bool) -> str:
    """Change one bit or one byte, in the first 256 bytes half of the time: formats keep there what matters most."""
    status, content, rng = path.stat(), bytearray(path.read_bytes()), trial.rng
    if not content:
        content = bytearray(b"\0")
    position = rng.randrange(min(len(content), 256) if rng.random() < 0.5 else len(content))
    if rng.random() < 0.5:
        bit = rng.randrange(8)
        content[position] ^= 1 << bit
        what = f"bit {bit} of byte {position}"
    else:
        content[position] = (content[position] + rng.randrange(1, 256)) % 256
        what = f"byte {position}"
    path.write_bytes(content)
    if is_silent:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return what


def why_unseen(reference: Reference, place: str) -> str:
    """Why nothing on disk can tell what the file should hold; empty if something can."""
    known = (f"{Path(place).parent}/manifest.json", f"{Path(place).parts[0]}/.manicap/train.json")
    if place.endswith("/config.toml") or any(name in reference.before for name in known):
        return ""
    return _matches(place, UNSEEN)


def without_speed(stdout: str) -> list[str]:
    """Lines of an output but those that say how fast it was, which differs from call to call."""
    return [line for line in stdout.splitlines() if not line.startswith("speed relative to torch:")]


def other_result(trial: Trial, reference: Reference, ended: Ended, place: str) -> str:
    """How the result differs from the undisturbed one; the damaged file itself may have stayed, or been made again.

    What has said that the file is damaged, and went on without it, has done its duty.
    """
    if says_so(reference, ended, place):
        return ""
    found = differences(reference.after, read_tree(trial.directory), frozenset({place}) | _descriptions(trial, place))
    if without_speed(ended.stdout) != without_speed(reference.ended.stdout):
        found.append("stdout differs")
    return f"{OTHER}, and no word: {'; '.join(found[:4])}" if found else ""


def _descriptions(trial: Trial, place: str) -> frozenset[str]:
    """What names the bytes of a picture: another file with the same pixels is the same picture under another hash."""
    if not place.endswith(".png"):
        return frozenset()
    folder = trial.directory / Path(place).parts[0] / ".manicap"
    return frozenset(str(path.relative_to(trial.directory)) for path in folder.iterdir() if path.suffix != ".npy")


def says_so(reference: Reference, ended: Ended, place: str) -> bool:
    """Whether a line that an undisturbed call does not print names the file, or its directory or run with the fault."""
    usual = {*reference.ended.stdout.splitlines(), *reference.ended.stderr.splitlines()}
    new = [line for line in (ended.stdout + "\n" + ended.stderr).splitlines() if line not in usual]
    *above, file = Path(place).parts
    directories = {above[-1], above[1]} if len(above) > 1 else set(above)  # runs/NAME/results/...
    faults = (
        *("damaged", "not a sound", "cannot be read", "has changed", "differs", "not done", "made again", "missing"),
        *("no result", "stopped: "),
    )
    return any(
        file in line or (any(name in line for name in directories) and any(word in line for word in faults))
        for line in new
    )


def _matches(place: str, patterns: "dict[str, str] | tuple[str, ...]") -> str:
    """Why, or the pattern that fits; empty if none does."""
    for pattern in patterns:
        if fnmatch("/" + place, "/" + pattern) or fnmatch("/" + place, pattern):
            return patterns[pattern] if isinstance(patterns, dict) else pattern
    return ""
