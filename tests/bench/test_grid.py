import re
from dataclasses import replace
from pathlib import Path

import pytest

import manicap
from manicap.atari.games import PAPER_GAMES
from manicap.bench.grid import build_grid, read_grid
from manicap.core.errors import UserError
from manicap.domains.atari.config import atari_preset

PLAIN = {"datasets": ["pong"], "methods": ["st-dim", "dim-c+"], "seeds": [0, 1]}


def grid(**changes):
    return build_grid(PLAIN | changes, "test")


def test_every_dataset_method_and_seed_is_a_run_of_the_preset():
    built = grid(datasets=["pong", "breakout"])
    assert len(built.cells) == 2 * 2 * 2
    assert built.places["pong", "dim-c+", 0].config == atari_preset("quick", "pong", "dim-c+")
    # The first seed of everything comes before the second of anything.
    assert [cell.config.seed for cell in built.cells] == [0] * 4 + [1] * 4


def test_run_settings_reach_runs_and_the_methods_that_have_them():
    built = grid(run={"max_steps": 7, "hidden_units": 9})
    st_dim, dim_c = (built.places["pong", name, 0].config for name in ("st-dim", "dim-c+"))
    assert (st_dim.max_steps, dim_c.max_steps) == (7, 7)
    assert dim_c.settings.hidden_units == 9
    assert not hasattr(st_dim.settings, "hidden_units")


def test_a_list_in_a_variant_makes_a_column_of_each_value():
    built = grid(methods=[], variants=[{"method": "dim-c+", "epsilon": [0.0, 5e-3]}])
    assert [column.label for column in built.columns] == ["dim-c+ (epsilon 0)", "dim-c+ (epsilon 0.005)"]
    assert [column.point for column in built.columns] == [(0.0,), (5e-3,)]
    assert {column.sweep for column in built.columns} == {"epsilon"}
    assert built.places["pong", "dim-c+ (epsilon 0.005)", 1].config.settings.epsilon == 5e-3


def test_several_lists_go_side_by_side():
    built = grid(methods=[], variants=[{"method": "dim-c+", "num_heads": [1, 2], "units": [8, 4], "epsilon": 0.1}])
    found = [built.places["pong", column.label, 0].config.settings for column in built.columns]
    assert [(s.num_heads, s.units, s.epsilon) for s in found] == [(1, 8, 0.1), (2, 4, 0.1)]
    assert built.columns[1].sweep == "num_heads x units"


def test_columns_that_ask_for_the_same_run_share_it():
    # 5e-4 is the default of dim-c+.
    built = grid(methods=["dim-c+"], variants=[{"method": "dim-c+", "epsilon": [5e-4, 0.1]}], seeds=[0])
    assert len(built.places) == 3
    assert len(built.cells) == 2
    assert built.places["pong", "dim-c+", 0] == built.places["pong", "dim-c+ (epsilon 0.0005)", 0]


def test_evaluations_are_named_by_what_sets_them_apart_and_inherit_the_runs_protocol():
    built = grid(
        run={"protocol": "reference"},
        probe={"probe_steps": 800},
        evaluations=[{}, {"probe_input": "backbone", "annotation_set": "ari-2020"}, {"protocol": "fixed", "width": 9}],
    )
    assert list(built.evaluations) == ["output", "backbone, ari-2020", "output, fixed, width 9"]
    assert {config.probe_steps for config in built.evaluations.values()} == {800}
    assert [config.protocol for config in built.evaluations.values()] == ["reference", "reference", "fixed"]


def test_everything_wrong_is_said_at_once():
    with pytest.raises(UserError) as caught:
        build_grid(
            {
                "datasets": ["pogn"],
                "methods": ["st-dmi", "dim-c+"],
                "sedes": [1],
                "seeds": ["a"],
                "baseline": "nothing",
                "run": {"max_stps": 3},
                "evaluations": [{"probe": "lin"}, {"name": "x"}, {"name": "x"}],
                "variants": [
                    {"method": "dim-c+", "epsilon": [0.1, 0.2], "units": [1]},
                    {"method": "dim-c+", "epsilom": 0.1},
                    {"epsilon": 0.1},
                ],
                "execution": {"retries": -1},
            },
            "test",
        )
    for part in (
        "unknown game 'pogn'; did you mean 'pong'?",
        "unknown method 'st-dmi'; did you mean 'st-dim'?",
        "unknown key 'sedes'; did you mean 'seeds'?",
        "seeds[0] must be int, got 'a'",
        "unknown baseline 'nothing'",
        "unknown key 'run.max_stps'; did you mean 'run.max_steps'?",
        "unknown probe 'lin'; did you mean 'linear'?",
        "two evaluations are called 'x'",
        "must have the same length: epsilon has 2, units has 1",
        "unknown key 'variants[1].epsilom'; did you mean 'variants[1].epsilon'?",
        "variants[2].method is required",
        "execution.retries must not be negative, got -1",
    ):
        assert part in str(caught.value)


