"""The training loop, top to bottom: the only one.

    pretrain(config, run_dir)      starts the run, resumes it, or finds it finished

A run is a function of its config, the thread count, the processor's instruction sets and the torch version. Nothing is
drawn from a global generator and no state lives outside a checkpoint, so a run killed at any moment and resumed is
bit-identical to an uninterrupted one. A finished run is never changed.
"""

import copy
import gc
import math
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import NoReturn

import torch

from manicap.algorithms.base import LossOutput
from manicap.core.config import check_config
from manicap.core.errors import Failure, UserError
from manicap.core.paths import DATA_DIR
from manicap.core.progress import Tracker
from manicap.domains.base import Check, find_domain
from manicap.domains.run_config import RunConfig
from manicap.domains.samples import Rows
from manicap.losses.gather import mean_over_processes
from manicap.pretrained.encoder_files import save_encoder, verify_encoder
from manicap.pretrained.weights import inference_state, with_current_names
from manicap.train.batches import Batches
from manicap.train.checkpoint import CheckpointStore
from manicap.train.claim import CHECKPOINTS, adopt_config, claimed_run, clear_leavings, is_finished, print_line
from manicap.train.device import choose_device
from manicap.train.distributed import Processes, join_processes
from manicap.train.double_descent import capacity_warning
from manicap.train.identity import cpu_model
from manicap.train.logs import DIAGNOSTICS, METRICS, LogFile, Written
from manicap.train.non_finite import NonFiniteCount
from manicap.train.observation import Observations, Observe
from manicap.train.record import describe_differences, read_record
from manicap.train.schedule import rate_factor
from manicap.train.settling import fit_coherence_filter
from manicap.train.setup import LOG_EVERY, Execution, Setup, prepare
from manicap.train.signals import caught_signals, interruption
from manicap.train.sinks import Metrics, Sink, open_sinks


@dataclass
class Progress:
    """How far a run has come: part of every checkpoint."""

    epoch: int = 0
    batch: int = 0
    """Batches done in the current epoch."""
    step: int = 0
    """Total number of steps done."""
    best_loss: float = math.inf
    """The validation loss, or the error of the check."""
    best_epoch: int = -1
    is_finished: bool = False


def pretrain(
    config: RunConfig,
    run_dir: Path,
    execution: Execution = Execution(),  # noqa: B008 - frozen
    data_dir: Path = DATA_DIR,
    observe: Observe | None = None,
) -> Path:
    """Train `config` in `run_dir`, starting or resuming as needed; afterwards `run_dir` holds the encoder.

    `observe` measures the method on a batch every `execution.diagnose_every` steps, without affecting the run.
    """
    check_config(config)
    check_config(execution)
    with ExitStack() as stack:
        use_cuda = choose_device(execution.device).type == "cuda"
        processes = stack.enter_context(join_processes(use_cuda))
        if processes.is_first:
            stack.enter_context(claimed_run(run_dir, config, execution))
        processes.barrier()
        if is_finished(run_dir):
            if processes.is_first:
                verify_encoder(run_dir)
                clear_leavings(run_dir)
        else:
            _train_to_end(config, run_dir, execution, data_dir, processes, observe)
            if processes.world > 1:
                # The model holds the group of processes. Freed after the group was left, it has been seen to wait for
                # a process that is gone; so it goes first, and all leave together.
                gc.collect()
                processes.barrier()
    return run_dir


def _train_to_end(
    config: RunConfig,
    run_dir: Path,
    execution: Execution,
    data_dir: Path,
    processes: Processes,
    observe: Observe | None,
) -> None:
    begun = read_record(run_dir)
    execution = replace(execution, log_every=begun.log_every, diagnose_every=begun.diagnose_every)
    check = find_domain(config.domain).check(config, data_dir)
    run = Run(prepare(config, execution, data_dir, processes), run_dir, check, observe)
    run.restore()
    if processes.is_first:
        adopt_config(run_dir, config)
        if not execution.quiet and (warning := capacity_warning(config, run.setup.method)):
            print_line(warning)
    if run.setup.method.is_trained:
        run.train()
    run.finish()


