"""A result against the paper's setting: everything that its configs hold is compared, whatever is added to them."""

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import get_args, get_type_hints

import pytest

from manicap.domains.atari.config import AtariConfig, atari_preset
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig, preset_evaluation
from manicap.domains.base import find_domain
from manicap.domains.images.config import image_preset
from manicap.domains.images.evaluation_config import ImageEvaluationConfig
from manicap.domains.result import RunResult, TrainingFacts
from manicap.jobs.differences import (
    NOT_COMPARED_EVALUATION,
    NOT_COMPARED_RUN,
    differences_from_paper,
    setting_sentence,
)

ATARI_RUN = replace(atari_preset("paper", "breakout", "dim-c+"), protocol="reference", weights="last")
ATARI_PROBE = AtariEvaluationConfig(
    protocol="reference", annotation_set="ari-2020", probe="linear", probe_store="per seed"
)
IMAGE_RUN = image_preset("paper", "cifar10", "simclr-c+", "tsai2021")
IMAGE_PROBE = ImageEvaluationConfig(protocol="tsai2021")


def result(run, evaluation, precision="float32"):
    """A result of which nothing is known but how it was made."""
    training = TrainingFacts(steps=600, epochs=1, best_epoch=1, weights=run.weights, precision=precision)
    return RunResult(run, evaluation, training, "", None, {}, "")


@pytest.mark.parametrize(("run", "probe"), [(ATARI_RUN, ATARI_PROBE), (IMAGE_RUN, IMAGE_PROBE)])
def test_the_papers_setting_has_no_difference(run, probe):
    faithful = result(run, probe)
    assert differences_from_paper(faithful, 5) == []
    assert setting_sentence(faithful) == "The paper's setting."


CHOSEN = {"probe_init": "zero", "probe_features": "cached", "annotation_set": "corrected", "recipe": "simclr"}
"""Where `auto`, or a name that a type does not tell, is the paper's."""


def other(name, value, hint):
    """Another value of a field's type."""
    options = [x for option in (hint, *get_args(hint)) for x in (option, *get_args(option))]
    words = [x for x in options if isinstance(x, str) and x != value]
    if name in CHOSEN or words:
        return CHOSEN.get(name) or words[-1]
    if bool in options:
        return not value
    return f"{value}x" if isinstance(value, str) else 3 * (value or 1)


def changes():
    for run, probe in ((ATARI_RUN, ATARI_PROBE), (IMAGE_RUN, IMAGE_PROBE)):
        for place, config in (("run", run), ("settings", run.settings), ("probe", probe)):
            for field in fields(config):
                exempt = NOT_COMPARED_EVALUATION if place == "probe" else NOT_COMPARED_RUN
                value = getattr(config, field.name)
                if is_dataclass(value) or (place != "settings" and field.name in exempt):
                    continue
                new = other(field.name, value, get_type_hints(type(config))[field.name])
                yield pytest.param(run, probe, place, field.name, new, id=f"{run.domain}-{place}-{field.name}")


@pytest.mark.parametrize(("run", "probe", "place", "name", "value"), list(changes()))
def test_every_field_is_compared(run, probe, place, name, value):
    configs = {"run": run, "settings": run.settings, "probe": probe}
    configs[place] = replace(configs[place], **{name: value})
    if place == "settings":
        configs["run"] = replace(run, settings=configs["settings"])
    changed = result(configs["run"], configs["probe"])
    # The protocol also decides what `auto` stands for.
    assert len(differences_from_paper(changed, 5)) == (2 if (place, name) == ("probe", "protocol") else 1)


def test_a_field_that_is_added_to_a_config_is_compared():
    @dataclass(frozen=True, kw_only=True)
    class Extended(AtariConfig):
        shuffled_twice: bool = True

    run = Extended(**{field.name: getattr(ATARI_RUN, field.name) for field in fields(ATARI_RUN)})
    assert differences_from_paper(result(run, ATARI_PROBE), 5) == ["shuffled twice True, not none"]

    @dataclass(frozen=True)
    class Probe(AtariEvaluationConfig):
        probe_colour: str = "blue"

    probe = Probe(**{field.name: getattr(ATARI_PROBE, field.name) for field in fields(ATARI_PROBE)})
    assert differences_from_paper(result(ATARI_RUN, probe), 5) == ["probe colour blue, not none"]


