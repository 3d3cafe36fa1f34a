"""The training loop, top to bottom: the only one.

    pretrain(config, run_dir)      starts the run, resumes it, or finds it finished

A run is a function of its config, the thread count and the torch version. Nothing is drawn from a global generator
and no state lives outside a checkpoint, so a run killed at any moment ends with the same bytes as one that was not.
"""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

import torch

from manicap.atari.splits import Rows
from manicap.core.config import check_config, to_dict, write_toml
from manicap.core.errors import Failure, Interruption, UserError
from manicap.core.files import exclusive_lock
from manicap.core.paths import DATA_DIR
from manicap.core.progress import Tracker
from manicap.losses.gather import mean_over_processes
from manicap.methods.base import LossOutput, Method
from manicap.train.batches import Batches
from manicap.train.checkpoint import CheckpointStore
from manicap.train.config import read_run_config
from manicap.train.device import choose_device
from manicap.train.distributed import join_processes
from manicap.train.encoder_files import inference_state, read_weights, save_encoder, write_weights
from manicap.train.non_finite import NonFiniteCount
from manicap.train.observation import Observations, Observe
from manicap.train.run_config import RunConfig
from manicap.train.setup import Execution, Setup, prepare
from manicap.train.sinks import Metrics, MetricsFile, Sink, open_sinks

Check = Callable[[Method, int], Mapping[str, float]]
"""Scores of the method after an epoch, in evaluation mode, to be logged; nothing if none is due. The lower `error`, the
better the weights."""


@dataclass
class Progress:
    """Where a run is: part of every checkpoint."""

    epoch: int = 0
    batch: int = 0
    """Batches of the present epoch done."""
    step: int = 0
    """Steps done in all."""
    best_loss: float = math.inf
    """The validation's, or the error of the check."""
    best_epoch: int = -1
    is_finished: bool = False


def pretrain(
    config: RunConfig,
    run_dir: Path,
    execution: Execution = Execution(),  # noqa: B008 - frozen
    data_dir: Path = DATA_DIR,
    check: Check | None = None,
    observe: Observe | None = None,
) -> Path:
    """Train `config` in `run_dir` from wherever it is; afterwards `run_dir` holds the encoder.

    `check` may score the method after each epoch: nearest neighbours, on images. `observe` measures it on a batch every
    `execution.diagnose_every` steps, which changes nothing of the run.
    """
    check_config(config)
    with ExitStack() as stack:
        use_cuda = choose_device(execution.device).type == "cuda"
        processes = stack.enter_context(join_processes(use_cuda))
        if processes.is_first:
            claim_run(run_dir, config, execution.force)
            waiting = f"another process is training {run_dir}: waiting for it"
            stack.enter_context(exclusive_lock(run_dir / ".lock", lambda: print_line(waiting)))
        processes.barrier()
        if not (run_dir / "encoder.json").is_file():
            run = Run(prepare(config, execution, data_dir, processes), run_dir, check, observe)
            if run.setup.method.is_trained:
                run.restore()
                run.train()
            run.finish()
            processes.barrier()
    return run_dir


