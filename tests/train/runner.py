"""Runs in processes of their own, so that they can be killed for real.

The fork server loads torch once and forks children from before any thread was started.
"""

import multiprocessing
import os
import random
import signal
import threading
import time
from pathlib import Path

from manicap.core.errors import Interruption
from manicap.train.loop import Run, pretrain
from manicap.train.setup import Execution

# torch loads it with the first optimizer, in seconds: once here for all children. With several threads a child would
# inherit a pool of threads that did not come with it, and wait for it.
if os.environ.get("OMP_NUM_THREADS") == "1":
    import torch._dynamo  # noqa: F401

EXECUTION = Execution(threads=1, checkpoint_seconds=0, log_every=1, quiet=True)
"""A checkpoint after every step: a kill at a random moment often falls into the writing of one."""


def fork_server():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.train.runner"])
    return context


def run_to_end(config, run_dir, data_dir, execution=EXECUTION):
    pretrain(config, Path(run_dir), execution, Path(data_dir))


def run_until_killed(config, run_dir, data_dir, kill_seed, longest_seconds):
    """SIGKILL itself at a random moment after the first step of this process."""
    delay = random.Random(kill_seed).uniform(0, longest_seconds)
    step = Run.step

    def step_and_arm(self, rows):
        if not armed.is_set():
            armed.set()
            threading.Thread(target=kill, daemon=True).start()
        return step(self, rows)

    def kill():
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGKILL)

    armed = threading.Event()
    Run.step = step_and_arm
    run_to_end(config, run_dir, data_dir)


def run_and_signal(config, run_dir, data_dir, number, at_step):
    """Send itself a signal in the middle of a step; exit as the command line does."""
    step = Run.step

    def step_and_signal(self, rows):
        if self.progress.step == at_step:
            os.kill(os.getpid(), number)
        return step(self, rows)

    Run.step = step_and_signal
    try:
        run_to_end(config, run_dir, data_dir, Execution(threads=1, checkpoint_seconds=1e9, quiet=True))
    except Interruption as interruption:
        os._exit(interruption.exit_code)


def run_and_signal_in_the_last_validation(config, run_dir, data_dir, number):
    """Send itself a signal when there is no step left to notice it."""
    end_epoch = Run.end_epoch

    def signal_and_end(self, sinks, tracker):
        if self.progress.step == self.setup.max_steps:
            os.kill(os.getpid(), number)
        return end_epoch(self, sinks, tracker)

    Run.end_epoch = signal_and_end
    try:
        run_to_end(config, run_dir, data_dir)
    except Interruption as interruption:
        os._exit(interruption.exit_code)


def in_process(target, *arguments):
    """Exit code of the function in a process of its own; negative for a signal."""
    process = fork_server().Process(target=target, args=arguments)
    process.start()
    process.join(120)
    assert process.exitcode is not None, "the run did not end"
    return process.exitcode


def result_bytes(run_dir):
    """The files that must not depend on interruptions."""
    names = ["encoder.safetensors", "encoder-last.safetensors", "encoder.json", "metrics.jsonl", "config.toml"]
    return {name: (Path(run_dir) / name).read_bytes() for name in names}
