"""Stores of format 2, as versions before compression wrote them."""

import hashlib

import numpy as np

from manicap.atari.store import EPISODE, StoreConfig, store_path
from manicap.core.config import to_dict
from manicap.core.sealed import write_sealed


def write_old_store(store, data_dir):
    """The play of a store, with frames as one array; returns the directory."""
    return _write(data_dir, store.config, np.array(store.frames), store.ram, store.episodes)


def write_small_old_store(data_dir):
    """Two lives of ten frames, of a bar that falls."""
    frames = np.zeros((20, 210, 160), np.uint8)
    for row, frame in enumerate(frames):
        frame[10 * row : 10 * row + 9] = 100 + row
    ram = np.arange(20 * 128, dtype=np.uint8).reshape(20, 128)
    episodes = np.zeros(2, EPISODE)
    episodes["lane"], episodes["start"], episodes["length"] = [0, 1], [0, 10], 10
    return _write(data_dir, StoreConfig("pong", steps=20, lanes=2), frames, ram, episodes)


def _write(data_dir, config, frames, ram, episodes):
    path = store_path(config, data_dir)
    path.mkdir(parents=True)
    files = {}
    for name, array in {"frames.npy": frames, "ram.npy": ram, "episodes.npy": episodes}.items():
        np.save(path / name, array)
        content = (path / name).read_bytes()
        files[name] = {"bytes": len(content), "slices": [[0, len(content), hashlib.sha256(content).hexdigest()]]}
    counts = {"frames": len(frames), "episodes": len(episodes)}
    manifest = {"format": 2, "config": to_dict(config), "versions": {}, "counts": counts, "files": files}
    write_sealed(path / "manifest.json", manifest)
    return path
