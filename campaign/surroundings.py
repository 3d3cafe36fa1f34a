"""Things in a working directory that a path may lead to by mistake."""

from pathlib import Path

import numpy as np


def put_traps(directory: Path) -> None:
    """A file where a directory is expected and the reverse, links that lead nowhere, files of another shape."""
    (directory / "a-file").write_text("precious\n")
    (directory / "a-directory").mkdir(exist_ok=True)
    (directory / "a-directory" / "kept.txt").write_text("precious\n")
    (directory / "a-loop").symlink_to("a-loop")
    (directory / "a-dangling-link").symlink_to("nowhere")
    (directory / "not-a-store").mkdir(exist_ok=True)
    (directory / "not-a-store" / "manifest.json").write_text("[]")
    (directory / "empty.toml").write_text("")
    (directory / "deep.toml").write_text("x = " + "[" * 5000 + "]" * 5000)
    (directory / "latin1.toml").write_bytes(b'title = "caf\xe9"\n')
    (directory / "digits.toml").write_text("seeds = [" + "9" * 5000 + "]\n")
    np.save(directory / "zeros.npy", np.zeros((0, 3)))
    np.save(directory / "object.npy", np.array([{}], object), allow_pickle=True)