class Run:
    """A run under way: the setup, the progress, and the files."""

    def __init__(self, setup: Setup, run_dir: Path, check: Check | None = None, observe: Observe | None = None) -> None:
        self.setup, self.run_dir, self.check, self.observe = setup, run_dir, check, observe
        self.progress = Progress()
        self.non_finite = NonFiniteCount(setup.device)
        self.looks_at_every_step = setup.device.type == "cpu"
        self.checkpoints = CheckpointStore(run_dir / "checkpoints")
        self.metrics_bytes = 0
        self.seconds = 0.0

    def train(self) -> None:
        """Epochs of steps, each ended by what is to be checked, until a budget or the patience is used up."""
        setup, progress, execution = self.setup, self.progress, self.setup.execution
        last_checkpoint = time.monotonic()
        with ExitStack() as stack:
            sinks = self.open_sinks(stack)
            tracker = stack.enter_context(self.tracker())
            received = stack.enter_context(caught_signals())
            observations = self.open_observations()
            while not progress.is_finished:
                setup.model.train()
                for rows in setup.train_batches.epoch(progress.epoch, progress.batch):
                    if progress.step >= setup.max_steps:
                        break
                    loss = self.step(rows)
                    progress.step += 1
                    progress.batch += 1
                    if progress.step % execution.log_every == 0 or progress.step == 1:
                        self.log(sinks, tracker, "train", loss)
                    if observations is not None and observations.is_due(progress.step):
                        self.diagnose(rows, observations, tracker)
                    tracker.advance()
                    interrupted = setup.processes.any(bool(received), setup.device)
                    if interrupted or time.monotonic() - last_checkpoint > execution.checkpoint_seconds:
                        self.save_checkpoint(sinks)
                        last_checkpoint = time.monotonic()
                    if interrupted:
                        raise interruption(received[0] if received else signal.SIGTERM, progress.step)
                self.end_epoch(sinks, tracker)
            self.save_checkpoint(sinks)
            if setup.processes.any(bool(received), setup.device):  # it came in the last validation
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
        setup.optimizer.step()
        setup.method.after_step((self.progress.step + 1) / setup.max_steps)
        return loss

    def diagnose(self, rows: Rows, observations: Observations, tracker: Tracker) -> None:
        """Measure the method on the batch it has just been trained on."""
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
        """Validate or check, keep the weights if they are the best, and decide whether to go on."""
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
            if setup.processes.is_first:
                # A resumed run that has not come here yet will write the same bytes again.
                write_weights(self.run_dir / "best.safetensors", inference_state(setup.method))

    def log(self, sinks: list[Sink], tracker: Tracker, split: str, loss: LossOutput) -> None:
        """Write the loss, its parts and the method's metrics; the same numbers on every process."""
        named = {"loss": loss.total, **loss.parts, **loss.metrics}
        stacked = torch.stack([torch.as_tensor(value, dtype=torch.float64, device="cpu") for value in named.values()])
        if self.setup.processes.world > 1:
            stacked = mean_over_processes(stacked.to(self.setup.device)).cpu()
        values = dict(zip(named, stacked.tolist(), strict=True))
        self.require_finite_steps()  # not before all processes have met above
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
        """Stop at a loss or gradient that is not finite; on a GPU count it, and stop when next it is waited for."""
        self.non_finite.add(value, self.progress.step)
        if self.looks_at_every_step and not torch.isfinite(value):
            self.stop_at_non_finite(what, loss)

    def require_finite_steps(self) -> None:
        """Called wherever the device is waited for anyway: at logged steps and before a checkpoint."""
        count, first = self.non_finite.read()
        if count:
            raise Failure(
                f"the loss or its gradient was not finite at step {first}, nor {count - 1} times more until step"
                f" {self.progress.step}; {self.last_good()}"
            )

    def stop_at_non_finite(self, what: str, loss: LossOutput) -> NoReturn:
        parts = ", ".join(f"{name} {float(part.detach()):.4g}" for name, part in loss.parts.items())
        raise Failure(f"the {what} is not finite at step {self.progress.step} ({parts}); {self.last_good()}")

    def last_good(self) -> str:
        step = self.checkpoints.newest_step()
        return "no checkpoint had been written" if step is None else f"the checkpoint of step {step} stays"

    def restore(self) -> None:
        """Go on from the newest sound checkpoint, if there is one."""
        setup = self.setup
        say = (lambda line: None) if setup.execution.quiet else print_line
        state = self.checkpoints.load_newest(say if setup.processes.is_first else (lambda line: None))
        if state is None:
            return
        differences = describe_differences(state["identity"], setup.identity)
        if differences and not setup.execution.force:
            raise UserError(
                f"{self.run_dir} was trained under other conditions: {'; '.join(differences)};"
                " resume it under the old ones, or with --force and another result"
            )
        setup.method.load_state_dict(state["method"])
        setup.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])
        self.metrics_bytes, self.seconds = state["metrics_bytes"], state["seconds"]

    def save_checkpoint(self, sinks: list[Sink]) -> None:
        setup = self.setup
        if not setup.processes.is_first:
            return
        self.require_finite_steps()
        if not all(bool(torch.isfinite(parameter).all()) for parameter in setup.method.parameters()):
            raise Failure(f"the weights are not finite after step {self.progress.step}; {self.last_good()}")
        for sink in sinks:
            if isinstance(sink, MetricsFile):
                self.metrics_bytes = sink.flush()
        state = {
            "identity": setup.identity,
            "progress": asdict(self.progress),
            "method": setup.method.state_dict(),
            "optimizer": setup.optimizer.state_dict(),
            "metrics_bytes": self.metrics_bytes,
            "seconds": self.seconds + time.monotonic() - self.started,
        }
        try:
            self.checkpoints.save(self.progress.step, state)
        except OSError as error:
            raise Failure(
                f"cannot write the checkpoint of step {self.progress.step}: {error.strerror}; {self.last_good()}"
            ) from error

    def finish(self) -> None:
        """Write the encoder and its description, which make the run a finished one."""
        setup, progress = self.setup, self.progress
        if not setup.processes.is_first:
            return
        last = inference_state(setup.method)
        use_best = setup.config.weights == "best" and progress.best_epoch >= 0
        chosen = read_weights(self.run_dir / "best.safetensors") if use_best else last
        facts = {
            "steps": progress.step,
            "epochs": progress.epoch,
            "best_epoch": progress.best_epoch,
            "best_loss": progress.best_loss if use_best else None,
            "weights": "best" if use_best else "last",
            "identity": setup.identity,
        }
        save_encoder(self.run_dir, setup.config, setup.method.context, chosen, last, facts)

    def open_sinks(self, stack: ExitStack) -> list[Sink]:
        """`metrics.jsonl` and the sinks asked for, on the process that writes; closed with the stack."""
        self.started = time.monotonic()
        if not self.setup.processes.is_first:
            return []
        metrics = MetricsFile(self.run_dir / "metrics.jsonl", self.metrics_bytes)
        sinks: list[Sink] = [metrics, *open_sinks(self.setup.execution.sinks, self.run_dir)]
        for sink in sinks:
            stack.callback(sink.close)
        return sinks

    def open_observations(self) -> Observations | None:
        """`diagnostics.jsonl`, on the process that writes, where it was asked for."""
        every = self.setup.execution.diagnose_every
        if not every or self.observe is None or not self.setup.processes.is_first:
            return None
        return Observations(self.run_dir / "diagnostics.jsonl", every, self.progress.step)

    def tracker(self) -> Tracker:
        config = self.setup.config
        quiet = self.setup.execution.quiet or not self.setup.processes.is_first
        title = f"{config.subject} {config.method} seed {config.seed}"
        return Tracker(title, self.setup.max_steps, "steps", quiet, start=self.progress.step)


def claim_run(run_dir: Path, config: RunConfig, force: bool) -> None:
    """Write `config.toml`, or check that the run in this directory has the same config."""
    path = run_dir / "config.toml"
    if path.is_file():
        differences = describe_differences({"config": to_dict(read_run_config(path))}, {"config": to_dict(config)})
        if differences and not force:
            raise UserError(f"{run_dir} holds a run of another config: {'; '.join(differences)}; take another --name")
    try:
        write_toml(path, config)
    except OSError as error:
        raise UserError(f"cannot write to {run_dir}: {error.strerror}") from None


def describe_differences(old: object, new: object, name: str = "") -> list[str]:
    """`config.seed was 0 and is 1`, for every leaf that differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        return [line for key in keys for line in describe_differences(old.get(key), new.get(key), f"{name}.{key}")]
    return [] if old == new else [f"{name.lstrip('.')} was {old} and is {new}"]


def interruption(number: int, step: int) -> Interruption:
    name = signal.Signals(number).name
    return Interruption(
        number, f"stopped by {name} after step {step}; the checkpoint is written, the same call goes on"
    )


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """SIGINT and SIGTERM as numbers in a list, looked at after each step. A second SIGINT interrupts at once."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread may set handlers
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