class Run:
    """A run in progress: its setup, progress and files."""

    def __init__(self, setup: Setup, run_dir: Path, check: Check | None = None, observe: Observe | None = None) -> None:
        self.setup, self.run_dir, self.check, self.observe = setup, run_dir, check, observe
        self.progress = Progress()
        self.non_finite = NonFiniteCount(setup.device)
        self.looks_at_every_step = setup.device.type == "cpu"
        self.checkpoints = CheckpointStore(run_dir / CHECKPOINTS)
        self.best: dict[str, torch.Tensor] | None = None
        """The best weights so far, if they are to be kept."""
        self.logged: dict[str, Written] = {}
        """Length and hash of the logs at the checkpoint from which the run resumes."""
        self.logs: dict[str, LogFile] = {}

    def train(self) -> None:
        """Train epoch by epoch, with a validation or check after each, until a budget or the patience is exhausted."""
        setup, progress, execution = self.setup, self.progress, self.setup.execution
        last_checkpoint = time.monotonic()
        with ExitStack() as stack:
            sinks = self.open_sinks(stack)
            tracker = stack.enter_context(self.tracker())
            received = stack.enter_context(caught_signals())
            observations = self.open_observations(stack)
            log_every = execution.log_every or LOG_EVERY
            while not progress.is_finished:
                setup.model.train()
                for rows in setup.train_batches.epoch(progress.epoch, progress.batch):
                    if progress.step >= setup.max_steps:
                        break
                    loss = self.step(rows)
                    progress.step += 1
                    progress.batch += 1
                    if progress.step % log_every == 0 or progress.step == 1:
                        self.log(sinks, tracker, "train", loss)
                    if observations is not None and observations.is_due(progress.step):
                        self.diagnose(rows, observations, tracker)
                    tracker.advance()
                    interrupted = setup.processes.any(bool(received), setup.device)
                    if interrupted or time.monotonic() - last_checkpoint > execution.checkpoint_seconds:
                        self.save_checkpoint()
                        last_checkpoint = time.monotonic()
                    if interrupted:
                        raise interruption(received[0] if received else signal.SIGTERM, progress.step)
                self.end_epoch(sinks, tracker)
            self.save_checkpoint()
            if setup.processes.any(bool(received), setup.device):  # received during the last validation
                raise interruption(received[0] if received else signal.SIGTERM, progress.step)
            if observations is not None:
                tracker.say(observations.cost())

    def step(self, rows: Rows) -> LossOutput:
        """One optimizer step."""
        setup = self.setup
        batch = setup.data.batch(rows, "train", self.progress.step)
        with torch.autocast(setup.device.type, setup.dtype, enabled=setup.dtype != torch.float32):
            loss: LossOutput = setup.model(batch)
        total = loss.total
        setup.optimizer.zero_grad(set_to_none=True)
        total.backward()
        self.watch("loss", total, loss)
        if setup.config.clip_gradient_norm is not None:
            norm = torch.nn.utils.clip_grad_norm_(setup.method.parameters(), setup.config.clip_gradient_norm)
            self.watch("gradient", norm, loss)
        factor = rate_factor(setup.config.schedule, setup.config.warmup_steps, self.progress.step, setup.max_steps)
        for group in setup.optimizer.param_groups:
            group["lr"] = factor * setup.config.learning_rate
        setup.optimizer.step()
        setup.method.after_step((self.progress.step + 1) / setup.max_steps)
        return loss

    def diagnose(self, rows: Rows, observations: Observations, tracker: Tracker) -> None:
        """Measure the method on the batch it was just trained on."""
        setup, step, start = self.setup, self.progress.step, time.monotonic()
        assert self.observe is not None
        setup.method.eval()
        with torch.no_grad():
            measured = self.observe(setup.method, setup.data.batch(rows, "train", step - 1))
        setup.method.train()
        observations.add(step, measured, time.monotonic() - start)
        if "alarm" in measured:
            tracker.say(f"step {step}, alarm: {measured['alarm']}")

    def end_epoch(self, sinks: list[Sink], tracker: Tracker) -> None:
        """Validate or check, keep the weights if they are the best, and decide whether to continue."""
        setup, progress, config = self.setup, self.progress, self.setup.config
        setup.method.eval()
        if setup.val_batches is not None:
            loss = self.validate(setup.val_batches)
            self.log(sinks, tracker, "val", loss)
            self.note_best(float(loss.total), "validation loss")
        if self.check is not None:
            scores = self.check(setup.method, progress.epoch) if setup.processes.is_first else {}
            if scores:
                self.write(sinks, "check", scores)
                named = " ".join(f"{name} {value:.4g}" for name, value in scores.items())
                tracker.say(f"epoch {progress.epoch}, step {progress.step}, check: {named}")
            error = setup.processes.from_first(scores.get("error", math.inf), setup.device)
            if error < math.inf:
                self.note_best(error, "error of the check")
        waited = progress.epoch - progress.best_epoch
        out_of_patience = config.patience is not None and waited >= config.patience
        progress.epoch, progress.batch = progress.epoch + 1, 0
        progress.is_finished = out_of_patience or progress.step >= setup.max_steps

    @torch.no_grad()
    def validate(self, batches: Batches) -> LossOutput:
        """Mean loss over the validation split, in the same batches every time and over all processes."""
        setup = self.setup
        sums: dict[str, torch.Tensor] = {}
        for index, rows in enumerate(batches.epoch(0)):
            with torch.autocast(setup.device.type, setup.dtype, enabled=setup.dtype != torch.float32):
                loss = setup.method.loss(setup.data.batch(rows, "val", index))
            for name, part in loss.parts.items():
                sums[name] = sums.get(name, 0) + part.double()
        return LossOutput({name: mean_over_processes(x) / batches.num_batches for name, x in sums.items()})

    def note_best(self, loss: float, name: str) -> None:
        """Keep the weights if the loss is the lowest so far."""
        progress, setup = self.progress, self.setup
        if not math.isfinite(loss):
            raise Failure(f"the {name} of epoch {progress.epoch} is not finite; {self.last_good()}")
        if loss < progress.best_loss:
            progress.best_loss, progress.best_epoch = loss, progress.epoch
            if setup.processes.is_first and setup.config.weights == "best":
                self.best = inference_state(setup.method)

    def log(self, sinks: list[Sink], tracker: Tracker, split: str, loss: LossOutput) -> None:
        """Write the loss, its parts and the method's metrics; the same numbers on every process."""
        named = {"loss": loss.total, **loss.parts, **loss.metrics}
        stacked = torch.stack([torch.as_tensor(value, dtype=torch.float64, device="cpu") for value in named.values()])
        if self.setup.processes.world > 1:
            stacked = mean_over_processes(stacked.to(self.setup.device)).cpu()
        values = dict(zip(named, stacked.tolist(), strict=True))
        self.require_finite_steps()  # only after all processes have synchronised above
        if not all(map(math.isfinite, values.values())):
            self.stop_at_non_finite("loss", loss)
        self.write(sinks, split, values)
        parts = " ".join(f"{name} {values[name]:.4g}" for name in ("loss", *loss.parts))
        if split == "val":
            tracker.say(f"epoch {self.progress.epoch}, step {self.progress.step}, validation: {parts}")
        else:
            tracker.advance(0, f"epoch {self.progress.epoch} {parts}")

    def write(self, sinks: list[Sink], split: str, values: Mapping[str, float]) -> None:
        metrics: Metrics = {"split": split, "epoch": self.progress.epoch, "step": self.progress.step, **values}
        for sink in sinks:
            sink.write(metrics)

    def watch(self, what: str, value: torch.Tensor, loss: LossOutput) -> None:
        """Stop at a loss or gradient that is not finite; on a GPU, count it and stop at the next synchronisation."""
        self.non_finite.add(value, self.progress.step)
        if self.looks_at_every_step and not torch.isfinite(value):
            self.stop_at_non_finite(what, loss)

    def require_finite_steps(self) -> None:
        """Called wherever the device is synchronised anyway: at logged steps and before a checkpoint."""
        count, first = self.non_finite.read()
        if count:
            raise Failure(
                f"the loss or its gradient was not finite at step {first}, and {count - 1} more times up to step"
                f" {self.progress.step}; {self.last_good()}"
            )

    def stop_at_non_finite(self, what: str, loss: LossOutput) -> NoReturn:
        parts = ", ".join(f"{name} {float(part.detach()):.4g}" for name, part in loss.parts.items())
        raise Failure(f"the {what} is not finite at step {self.progress.step} ({parts}); {self.last_good()}")

    def last_good(self) -> str:
        step = self.checkpoints.newest_step()
        return "no checkpoint was written" if step is None else f"the checkpoint of step {step} is kept"

    def restore(self) -> None:
        """Resume from the newest intact checkpoint, if there is one."""
        setup = self.setup
        say = (lambda line: None) if setup.execution.quiet else print_line
        state = self.checkpoints.load_newest(say if setup.processes.is_first else (lambda line: None))
        if state is None:
            return
        differences = describe_differences(state["identity"], setup.identity)
        if differences and not setup.execution.force:
            raise UserError(
                f"{self.run_dir} was trained under different conditions: {'; '.join(differences)};"
                " restore them to resume, or use --force and accept a different result"
            )
        if state["cpu_model"] != cpu_model() and setup.processes.is_first:
            say(f"started on {state['cpu_model']}, resumed on {cpu_model()}: the result may differ in its last bits")
        try:
            setup.method.load_state_dict(with_current_names(state["method"]))
            setup.optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, ValueError):
            raise UserError(
                f"the checkpoint in {self.run_dir} does not match the config ({'; '.join(differences)}); choose another"
                " --name"
            ) from None
        self.progress, self.best = Progress(**state["progress"]), state["best"]
        self.logged = {name: Written(*written) for name, written in state["logs"].items()}

    def save_checkpoint(self) -> None:
        setup = self.setup
        if not setup.processes.is_first:
            return
        self.require_finite_steps()
        if not all(bool(torch.isfinite(parameter).all()) for parameter in setup.method.parameters()):
            raise Failure(f"the weights are not finite after step {self.progress.step}; {self.last_good()}")
        state = {
            "identity": setup.identity,
            "cpu_model": cpu_model(),
            "progress": asdict(self.progress),
            "method": setup.method.state_dict(),
            "optimizer": setup.optimizer.state_dict(),
            "best": self.best,
            "logs": {name: astuple(log.flush()) for name, log in self.logs.items()},
        }
        try:
            self.checkpoints.save(self.progress.step, state)
        except OSError as error:
            raise Failure(
                f"cannot write the checkpoint of step {self.progress.step}: {error.strerror}; {self.last_good()}"
            ) from error

    def settle(self, best: dict[str, torch.Tensor] | None) -> dict[str, torch.Tensor] | None:
        """Fit the coherence filter, if the method has one, of the last weights and of the best; returns the latter."""
        method = self.setup.method
        if method.coherence_filter is None:
            return best
        fit_coherence_filter(method, self.setup)
        if best is None:
            return None
        chosen = copy.deepcopy(method)
        chosen.load_state_dict(best, strict=False)
        fit_coherence_filter(chosen, self.setup)
        return inference_state(chosen)

    def finish(self) -> None:
        """Write the encoder and its description, which mark the run as finished, and remove the checkpoints."""
        setup, progress = self.setup, self.progress
        if not setup.processes.is_first:
            return
        best = self.settle(self.best if setup.config.weights == "best" else None)
        facts = {
            "steps": progress.step,
            "epochs": progress.epoch,
            "best_epoch": progress.best_epoch,
            "best_loss": None if best is None else progress.best_loss,
            "weights": "last" if best is None else "best",
            "identity": setup.identity,
        }
        try:
            hashes = {name: log.sha256 for name, log in self.logs.items()}
            replace(read_record(self.run_dir), logs=hashes).write(self.run_dir)
            save_encoder(self.run_dir, setup.config, setup.method, best, facts)
        except OSError as error:
            raise Failure(
                f"cannot write the encoder to {self.run_dir}: {error.strerror}; {self.last_good()}"
            ) from error
        clear_leavings(self.run_dir)

    def open_sinks(self, stack: ExitStack) -> list[Sink]:
        """`metrics.jsonl` and the requested sinks, on the process that writes; closed with the stack."""
        if not self.setup.processes.is_first:
            return []
        sinks: list[Sink] = [self.open_log(METRICS, stack)]
        for sink in open_sinks(self.setup.execution.sinks, self.run_dir):
            stack.callback(sink.close)
            sinks.append(sink)
        return sinks

    def open_observations(self, stack: ExitStack) -> Observations | None:
        """`diagnostics.jsonl`, if requested, on the process that writes."""
        every = self.setup.execution.diagnose_every
        if not every or self.observe is None or not self.setup.processes.is_first:
            return None
        return Observations(self.open_log(DIAGNOSTICS, stack), every)

    def open_log(self, name: str, stack: ExitStack) -> LogFile:
        """Open a log where the checkpoint was written; it is part of every checkpoint from now on."""
        known, force = self.logged.get(name, Written()), self.setup.execution.force
        log = self.logs[name] = LogFile(self.run_dir / name, known, accept_changes=force)
        stack.callback(log.close)
        return log

    def tracker(self) -> Tracker:
        config = self.setup.config
        quiet = self.setup.execution.quiet or not self.setup.processes.is_first
        title = f"{config.subject} {config.method} seed {config.seed}"
        return Tracker(title, self.setup.max_steps, "steps", quiet, start=self.progress.step)
