"""The calls that are tried: every command, on real games and images, small enough to end in a second.

A call's working directory holds what the calls that it `needs` have left there, and the fixtures among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from manicap.algorithms import METHODS
from manicap.algorithms.base import Settings
from tests.algorithms.small import SMALL, TRAINED
from tests.algorithms.small_images import small_image_settings

FIXTURES = ("pictures", "cifar10", "grid.toml", "images.toml", "points.npy", "old store")
"""Made by the workshop, not by a call."""

CARTPOLE = "--env CartPole-v1 --frame-size 48 48 --lanes 3"
SMALL_STEPS = "--method st-dim --units 8 --collect-steps 240 --batch-size 4 --max-steps 4"
PLAY = "--game pong --collect-steps 260 --lanes 4 --batch-size 4 --max-steps 4"
PROBE = "--probe-steps 560 --probe knn"
EXECUTION = "--threads 1 --checkpoint-seconds 0 --log-every 1 --quiet"
"""A checkpoint and a line after every step: more moments at which something can go wrong."""
LEARN = "--batch-size 16 --max-epochs 1"
NEAREST = "--probe knn --neighbors 5"
GRID = """\
title = "Small grid"
datasets = ["pong"]
methods = ["random-cnn"]
seeds = [0]
preset = "quick"
[run]
collect_steps = 260
lanes = 4
batch_size = 4
max_steps = 2
units = 8
[probe]
probe_steps = 560
probe = "knn"
[[variants]]
method = "dim-ua"
label = "DIM-UA, narrow"
num_heads = [2]
[execution]
threads = 1
checkpoint_seconds = 0.0
"""
IMAGE_GRID = """\
title = "Small grid of images"
datasets = ["pictures"]
methods = ["simclr"]
seeds = [0, 1]
[run]
batch_size = 16
max_epochs = 1
encoder = "resnet18"
encoder_width = 8
units = 8
hidden_units = 8
[probe]
probe = "knn"
neighbors = 5
[execution]
threads = 1
checkpoint_seconds = 0.0
"""


@dataclass(frozen=True)
class Call:
    name: str
    words: tuple[str, ...]
    """A word with a star stands for the paths that it matches, as in a shell."""
    needs: tuple[str, ...] = ()
    """Calls and fixtures whose files it finds."""
    stop: float | None = None
    """Killed after this share of its changes to the disk: what it leaves is an interrupted run."""

    @property
    def command(self) -> str:
        from manicap.cli.main import COMMANDS

        pair = " ".join(self.words[:2])
        return pair if pair in COMMANDS else self.words[0]

    @property
    def stage(self) -> str:
        """What the table counts it under: `train st-dim` and `train cpc` are one stage."""
        return self.name.split()[0]


def _call(name: str, words: str, needs: str = "", stop: float | None = None) -> Call:
    return Call(name, tuple(words.split()), tuple(part for part in needs.split(", ") if part), stop)


def _flags(values: Mapping[str, object]) -> str:
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in values.items())


def _play_settings(method: str) -> str:
    has_units = any(field.name == "units" for field in fields(METHODS[method].settings_type))
    small: Mapping[str, object] = SMALL.get(method, {"units": 8} if has_units else {})  # type: ignore[assignment]
    return _flags(small)


def _image_settings(method: str) -> str:
    small: Settings = small_image_settings(method)
    default = METHODS[method].settings_type.preset("quick")
    names = [field.name for field in fields(small) if getattr(small, field.name) != getattr(default, field.name)]
    return _flags({name: getattr(small, name) for name in names})


def _run(method: str) -> str:
    return f"run --method {method} {_play_settings(method)} {PLAY} {PROBE} {EXECUTION}"


def _images(method: str, dataset: str, more: str = "") -> str:
    return (
        f"images --dataset {dataset} --method {method} {_image_settings(method)} {LEARN} {NEAREST} {EXECUTION} {more}"
    )


def _train(method: str) -> str:
    return f"pretrain --method {method} {_play_settings(method)} {PLAY} {EXECUTION} --name {method} --diagnose-every 2"


IMAGE_METHODS = [name for name, method in METHODS.items() if method.kind == "views" and method.is_trained]
_ALL = [
    _call("collect pong", "collect --game pong --steps 260 --lanes 4 --workers 2"),
    _call("collect probe", "collect --game pong --steps 560 --purpose probe --workers 2"),
    _call("collect breakout", "collect --game breakout --steps 200 --lanes 3 --seed 5 --workers 3"),
    _call("record cartpole", f"record {CARTPOLE} --steps 240 --workers 2"),
    _call("record probe", f"record {CARTPOLE} --steps 150 --purpose probe --workers 2"),
    _call("train environment", f"pretrain {CARTPOLE} {SMALL_STEPS} {EXECUTION} --name environment", "record cartpole"),
    _call(
        "probe environment",
        "evaluate runs/environment --probe-steps 150 --probe knn --threads 1",
        "train environment, record probe",
    ),
    *[_call(f"train {method}", _train(method), "collect pong") for method in TRAINED],
    _call("train random-cnn", _train("random-cnn"), "collect pong"),
    _call("stopped st-dim", _train("st-dim"), "collect pong", stop=0.7),
    _call("resume st-dim", f"resume runs/st-dim {EXECUTION} --diagnose-every 2", "stopped st-dim"),
    _call("run dim-ua", _run("dim-ua"), "collect pong, collect probe"),
    _call("run again", _run("dim-ua"), "run dim-ua"),
    _call("probe knn", f"evaluate runs/st-dim {PROBE} --threads 1", "train st-dim, collect probe"),
    _call("probe again", f"evaluate runs/st-dim {PROBE} --threads 1", "probe knn"),
    _call("probe other", f"evaluate runs/st-dim {PROBE} --threads 1 --protocol reference", "probe knn"),
    _call(
        "probe backbone",
        f"evaluate runs/st-dim {PROBE} --probe-input backbone --width 8 --threads 1",
        "train st-dim, collect probe",
    ),
    _call(
        "probe logistic",
        "evaluate runs/st-dim --probe-steps 560 --probe logistic --threads 1",
        "train st-dim, collect probe",
    ),
    _call("probe beside", f"evaluate runs/st-dim {PROBE} --threads 1 --beside runs/cpc", "probe knn, train cpc"),
    _call("compare play", f"compare runs/st-dim runs/cpc {PROBE} --threads 1", "probe beside"),
    _call(
        "diagnose play",
        "diagnose runs/dim-ua --probe-steps 560 --windows 128 --window-frames 2 --threads 1",
        "train dim-ua, collect probe",
    ),
    _call("export run", "export runs/st-dim --frames 16 --threads 1", "train st-dim, collect probe"),
    _call("nerve run", "nerve runs/dim-ua --probe-steps 560 --threads 1", "train dim-ua, collect probe"),
    _call("nerve shape", "nerve --shape circle --points 100 --steps 5 --charts 4 --threads 1"),
    _call("nerve file", "nerve --shape points.npy --steps 5 --charts 4 --threads 1", "points.npy"),
    *[_call(f"images {method}", _images(method, "pictures"), "pictures") for method in IMAGE_METHODS],
    _call("images cifar10", _images("simclr", "cifar10", "--num-images 64"), "cifar10"),
    _call(
        "images checked",
        _images("simclr-c+", "pictures", "--check-every 1 --protocol tsai2021 --weights best"),
        "pictures",
    ),
    _call(
        "images cifar10-more", _images("simclr", "cifar10", "--num-images 64 --probe-input backbone"), "images cifar10"
    ),
    _call("images more", _images("simclr", "pictures", "--probe-input backbone"), "images simclr"),
    _call("images again", _images("simclr", "pictures"), "images simclr"),
    _call("probe images", "evaluate runs/pictures-* --probe-epochs 2 --threads 1", "images simclr"),
    _call("compare images", f"compare runs/pictures-* {NEAREST} --threads 1", "images simclr, images byol"),
    _call("diagnose images", "diagnose runs/pictures-* --groups 8 --views 2 --threads 1", "images simclr"),
    _call("grid serial", "bench run grid.toml", "grid.toml, collect pong, collect probe"),
    _call("grid again", "bench run grid.toml", "grid serial"),
    _call("grid images", "bench run images.toml", "images.toml, pictures"),
    _call("grid processes", "bench run images.toml --executor processes --workers 2", "images.toml, pictures"),
    _call("search grid", "bench search grid.toml --metric f1 --shares 0.5 1", "grid serial"),
    _call("status grid", "bench status grid.toml", "grid serial"),
    _call("plan grid", "bench plan grid.toml --threads 1", "grid serial"),
    _call("page grid", "report grid.toml", "grid serial"),
    _call("data list", "data list", "collect pong, collect probe"),
    _call("data verify", "data verify", "collect pong, collect probe"),
    _call("data splits", "data splits data/pong/*", "collect probe"),
    _call("convert old", "data convert", "old store, collect probe"),
    _call("export npz", "data export data/pong/* --format npz --force", "collect probe"),
    _call("export mp4", "data export data/pong/* --force", "collect probe"),
    _call("push store", "data push data/pong/* --data-dir memory://campaign", "collect probe"),
    _call("pull stores", "data pull --data-dir memory://campaign"),
    _call("data remove", "data remove data/pong/*", "collect probe"),
    _call("annotations list", "annotations list pong --annotation-set ari-2020"),
    _call("annotations verify", "annotations verify pong --steps 20"),
    _call("methods", "methods"),
]
CALLS: dict[str, Call] = {call.name: call for call in _ALL}
