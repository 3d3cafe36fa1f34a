"""Cells as tasks on a Ray cluster: an existing one (`address`), or one on this machine's cores.

Runs and stores must be in a directory that all nodes share under the same path, and whose file locks work across nodes
(NFSv4, Lustre and most cluster file systems; a local disk for a cluster of one machine).

A task whose worker or node dies is sent again by the loop in `base`, and its run resumes from its last checkpoint.

Anyone who can reach a Ray cluster without authentication can run anything on it. The local cluster listens only on the
loopback interface and has its own token; an existing cluster is joined with a token, see docs/grids.md.
"""

import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from manicap.bench.cell import Job, Outcome, Work
from manicap.core.errors import Failure, Interruption, UserError

OBJECT_STORE_BYTES = 80 * 2**20
"""Only configs and outcomes are sent."""
LOOPBACK = "127.0.0.1"
"""The only address for which Ray's servers do not listen on all interfaces."""
CONNECT_SECONDS = 5
STOP_SECONDS = 30
"""How long an interrupted grid waits for its runs' last checkpoints."""


class RayExecutor:
    num_workers = None

    def __init__(self, address: str | None = None, gpus: float = 0.0) -> None:
        _prepare_environment(is_local=address is None)
        try:
            import ray
        except ImportError:
            raise UserError("Ray is not installed: pip install 'manicap[ray]'") from None
        self.ray, self.gpus = ray, gpus
        if ray.is_initialized():
            return
        if address is None:
            self._start()
        else:
            self._join(address)

    def _start(self) -> None:
        """Start a Ray cluster on this machine's cores, which nobody else can reach."""
        ray = self.ray
        # "local": without an address Ray joins whatever cluster it finds on this machine, even somebody else's.
        ray.init("local", include_dashboard=False, object_store_memory=OBJECT_STORE_BYTES, log_to_driver=False)
        address = ray.nodes()[0]["NodeManagerAddress"]
        if address != LOOPBACK:  # Ray was already imported, and so configured
            ray.shutdown()
            raise Failure(f"Ray listens on {address}, not only on {LOOPBACK}; start one yourself and give its address")

    def _join(self, address: str) -> None:
        ray = self.ray
        try:
            _require_listener(address)
            ray.init(address=address, log_to_driver=False)
        except ray.exceptions.AuthenticationError:
            raise UserError(
                f"the Ray cluster at {address!r} requires a token, and there is none here: put the cluster's token into"
                " ~/.ray/auth_token or RAY_AUTH_TOKEN; set RAY_AUTH_MODE=disabled to join a cluster that has none"
            ) from None
        except OSError as error:  # ConnectionError is one
            raise UserError(f"there is no Ray cluster at {address!r}, or it has a different token: {error}") from None

    def run(self, work: Work, jobs: Sequence[Job]) -> Iterator[Outcome]:
        ray = self.ray
        cpus = jobs[0].execution.threads or 1
        self._require_node(cpus)
        # Lost tasks are counted and retried in one place for all executors, not by Ray.
        task = ray.remote(num_cpus=cpus, num_gpus=self.gpus, max_retries=0)(_without_interruptions(work))
        pending: dict[Any, Job] = {task.remote(job): job for job in jobs}
        try:
            while pending:
                ready, _ = ray.wait(list(pending), num_returns=1)
                yield self._outcome(ready[0], pending.pop(ready[0]))
        finally:  # when the caller is interrupted: running cells write a checkpoint and end
            for reference in pending:
                ray.cancel(reference)
            if pending:
                ray.wait(list(pending), num_returns=len(pending), timeout=STOP_SECONDS)

    def _outcome(self, reference: Any, job: Job) -> Outcome:
        ray = self.ray
        try:
            outcome: Outcome = ray.get(reference)
            return outcome
        except ray.exceptions.RayTaskError as error:
            # `work` turns a failure into an outcome; this task could not even be loaded.
            return Outcome(job.cell.name, "failed", f"its Ray task could not run: {error.cause!r}", str(error))
        except ray.exceptions.RayError as error:
            return Outcome(job.cell.name, "lost", str(error).splitlines()[0])

    def _require_node(self, cpus: int) -> None:
        """Ray would wait forever for a node that can take the task."""
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        if not nodes:
            raise Failure("the Ray cluster has no live node")
        if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= self.gpus for node in nodes):
            offered = "; ".join(f"{node.get('CPU', 0):g} CPUs and {node.get('GPU', 0):g} GPUs" for node in nodes)
            raise UserError(f"a run needs {cpus} CPUs and {self.gpus:g} GPUs on one node; the nodes have {offered}")


def _prepare_environment(is_local: bool) -> None:
    """Set what Ray reads from the environment and passes on to its processes; must precede its import."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if not is_local:
        return
    # With clusters disabled, Ray uses the loopback address as the machine's own on every system.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _require_listener(address: str) -> None:
    """Ray itself would try for minutes to reach an address where nothing listens."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()


def _without_interruptions(work: Work) -> Work:
    """A node that is being drained sends SIGTERM: the run writes a checkpoint, and its cell resumes elsewhere."""

    def guarded(job: Job) -> Outcome:
        try:
            return work(job)
        except Interruption as interruption:
            return Outcome(job.cell.name, "lost", str(interruption))

    return guarded
