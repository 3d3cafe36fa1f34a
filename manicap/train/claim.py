"""Who owns a run's directory: one process at a time, one config forever, and nobody once the run is finished."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from manicap.core.config import to_dict, write_toml
from manicap.core.errors import UserError, refused_by_system
from manicap.core.files import exclusive_lock, remove_scratch
from manicap.domains.run_config import RunConfig
from manicap.train.checkpoint import CheckpointStore
from manicap.train.record import RunRecord, describe_differences, is_begun, read_record
from manicap.train.setup import LOG_EVERY, Execution

CHECKPOINTS = "checkpoints"


@contextmanager
def claimed_run(run_dir: Path, config: RunConfig, execution: Execution) -> Iterator[None]:
    """Lock the run's directory, with `config.toml` and `run.json`; a run with a different config is refused."""
    require_same_config(run_dir, config, execution.force)  # before a wait that may last for days
    waiting = f"another process is training {run_dir}: waiting for it"
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive_lock(run_dir / ".lock", lambda: print_line(waiting)))
            known = require_same_config(run_dir, config, execution.force)
            if not is_finished(run_dir):
                _begin(run_dir, config, execution, known)
        except OSError as error:
            raise refused_by_system(f"cannot write to {run_dir}", error) from None
        yield


def _begin(run_dir: Path, config: RunConfig, execution: Execution, known: RunRecord | None) -> None:
    """Write the logging intervals, unchanged unless the execution sets them, and the config of a new run."""
    remove_scratch(run_dir)
    record = known or RunRecord(to_dict(config), LOG_EVERY)
    record = replace(
        record,
        log_every=execution.log_every or record.log_every,
        diagnose_every=execution.diagnose_every or record.diagnose_every,
    )
    record.write(run_dir)
    if record.config == to_dict(config):
        write_toml(run_dir / "config.toml", config)


def adopt_config(run_dir: Path, config: RunConfig) -> None:
    """Write the config of a run that was resumed with a different one by force."""
    record = read_record(run_dir)
    if record.config != to_dict(config):
        replace(record, config=to_dict(config)).write(run_dir)
        write_toml(run_dir / "config.toml", config)


def require_same_config(run_dir: Path, config: RunConfig, force: bool) -> RunRecord | None:
    """The record of the run in this directory, if there is one; its config must be `config`."""
    if not is_begun(run_dir):
        if is_finished(run_dir) or (run_dir / CHECKPOINTS).is_dir():
            raise UserError(f"{run_dir} holds a run of an earlier version (it has no run.json); choose another --name")
        return None
    known = read_record(run_dir)
    differences = describe_differences(known.config, to_dict(config), "config")
    if differences and is_finished(run_dir):
        forced = "--force resumes a run and never changes a finished one; " if force else ""
        raise UserError(
            f"{run_dir} holds a finished run with a different config: {'; '.join(differences)};"
            f" {forced}choose another --name"
        )
    if differences and not force:
        raise UserError(
            f"{run_dir} holds a run with a different config: {'; '.join(differences)}; choose another --name"
        )
    return known


def is_finished(run_dir: Path) -> bool:
    return (run_dir / "encoder.json").exists()


def clear_leavings(run_dir: Path) -> None:
    """Remove what a finished run does not need: its checkpoints, and scratch files left by a kill."""
    CheckpointStore(run_dir / CHECKPOINTS).remove()
    remove_scratch(run_dir)


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
