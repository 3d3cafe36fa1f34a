"""A disk that is full before a random change of the file system, with room for a random number of bytes more.

The call runs on a tmpfs of its own. Where none may be mounted, a limit on the size of files takes its place: writes
fail at the same moments, with another error.
"""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from campaign.calls import CALLS
from campaign.child import Strike
from campaign.forking import Ended
from campaign.trees import size_of
from campaign.trials import PartName, Trial, Verdict, fault_of, finish, loss_in

STAGES = (
    "collect", "record", "convert", "export", "train", "resume", "run", "probe", "images", "diagnose", "nerve", "grid",
    "page",
)  # fmt: skip
CHOSEN = [name for name, call in CALLS.items() if call.stage in STAGES and name != "grid processes"]
"""Workers of a process grid are not watched, so nothing can be timed in them; the serial grid writes the same files."""
PAGE = 4096
ROOM = 2**29
"""Of checkpoints under way, of which three stand side by side: up to 100 MB each with the reconstruction of `quick`."""


class Disk:
    name: PartName = "disk"

    def run(self, trial: Trial) -> Verdict:
        call, reference = trial.choose(CHOSEN)
        while not reference.ended.changes:
            call, reference = trial.choose(CHOSEN)
        is_mounted = trial.cleanup.enter_context(small_disk(trial, size_of(reference.path) + ROOM))
        trial.lay_out(call)
        growth = max(size_of(reference.path) - size_of(trial.directory), PAGE)
        number = trial.rng.randrange(reference.ended.changes)
        pages = int((growth / PAGE + 1) ** trial.rng.random()) - 1
        filler = trial.directory.parent / "filler" if is_mounted else None
        strike = Strike(fill_at=number, leave_bytes=pages * PAGE, filler=filler)
        ended = trial.call(reference.words, reference.limit, strike=strike)
        why = fault_of(ended) or self._blame(ended) or loss_in(trial, reference)
        if filler is not None:
            filler.unlink(missing_ok=True)
        why = why or finish(trial, reference)
        kind = "disk full" if is_mounted else "files limited"
        said = f"{call.name}: {kind} before change {number}, {pages} pages left"
        stage = call.stage if is_mounted else f"{call.stage} (file limit)"
        return Verdict(stage, said, why, words=reference.words)

    @staticmethod
    def _blame(ended: Ended) -> str:
        """Asking for more than there is room for is the user's mistake, if told before anything is written."""
        if ended.code != 2 or re.search("need.* free", ended.stderr):
            return ""
        return f"a full disk is no mistake of the user's, but the exit code is 2: {ended.stderr.strip()[-300:]}"


@contextlib.contextmanager
def small_disk(trial: Trial, size: int) -> Iterator[bool]:
    """A tmpfs under the trial's working directory; whether it could be mounted."""
    place: Path = trial.directory.parent
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    is_mounted = subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)
