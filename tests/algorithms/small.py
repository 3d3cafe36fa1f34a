"""Settings of every method small enough to train in a test."""

from dataclasses import replace

from manicap.algorithms import METHODS
from manicap.domains.atari.config import AtariConfig

SMALL = {
    "dim-c+": {"num_heads": 2, "units": 8, "hidden_units": 8, "epsilon": 0.01},
    "dim-uac+": {"num_heads": 2, "units": 8, "epsilon": 0.01},
    "dim-ua": {"num_heads": 2, "units": 8},
    "dim-ua-weighted": {"num_heads": 2, "units": 8},
    "cpc": {"units": 8, "sequence_frames": 4, "context_units": 8, "step_stride": 1},
}


def small_settings(method):
    default = METHODS[method].settings_type()
    values = SMALL.get(method, {"units": 8} if hasattr(default, "units") else {})
    return replace(default, **values)


def small_config(method, **changes):
    """A run of 12 steps of 6 samples on a Pong store of 8 lives of 80 frames, 6 for training and 2 for validation."""
    values = {"game": "pong", "method": method, "collect_steps": 640, "batch_size": 6, "max_steps": 12}
    return AtariConfig(**values | {"settings": small_settings(method)} | changes)


def like_quick(method, **changes):
    """The same, trained as quick trains a method on pairs."""
    settings = replace(
        small_settings(method), input="both", directions="both", horizon=2, reconstruction=1.0, coherence_filter=True
    )
    schedule = {"learning_rate": 1e-3, "schedule": "cosine", "warmup_steps": 3, "patience": None, "weights": "last"}
    return small_config(method, **{"settings": settings} | schedule | changes)


ATARI = [name for name, method in METHODS.items() if method.kind == "frames"]
IMAGES = [name for name, method in METHODS.items() if method.kind == "views"]
TRAINED = [name for name in ATARI if METHODS[name].is_trained]
