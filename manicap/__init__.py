"""manicap: learn state representations without labels, and measure them honestly.

    manicap.evaluate(encoder, game="pong")           probe any encoder, on a game or on images
    manicap.pretrain("dim-c+", game="pong")          train an encoder; returns the directory of the run
    manicap.run("dim-c+", game="pong")               the whole job: prepare, train, probe, show
    manicap.compare(*runs)                           runs side by side, with intervals
    manicap.diagnose(run)                            rank, spread, heads, capacity; signs of collapse
    manicap.load(run), manicap.from_pretrained(name) a trained encoder as an `nn.Module`; `.push_to_hub(name)` shares it
    manicap.export(run)                              the same as ONNX or a `torch.export` program, for other programs
    manicap.open_run(run)                            a finished run: its config, its encoder before and after
    manicap.collect(config)                          frames and RAM of a game
    manicap.record(env)                              frames and state of any gymnasium environment
    manicap.record_from(path, name)                  frames recorded elsewhere
    manicap.open_store(path)                         a store on disk, of either kind
    manicap.AtariARI(env)                            labels of every step of a gymnasium environment
    manicap.make_vec(game, num_envs)                 many games side by side, with the labels of all
    manicap.methods(), manicap.games()               names, with a line each
    manicap.CapacityRegularizer                      C+ for your own training loop
    manicap.StoreConfig, manicap.Execution           what to collect; how to run: device, threads, checkpoints
    manicap.UserError                                what is raised for a mistake of the caller's; a `ValueError`

`manicap.losses`, `manicap.nn` and `manicap.probing` hold every loss, network and probe by name; `manicap.diagnostics`
measures representations; `manicap.rl` puts encoders under agents of Stable-Baselines3.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manicap.atari.collect import collect
    from manicap.atari.store import StoreConfig
    from manicap.atari.vector import make_vec
    from manicap.atari.wrapper import AtariARI
    from manicap.core.errors import UserError
    from manicap.environments.importing import record_from
    from manicap.environments.recording import record
    from manicap.exporting.exports import export
    from manicap.library import compare, diagnose, evaluate, games, methods, open_run, open_store, pretrain, run
    from manicap.losses.capacity import CapacityRegularizer
    from manicap.pretrained.loading import from_pretrained, load
    from manicap.train.setup import Execution

__version__ = "0.1.0"

# Loaded on first use, so that `import manicap` is quick and collectors never load torch.
_LAZY = {
    "AtariARI": "manicap.atari.wrapper",
    "CapacityRegularizer": "manicap.losses.capacity",
    "Execution": "manicap.train.setup",
    "StoreConfig": "manicap.atari.store",
    "UserError": "manicap.core.errors",
    "collect": "manicap.atari.collect",
    "compare": "manicap.library",
    "diagnose": "manicap.library",
    "evaluate": "manicap.library",
    "export": "manicap.exporting.exports",
    "from_pretrained": "manicap.pretrained.loading",
    "games": "manicap.library",
    "load": "manicap.pretrained.loading",
    "make_vec": "manicap.atari.vector",
    "methods": "manicap.library",
    "open_run": "manicap.library",
    "open_store": "manicap.library",
    "pretrain": "manicap.library",
    "record": "manicap.environments.recording",
    "record_from": "manicap.environments.importing",
    "run": "manicap.library",
}
__all__ = [
    "AtariARI",
    "CapacityRegularizer",
    "Execution",
    "StoreConfig",
    "UserError",
    "collect",
    "compare",
    "diagnose",
    "evaluate",
    "export",
    "from_pretrained",
    "games",
    "load",
    "make_vec",
    "methods",
    "open_run",
    "open_store",
    "pretrain",
    "record",
    "record_from",
    "run",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        found = getattr(import_module(_LAZY[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'manicap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
