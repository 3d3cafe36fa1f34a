"""The same grid on a real Ray cluster of two nodes, one of which is killed in the middle."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from manicap.bench.cell import run_cell
from manicap.bench.executors import make_executor, run_grid
from manicap.core.errors import UserError
from tests.bench import small_grid as works
from tests.bench.small_grid import result_files, small_grid

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = "0123456789abcdef" * 2
ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'manicap[ray]'")
cluster_utils = pytest.importorskip("ray.cluster_utils")

# Ray takes 127.0.0.1 for the machine's outward address where it makes a cluster.
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
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


WHERE_IT_LISTENS = """
import json, os, pathlib
from manicap.bench.executors import make_executor

executor = make_executor("ray")
executor.ray.get(executor.ray.remote(num_cpus=1)(lambda: 0).remote())

def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

family, sockets = {os.getpid()}, {}
processes = [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]
for _ in range(4):  # children of children of ...
    for pid in processes:
        try:
            if parent(pid) in family:
                family.add(pid)
        except OSError:
            pass
for name in ("tcp", "tcp6"):
    for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A":
            sockets[f"socket:[{fields[9]}]"] = fields[1].split(":")[0]
found = []
for pid in family:
    try:
        links = [os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        continue
    found += [sockets[link] for link in links if link in sockets]
print(json.dumps(found), os.environ["RAY_AUTH_MODE"], len(os.environ["RAY_AUTH_TOKEN"]))
executor.ray.shutdown()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_ray_of_this_machine_listens_on_the_loopback_alone_and_has_a_token(tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    # Another cluster of this machine is none of its business.
    environment |= {"HOME": str(tmp_path), "RAY_ADDRESS": "127.0.0.1:1"}
    command = [sys.executable, "-c", WHERE_IT_LISTENS]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert answer.returncode == 0, answer.stderr
    found, mode, token_length = answer.stdout.rsplit(maxsplit=2)
    # 127.0.0.1 in the kernel's byte order, alone or mapped into IPv6.
    assert set(json.loads(found)) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert len(json.loads(found)) > 3
    assert (mode, token_length) == ("token", "64")
    assert not (tmp_path / ".ray" / "auth_token").exists()


def test_a_cluster_is_joined_with_a_token_or_not_at_all(tmp_path):
    code = "from manicap.bench.executors import make_executor; make_executor('ray', address='127.0.0.1:PORT')"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    with socket.create_server(("127.0.0.1", 0)) as server:  # it is never asked
        command = [sys.executable, "-c", code.replace("PORT", str(server.getsockname()[1]))]
        environment |= {"HOME": str(tmp_path)}
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert "requires a token, and there is none here" in answer.stderr


def test_an_address_where_nobody_listens_is_told_at_once():
    with pytest.raises(
        UserError, match="there is no Ray cluster at '127.0.0.1:1', or it has a different token: .*refused"
    ):
        make_executor("ray", address="127.0.0.1:1")


@pytest.mark.slow  # on two busy cores Ray takes up to a minute and a half to notice
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
    assert any("to be retried" in line for line in said), said
    step, node = (tmp_path / "ray" / "resumed-at").read_text().split()
    assert step == "3"  # its checkpoint; the node died in the fourth step
    assert node != cluster.doomed.node_id
    run_grid(grid, make_executor("serial"), run_cell, tmp_path / "serial", data_dir, quiet=True)
    assert result_files(grid, tmp_path / "ray") == result_files(grid, tmp_path / "serial")

    # A run that no node can take is refused instead of waited for.
    hungry = small_grid(execution={"threads": 64})
    with pytest.raises(UserError, match="a run needs 64 CPUs and 0 GPUs on one node; the nodes have 1 CPUs"):
        run_grid(hungry, executor, run_cell, tmp_path / "hungry", data_dir)
    with pytest.raises(UserError, match="set the threads per run on the cluster"):
        run_grid(small_grid(execution={}), executor, run_cell, tmp_path / "hungry", data_dir)