def test_a_wrong_value_of_a_run_names_its_column():
    with pytest.raises(UserError, match=r"dim-c\+ \(epsilon x\): settings.epsilon must be float, got 'x'"):
        grid(variants=[{"method": "dim-c+", "epsilon": "x"}])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probe": {"width": 0}}, "width must be at least 1, got 0"),
        ({"probe": {"probe_steps": -4}}, "probe_steps must be at least 8, got -4"),
        ({"run": {"num_heads": 0}}, "num_heads must be at least 1, got 0"),
        ({"run": {"epsilon": float("nan")}}, "epsilon"),
        ({"variants": [{"method": "dim-c+", "epsilon": [0.1, float("nan")]}]}, "epsilon"),
        ({"variants": [{"method": "dim-c+", "epsilon": []}]}, "variants[0]: epsilon must have at least one value"),
        ({"probe": {"annotation_set": "ari-2018"}}, "unknown annotation set 'ari-2018'"),
        ({"probe": {"probe": "os:system"}}, "a file cannot decide what is imported; name it yourself (--plugin"),
        ({"probe": {"width": 300}}, "st-dim: width must be at most the 256 features of st-dim, got 300"),
        ({"datasets": ["skiing"], "probe": {"annotation_set": "ari-2019"}}, "skiing is not annotated in 'ari-2019'"),
        ({"run": {"batch_size": 0}}, "batch_size must be at least"),
    ],
)
def test_values_that_no_run_or_probe_takes_are_refused_with_the_file(changes, message):
    with pytest.raises(UserError, match=re.escape(message)):
        grid(**changes)


def test_a_way_of_probing_that_an_image_run_cannot_have_is_refused_with_the_file():
    images = {"datasets": ["cifar10"], "methods": ["simclr"], "evaluations": [{"protocol": "tsai2021"}]}
    with pytest.raises(UserError, match="train with protocol tsai2021 and weights 'best'"):
        build_grid(images, "test")
    assert build_grid(images | {"run": {"protocol": "tsai2021"}}, "test").cells


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"run": {"batch_size": 1}}, "batch_size must be at least 2, got 1"),
        ({"variants": [{"method": "dim-c+", "label": 3}]}, r"variants\[0\].label must be str, got 3"),
        ({"evaluations": [{"name": ["a"]}]}, r"evaluations\[0\].name must be str, got \['a'\]"),
        ({"seeds": []}, "seeds must not be empty"),
        ({"seeds": [2, 2]}, r"seeds must not repeat a value, got \(2, 2\)"),
        ({"execution": {"gpus": float("inf")}}, "execution.gpus must be a finite number, got inf"),
    ],
)
def test_a_value_out_of_range_is_refused(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        grid(**changes)


def test_a_grid_without_methods_is_refused():
    with pytest.raises(UserError, match="methods or variants must name at least one method"):
        grid(methods=[])


def test_a_missing_file_and_a_broken_one_are_told(tmp_path):
    with pytest.raises(UserError, match="there is no grid file"):
        read_grid(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("datasets = [")
    with pytest.raises(UserError, match="is not valid TOML"):
        read_grid(tmp_path / "broken.toml")


CONFIG_DIR = Path(manicap.__file__).parent / "grids"
CONFIGS = sorted(CONFIG_DIR.glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=[path.stem for path in CONFIGS])
def test_every_grid_of_ours_is_sound(path):
    built = read_grid(path)
    assert built.cells
    assert built.file.execution.threads is not None  # results depend on it
    if "laptop" in path.stem:
        assert built.file.hours is not None


PAPER_GRIDS = ["table1", "table2", "epsilon", "units", "heads", "atari-heads", "hidden"]


@pytest.mark.parametrize("name", PAPER_GRIDS)
def test_the_papers_grids_are_in_the_papers_setting_but_for_what_they_vary(name):
    built = read_grid(CONFIG_DIR / f"{name}.toml")
    assert built.file.execution.precision == "float32"
    varied = {column.label: column.overrides for column in built.columns}
    for (dataset, label, seed), cell in built.places.items():
        paper = built.domain.paper_setting(dataset, cell.config.method)
        if paper is None:  # SimCLR-UA on STL10: as on CIFAR10
            assert (name, cell.config.method, dataset) == ("table2", "simclr-ua", "stl10")
            continue
        settings = replace(paper.config.settings, **varied[label])
        assert cell.config == replace(paper.config, seed=seed, settings=settings)
        assert paper.evaluation in cell.evaluations
        assert paper.num_seeds in (None, len(built.file.seeds))


def test_table_1_is_570_runs_each_probed_by_both_annotation_sets():
    built = read_grid(CONFIG_DIR / "table1.toml")
    assert built.datasets == PAPER_GAMES
    assert len(built.cells) == 19 * 6 * 5
    # Trained as the codes behind the paper: Tables 3 and 4, the last weights, float32 (their GPU had no bfloat16).
    assert {cell.config.seed for cell in built.cells} == {0, 1, 2, 3, 4}
    assert {cell.config.method for cell in built.cells} == {"vae", "cpc", "st-dim", "dim-ua", "dim-uac+", "dim-c+"}
    for cell in built.cells:
        config = cell.config
        paper = atari_preset("paper", config.game, config.method)
        changes = {"protocol": "reference", "weights": "last", "seed": config.seed}
        assert config == replace(paper, **changes), cell.name
    assert (paper.collect_steps, paper.max_steps, paper.max_epochs) == (100_000, None, 100)
    assert built.file.execution.precision == "float32"
    # Probed on 50,000 steps of play as the 2019 code probes, what each method's paper probes.
    assert [each.annotation_set for each in built.evaluations.values()] == ["ari-2020", "ari-2019"]
    for evaluation in built.evaluations.values():
        assert (evaluation.protocol, evaluation.probe, evaluation.probe_steps) == ("reference", "linear", 50_000)
        assert (evaluation.probe_input, evaluation.width, evaluation.probe_store) == ("output", None, "per seed")


def test_no_two_columns_of_our_grids_are_the_same_training():
    # dim-uac+ with epsilon 0 is dim-ua: other names for the same losses on the same weights.
    for path in CONFIGS:
        for column in read_grid(path).columns:
            assert (column.method, column.overrides.get("epsilon")) != ("dim-uac+", 0.0), path
