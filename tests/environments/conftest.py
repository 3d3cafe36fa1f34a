import numpy as np
import pytest

from manicap.core.seeding import stream_seed
from manicap.environments.recording import record

WORLDS = "tests.environments.worlds"


@pytest.fixture
def record_here(tmp_path):
    """Records a world of `worlds` with small settings, in this process unless told otherwise."""

    def call(world, **settings):
        defaults = {"steps": 60, "lanes": 3, "data_dir": tmp_path / "data", "workers": 0, "quiet": True}
        name = f"{WORLDS}:{world}" if isinstance(world, str) and world.isidentifier() else world
        return record(name, **{**defaults, **settings})

    return call


def stores(tmp_path):
    """All that is under the data directory but locks."""
    return [path.name for path in tmp_path.glob("data/environments/*/*") if not path.name.endswith(".lock")]


def content(store):
    """Bytes by name."""
    return {path.name: path.read_bytes() for path in sorted(store.path.iterdir()) if not path.name.startswith(".")}


def shades_by_hand(lanes, steps):
    """[lanes, steps] of `Shades`: the first numbers of each lane's own generator."""
    seeds = [stream_seed(0, "record", "global", "pretrain", lane) % 2**31 for lane in range(lanes)]
    return [np.random.RandomState(seed).randint(256, size=steps).tolist() for seed in seeds]
