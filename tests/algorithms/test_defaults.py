"""The settings that a method has by default and in its presets: its paper's, written down a second time."""

from dataclasses import dataclass

import pytest

from manicap.algorithms import METHODS
from manicap.algorithms.two_view import TwoViewSettings

NATURE = {"encoder": "nature", "input": "scaled"}
ON_PAIRS = {"directions": "forward", "horizon": 1}
ONE_HEAD = NATURE | {"units": 256}  # arXiv 1906.08226
ST_DIM = ONE_HEAD | ON_PAIRS
# arXiv 2405.13848, Table 3
ATLAS = NATURE | ON_PAIRS | {"num_heads": 4, "units": 4096, "unbalance_weight": 0.1}
# arXiv 2405.13848, Table 5: ResNet-50, heads of one hidden layer of 2048; one of 2048 units, or eight of 256.
PLAIN = {
    "encoder": "resnet50",
    "stem": "cifar",
    "encoder_width": 64,
    "num_views": 2,
    "hidden_units": 2048,
    "num_heads": 1,
    "units": 2048,
    "epsilon": 0.0,
    "target_ratio": None,
}
C_PLUS = PLAIN | {"num_heads": 8, "units": 256, "epsilon": 0.005}
BARLOW = {"off_diagonal_weight": 0.005, "variance_correction": 1, "variance_epsilon": 1e-5}
VICREG = {"invariance_weight": 25.0, "variance_weight": 25.0, "covariance_weight": 1.0}  # arXiv 2105.04906
TICO = {"covariance_weight": 8.0, "covariance_decay": 0.9, "momentum": 0.99}  # arXiv 2206.10698

DEFAULTS = {
    "dim-c+": NATURE | ON_PAIRS | {"num_heads": 4, "units": 4096, "hidden_units": 2048, "epsilon": 0.0005},
    "dim-uac+": ATLAS | {"target": "mean", "epsilon": 0.0005, "target_ratio": None},
    "dim-ua": ATLAS | {"target": "mean"},
    "dim-ua-weighted": ATLAS | {"target": "membership"},
    **dict.fromkeys(("st-dim", "jsd-st-dim", "global-t-dim"), ST_DIM),
    **dict.fromkeys(("pixel-pred", "dim", "supervised", "random-cnn"), ONE_HEAD),
    "cpc": ONE_HEAD
    | {"sequence_frames": 100, "context_units": 256, "context_layers": 2, "first_step": 1, "step_stride": 4},
    "vae": ONE_HEAD | {"beta": 1.0},
    "majority": {"encoder": "nature"},
    "simclr": PLAIN | {"temperature": 0.5},
    "simclr-c+": C_PLUS | {"temperature": 0.5},
    "simclr-ua": C_PLUS | {"temperature": 0.5, "unbalance_weight": 0.1, "epsilon": 0.0},
    "barlow-twins": PLAIN | BARLOW,
    "barlow-twins-c+": C_PLUS | BARLOW,
    "vicreg": PLAIN | VICREG,
    "vicreg-c+": C_PLUS | VICREG,
    "byol": PLAIN | {"predictor_units": 2048, "momentum": 0.996},  # arXiv 2006.07733
    "byol-c+": C_PLUS | {"predictor_units": 2048, "momentum": 0.996},
    "simsiam": PLAIN | {"predictor_units": 512},  # arXiv 2011.10566: a quarter of the units
    "simsiam-c+": C_PLUS | {"predictor_units": 64},
    "tico": PLAIN | TICO,
    "tico-c+": C_PLUS | TICO,
    # arXiv 2303.03307 for CIFAR-10.
    "mmcr": {"encoder": "resnet50", "stem": "cifar", "num_views": 2, "units": 128, "hidden_units": 512},
}
# A quarter of the width of everything, but no head of fewer than 256 units.
QUICK_IMAGES = {"encoder": "plain", "encoder_width": 32, "hidden_units": 512}
QUICK_SIMCLR = QUICK_IMAGES | {"temperature": 0.2}
# docs/training.md
SEEN = {"input": "both"}
BOTH_WAYS = SEEN | {"directions": "both", "horizon": 2, "reconstruction": 1.5, "coherence_filter": True}
STANDARD = {
    **dict.fromkeys(("st-dim", "jsd-st-dim", "global-t-dim"), BOTH_WAYS),
    **dict.fromkeys(("dim-ua", "dim-ua-weighted", "dim-uac+"), BOTH_WAYS | {"units": 512}),
    "dim-c+": BOTH_WAYS | {"units": 512, "hidden_units": 512},
    **dict.fromkeys(("pixel-pred", "dim", "supervised", "random-cnn", "vae", "cpc"), SEEN),
    **{name: {"encoder": "resnet18"} for name, method in METHODS.items() if method.kind == "views"},
}
QUICK = STANDARD | {
    "cpc": SEEN | {"sequence_frames": 16, "step_stride": 2},
    "simclr": QUICK_SIMCLR | {"units": 512},
    **dict.fromkeys(("simclr-c+", "simclr-ua"), QUICK_SIMCLR),
    **dict.fromkeys(("barlow-twins", "vicreg", "tico"), QUICK_IMAGES | {"units": 512}),
    **dict.fromkeys(("barlow-twins-c+", "vicreg-c+", "tico-c+", "mmcr"), QUICK_IMAGES),
    "byol": QUICK_IMAGES | {"units": 512, "predictor_units": 512},
    "byol-c+": QUICK_IMAGES | {"predictor_units": 512},
    "simsiam": QUICK_IMAGES | {"units": 512, "predictor_units": 128},
    "simsiam-c+": QUICK_IMAGES | {"predictor_units": 16},
}


def chosen(settings, expected):
    return {name: getattr(settings, name) for name in expected}


@pytest.mark.parametrize("name", METHODS)
def test_defaults_and_the_paper_preset_are_the_papers(name):
    settings = METHODS[name].settings_type
    assert chosen(settings(), DEFAULTS[name]) == DEFAULTS[name]
    assert settings.preset("paper") == settings()


@pytest.mark.parametrize("name", METHODS)
def test_the_quick_preset_is_narrower_sees_frames_in_two_ways_and_predicts_both_ways(name):
    expected = DEFAULTS[name] | QUICK.get(name, {})
    assert chosen(METHODS[name].settings_type.preset("quick"), expected) == expected


@pytest.mark.parametrize("name", METHODS)
def test_the_standard_preset_is_that_of_quick_on_atari_and_resnet_18_on_images(name):
    expected = DEFAULTS[name] | STANDARD.get(name, {})
    assert chosen(METHODS[name].settings_type.preset("standard"), expected) == expected


@pytest.mark.parametrize(("output", "hidden", "expected"), [(1000, 3, (256, 1)), (200, 400, (200, 100))])
def test_quick_heads_are_a_quarter_as_wide_but_not_narrower_than_256_units(output, hidden, expected):
    @dataclass(frozen=True)
    class Own(TwoViewSettings):
        units: int = output
        hidden_units: int = hidden

    quick = Own.preset("quick")
    assert (quick.units, quick.hidden_units) == expected
