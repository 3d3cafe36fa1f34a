import numpy as np
import pytest

from manicap.atari.collect import collect
from manicap.atari.store import StoreConfig
from manicap.play.protocol import FIXED
from manicap.play.splits import probe_splits, read_labels
from manicap.probing.features import extract_features
from manicap.probing.sampling import ProbeData


@pytest.fixture(scope="session")
def probe_store(data_dir):
    """3,200 real frames of Pong, 400 a lane: one life a lane."""
    return collect(StoreConfig("pong", steps=3200, purpose="probe"), data_dir, quiet=True)


def block_contrast(frames):
    """A NumPy encoder: uint8 [B, 1, 210, 160] to the standard deviation of 30 x 20 blocks, [B, 600]."""
    blocks = frames.reshape(len(frames), 30, 7, 20, 8)
    return (blocks.std((2, 4), dtype=np.float32) / 64).reshape(len(frames), -1)


@pytest.fixture(scope="session")
def pong_parts(probe_store):
    """Training, validation and test data of block contrasts, from the real store."""
    splits = probe_splits(probe_store, FIXED, "corrected", seed=0)

    def data(part):
        found = read_labels(probe_store, part.rows, "corrected", FIXED, splits.variables)
        features = extract_features(block_contrast, probe_store, part.rows, quiet=True)
        return ProbeData(features, np.stack([found[name] for name in splits.variables], 1), part.episodes)

    return tuple(data(part) for part in (splits.train, splits.val, splits.test))
