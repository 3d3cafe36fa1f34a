"""A grid over images: the same cells, executors and report as over games."""

import shutil

import numpy as np
import pytest

from manicap.bench.cell import measured
from manicap.bench.executors import make_executor, run_grid
from manicap.bench.grid import build_grid
from manicap.bench.plan import plan_grid
from manicap.cli.bench import work
from manicap.core.errors import UserError
from manicap.report.grid_report import write_grid_report
from manicap.report.png import encode_colour_png


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two classes of noise, dark and bright: 12 training and 4 test images of 16 x 16 each."""
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 4)):
        for name, level in (("dark", 0), ("bright", 128)):
            (root / split / name).mkdir(parents=True)
            for index in range(count):
                pixels = rng.integers(level, level + 127, (3, 16, 16)).astype(np.uint8)
                (root / split / name / f"{index:02d}.png").write_bytes(encode_colour_png(pixels))
    return root


def image_grid(folder, **changes):
    values = {
        "datasets": [str(folder)],
        "methods": ["simclr"],
        "variants": [{"method": "simclr-c+", "num_heads": 2}],
        "run": {"encoder_width": 8, "units": 8, "hidden_units": 8, "batch_size": 8, "max_epochs": 2},
        "probe": {"probe": "knn", "neighbors": 5},
        "execution": {"threads": 1},
    }
    return build_grid(values | changes, "images")


def test_a_grid_over_images_is_planned_run_and_reported(folder, tmp_path):
    grid = image_grid(folder)
    plan = plan_grid(grid, tmp_path / "runs", tmp_path, threads=1)
    assert (plan.num_cells, plan.collect_hours) == (2, 0.0)
    assert plan.train_hours > 0
    summary = run_grid(grid, make_executor("serial"), work, tmp_path / "runs", tmp_path, quiet=True)
    assert (summary.done, summary.failed) == (2, ())
    for cell in grid.cells:
        assert (tmp_path / "runs" / cell.name / "report.html").is_file()
        result = measured(tmp_path / "runs" / cell.name, cell.evaluations[0])
        assert result.training.steps == 2 * (24 // 8)
    page = write_grid_report(grid, tmp_path / "runs", tmp_path / "report").read_text()
    assert "2 of 2 runs measured" in page
    assert "simclr-c+ (num heads 2)" in page


def test_games_and_images_are_not_mixed(folder):
    with pytest.raises(UserError, match="the same kind of samples: simclr, simclr-c\\+ from views; st-dim from frames"):
        image_grid(folder, variants=[{"method": "simclr-c+"}, {"method": "st-dim"}])
    with pytest.raises(UserError, match="unknown dataset 'cifar'; did you mean 'cifar10'?"):
        image_grid("cifar")


def test_a_grid_over_a_folder_that_has_changed_measures_it_again(folder, tmp_path):
    images = tmp_path / "images"
    shutil.copytree(folder, images)
    grid = image_grid(images, methods=["simclr"], variants=[])

    def run():
        summary = run_grid(grid, make_executor("serial"), work, tmp_path / "runs", tmp_path, quiet=True)
        (cell,) = grid.cells
        return summary, measured(tmp_path / "runs" / cell.name, cell.evaluations[0]).evaluation.store

    _, before = run()
    summary, again = run()
    assert (summary.done_before, again) == (1, before)
    shutil.copy(images / "test" / "dark" / "00.png", images / "test" / "bright" / "00.png")
    summary, after = run()
    assert (summary.done, summary.failed) == (1, ())
    assert after != before
    shutil.copy(images / "train" / "dark" / "00.png", images / "train" / "bright" / "00.png")
    summary, _ = run()
    assert [outcome.error[:11] for outcome in summary.failed] == ["the data of"]


def test_nothing_is_left_of_the_features_that_probes_have_shared(folder, tmp_path):
    grid = image_grid(folder, variants=[], evaluations=[{"neighbors": 3}, {"neighbors": 4}])
    run_grid(grid, make_executor("serial"), work, tmp_path / "runs", tmp_path, quiet=True)
    assert list((tmp_path / "runs").glob("*/features")) == []
