"""The stores of a run and of its probes: collected if they are not on disk, opened once per job."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from manicap.atari.collect import collect
from manicap.atari.integrity import open_store
from manicap.atari.store import Store, StoreConfig, store_path
from manicap.core.memo import once
from manicap.domains.atari.config import AtariConfig
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig


def collected(config: StoreConfig, data_dir: Path, workers: int | None = None, quiet: bool = True) -> Store:
    """The store, collected if necessary."""
    return once(("store", config, Path(data_dir)), partial(collect, config, data_dir, workers, quiet=quiet))


def store_fingerprint(config: StoreConfig, data_dir: Path) -> str | None:
    """Fingerprint of a store on disk; None if it is not there."""
    path = store_path(config, data_dir)
    if not path.is_dir():
        return None
    return once(("store", config, Path(data_dir)), lambda: open_store(path)).fingerprint


def stores_of(config: AtariConfig, evaluations: Iterable[AtariEvaluationConfig]) -> tuple[StoreConfig, ...]:
    """The stores of a run and of its probes, each once."""
    probed = dict.fromkeys(evaluation.store_config(config.game, config.seed) for evaluation in evaluations)
    return (config.store_config, *probed)
