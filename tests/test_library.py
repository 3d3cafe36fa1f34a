"""What people import: it is there, it explains itself, and every example of README and docs runs as written."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import manicap
from manicap.algorithms.base import Batch, MethodContext
from tests.images.files import NAMES

ROOT = Path(__file__).parent.parent
FUNCTIONS = [name for name in manicap.__all__ if inspect.isfunction(getattr(manicap, name))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "docs/methods/README.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


def examples(page):
    return "\n".join(BLOCK.findall(page.read_text()))


def write_black_cifar10(folder):
    """Files of the published size that take no room: airplanes in the dark."""
    folder.mkdir(parents=True)
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        with (folder / f"{name}.bin").open("wb") as file:
            file.truncate(10_000 * (1 + 3 * 32 * 32))
    (folder / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")


def test_everything_that_is_promised_is_there():
    promised = "evaluate pretrain run compare diagnose load open_run collect open_store AtariARI methods games"
    assert {*promised.split(), "CapacityRegularizer", "UserError"} <= set(manicap.__all__)
    assert set(manicap.__all__) <= set(dir(manicap))
    assert issubclass(manicap.UserError, ValueError)
    for module in ("manicap.losses", "manicap.nn", "manicap.probing", "manicap.diagnostics"):
        loaded = importlib.import_module(module)
        assert all(getattr(loaded, name) is not None for name in loaded.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_teaches(name):
    function = getattr(manicap, name)
    text = inspect.getdoc(function)
    assert f"manicap.{name}(" in text, "an example"
    documented = list(inspect.signature(function).parameters)
    assert [p for p in documented if f"{p}:" not in text and f"`{p}`" not in text] == []


def test_evaluate_shows_its_arguments():
    parameters = inspect.signature(manicap.evaluate).parameters
    assert list(parameters)[:3] == ["encoder", "game", "dataset"]
    assert parameters["steps"].default == 50_000


def test_functions_stay_functions_after_every_module_is_imported():
    for module in pkgutil.walk_packages(manicap.__path__, "manicap."):
        if module.name != "manicap.__main__":
            importlib.import_module(module.name)
    assert [name for name in manicap.__all__ if inspect.ismodule(getattr(manicap, name))] == []


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.name)
def test_the_examples_of_a_page_run_as_written(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_black_cifar10(tmp_path / "data" / "cifar10" / "cifar-10-batches-bin")
    names = {"__name__": "example"}
    exec(compile(examples(page), str(page), "exec"), names)  # an example that is no longer true raises
    assert len(names) > 2, "nothing was defined"


def test_the_method_that_contributing_writes_learns():
    names = {"__name__": "example"}
    exec(compile(examples(ROOT / "CONTRIBUTING.md"), "CONTRIBUTING.md", "exec"), names)
    method = names["MyMethod"](names["MySettings"](units=8), MethodContext())
    frames = torch.randint(0, 256, (3, 2, 1, 210, 160), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    method.loss(Batch(frames)).total.backward()
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in method.encoder.parameters())


def test_any_encoder_is_probed_on_images(image_folder):
    def brightness(images):
        return images.reshape(len(images), -1).astype(np.float32)

    evaluation = manicap.evaluate(brightness, dataset=str(image_folder), floors={"same": brightness}, quiet=True)
    assert evaluation.subject == image_folder.name
    assert evaluation.scores == evaluation.floors["same"]
    # Four classes, as many test images of each.
    assert evaluation.floors["majority"].accuracy == 0.25
    assert evaluation.scores.accuracy > 0.5
    module = torch.nn.Flatten().eval()
    again = manicap.evaluate(module, dataset=str(image_folder), input="float", quiet=True, seed=1)
    assert (again.probe, again.seed, again.width) == ("linear", 1, 768)


def test_mistakes_are_user_errors():
    with pytest.raises(manicap.UserError, match="give only one of"):
        manicap.evaluate(lambda frames: frames, game="pong", dataset="cifar10")
    with pytest.raises(manicap.UserError, match="unknown setting 'unit'; did you mean 'units'"):
        manicap.pretrain("st-dim", game="pong", unit=8)
    with pytest.raises(manicap.UserError, match="give what to learn from, such as game='pong'"):
        manicap.pretrain("st-dim")
    with pytest.raises(manicap.UserError, match="must be a function from frames to features"):
        manicap.evaluate("resnet", game="pong")
    with pytest.raises(manicap.UserError, match=r"directory of each run, as in compare\('a', 'b'\), got \["):
        manicap.compare(["runs/a", "runs/b"])