def test_a_quick_run_is_told_in_words():
    quick = result(atari_preset("quick", "breakout", "dim-c+"), preset_evaluation("quick"))
    found = differences_from_paper(quick, 1)
    for part in (
        "20,000 frames of play, not 100,000",
        "600 training steps, not up to 100 epochs",
        "input both, not scaled",
        "schedule cosine, not constant",
        "patience none, not 15",
        "units 512, not 4096",
        "pretraining protocol fixed, not reference",
        "probed on 12,000 frames, not 50,000",
        "protocol fixed, not reference",
        "annotation set corrected, not ari-2020",
        "probe store shared, not per seed",
        "probe ridge, not linear",
        "1 seed, not 5",
    ):
        assert part in found
    assert setting_sentence(replace(quick, differences_from_paper=("a", "b"))) == "Not the paper's setting: a; b."


def test_precision_is_compared():
    # The paper's GPU, a Tesla V100, has no bfloat16.
    assert differences_from_paper(result(ATARI_RUN, ATARI_PROBE, precision="bfloat16"), 5) == [
        "trained in bfloat16, not float32"
    ]


def test_columns_of_2019_were_probed_by_the_annotations_of_2019():
    run = replace(atari_preset("paper", "pong", "st-dim"), protocol="reference", weights="last")
    assert differences_from_paper(result(run, ATARI_PROBE), 5) == ["annotation set ari-2020, not ari-2019"]
    assert differences_from_paper(result(run, replace(ATARI_PROBE, annotation_set="ari-2019")), 5) == []


def test_sets_that_are_equal_for_a_game_are_no_difference():
    # Freeway has the same variables in both tables.
    run = replace(atari_preset("paper", "freeway", "st-dim"), protocol="reference", weights="last")
    assert differences_from_paper(result(run, ATARI_PROBE), 5) == []


def test_what_auto_stands_for_is_compared_not_its_name():
    assert differences_from_paper(result(IMAGE_RUN, replace(IMAGE_PROBE, probe_features="augmented")), 1) == []
    assert differences_from_paper(result(ATARI_RUN, replace(ATARI_PROBE, probe_init="uniform")), 5) == []
    assert differences_from_paper(result(ATARI_RUN, replace(ATARI_PROBE, probe_init="zero")), 5) == [
        "probe init zero, not uniform"
    ]


def test_as_many_images_as_there_are_are_all():
    few, all_of_them = (result(replace(IMAGE_RUN, num_images=count), IMAGE_PROBE) for count in (10_000, 50_000))
    assert differences_from_paper(few, 1) == ["10,000 training images, not all"]
    assert differences_from_paper(all_of_them, 1) == []


@pytest.mark.parametrize(
    ("run", "probe", "told"),
    [
        (atari_preset("quick", "pong", "dim-ua-weighted"), preset_evaluation("quick"), "dim-ua-weighted on pong"),
        (atari_preset("quick", "skiing", "st-dim"), preset_evaluation("quick"), "st-dim on skiing"),
        (image_preset("quick", "cifar10", "vicreg", "clean"), IMAGE_PROBE, "vicreg on cifar10"),
        (
            image_preset("quick", "pictures/stripes", "simclr", "clean"),
            IMAGE_PROBE,
            "simclr on pictures/stripes",
        ),
        # A folder is not the dataset that it is named after.
        (image_preset("paper", "pictures/cifar10", "simclr", "tsai2021"), IMAGE_PROBE, "simclr on pictures/cifar10"),
    ],
)
def test_what_the_paper_does_not_have_has_no_paper_setting(run, probe, told):
    unpublished = result(run, probe)
    assert find_domain(run.domain).paper_setting(run.full_subject, run.method) is None
    assert differences_from_paper(unpublished, 1) == []
    assert setting_sentence(unpublished) == f"arXiv 2405.13848 has no number for {told}."
