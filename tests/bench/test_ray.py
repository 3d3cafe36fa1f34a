"""The same grid on a real Ray cluster of two nodes, one of which is killed in the middle."""

import os
import threading
import time

import pytest

from manicap.bench.cell import run_cell
from manicap.bench.executors import make_executor, run_grid
from manicap.bench.executors.ray_cluster import LOOPBACK
from manicap.core.errors import UserError
from tests.bench import small_grid as works
from tests.bench.small_grid import result_files, small_grid

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'manicap[ray]'")
cluster_utils = pytest.importorskip("ray.cluster_utils")

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False, "node_ip_address": LOOPBACK}
FAST_DEATH = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 3}


@pytest.fixture
def cluster():
    """Two nodes of one CPU each on the loopback."""
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={**NODE, "_system_config": FAST_DEATH})
    cluster.doomed = cluster.add_node(**NODE)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def kill_node_when_held(cluster, marker, deadline_seconds=60):
    deadline = time.monotonic() + deadline_seconds
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    cluster.remove_node(cluster.doomed, allow_graceful=False)


def test_an_address_where_nobody_listens_is_told_at_once():
    with pytest.raises(UserError, match="there is no Ray cluster at '127.0.0.1:1': .*refused"):
        make_executor("ray", address="127.0.0.1:1")


def test_a_node_killed_in_the_middle_costs_the_steps_since_the_checkpoint(cluster, data_dir, tmp_path):
    grid = small_grid(methods=["st-dim"], seeds=[0, 1])
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "doomed").write_text(cluster.doomed.node_id)
    killer = threading.Thread(target=kill_node_when_held, args=(cluster, tmp_path / "ray" / "held"))
    killer.start()
    said = []
    executor = make_executor("ray", address=cluster.address)
    summary = run_grid(
        grid, executor, works.held_on_doomed_node, tmp_path / "ray", data_dir, quiet=True, say=said.append
    )
    killer.join()
    assert (summary.done, summary.failed) == (2, ())
    assert any("to be tried again" in line for line in said), said
    step, node = (tmp_path / "ray" / "resumed-at").read_text().split()
    assert step == "3"  # its checkpoint; the node died in the fourth step
    assert node != cluster.doomed.node_id
    run_grid(grid, make_executor("serial"), run_cell, tmp_path / "serial", data_dir, quiet=True)
    assert result_files(grid, tmp_path / "ray") == result_files(grid, tmp_path / "serial")

    # A run that no node can take is refused instead of waited for.
    hungry = small_grid(execution={"threads": 64})
    with pytest.raises(UserError, match="a run needs 64 CPUs and 0 GPUs on one node; the nodes have 1 CPUs"):
        run_grid(hungry, executor, run_cell, tmp_path / "hungry", data_dir)
    with pytest.raises(UserError, match="say how many threads a run has on the cluster"):
        run_grid(small_grid(execution={}), executor, run_cell, tmp_path / "hungry", data_dir)
