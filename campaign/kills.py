"""SIGKILL at random moments, then the same call again until it ends: the files must be those of an undisturbed call.

Half of the kills come after a random time, half before a random change of the file system, where a moment is most
likely to matter.
"""

from campaign.calls import CALLS
from campaign.child import Strike
from campaign.trials import PartName, Trial, Verdict, fault_of, finish, loss_in

MAX_KILLS = 3
STAGES = (
    "collect", "record", "convert", "export", "train", "resume", "run", "probe", "images", "diagnose", "nerve", "grid",
    "page",
)  # fmt: skip
CHOSEN = [name for name, call in CALLS.items() if call.stage in STAGES]


class Kills:
    name: PartName = "kills"

    def run(self, trial: Trial) -> Verdict:
        call, reference = trial.choose(CHOSEN)
        trial.lay_out(call)
        moments, kills, why = [], 0, ""
        for _ in range(trial.rng.randint(1, MAX_KILLS)):
            strike, moment = self._strike(trial, reference.ended.seconds, reference.ended.changes)
            ended = trial.call(reference.words, reference.limit, strike=strike)
            moments.append(moment)
            kills += ended.was_killed
            # What was there before must be there at every moment, not only at the end.
            why = fault_of(ended) or loss_in(trial, reference)
            if why or not ended.was_killed:
                break
        why = why or finish(trial, reference)
        return Verdict(call.stage, f"{call.name}: {', '.join(moments)}", why, words=reference.words, strikes=kills)

    @staticmethod
    def _strike(trial: Trial, seconds: float, changes: int) -> tuple[Strike, str]:
        if changes and trial.rng.random() < 0.5:
            number = trial.rng.randrange(changes)
            return Strike(kill_at=number), f"killed before change {number}"
        delay = trial.rng.uniform(0, seconds)
        return Strike(kill_after=delay), f"killed after {delay:.3f} s"
