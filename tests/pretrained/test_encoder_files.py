"""A loaded encoder is an ordinary module with its own weights, and a file that does not hold them is refused."""

import copy
import io
import pickle
import shutil

import pytest
import safetensors.torch
import torch

from manicap import load
from manicap.core.errors import UserError
from manicap.core.sealed import read_sealed, write_sealed
from manicap.pretrained.weights import write_weights
from manicap.train.finished import FinishedRun
from tests.algorithms.small import small_config
from tests.train.runner import run_to_end

# Features, encoder 1 x 32 k8, 32 x 64 k4, 64 x 128 k4, 128 x 64 k3 with biases.
ENCODER_WEIGHTS = 32 * 64 + 32 + 64 * 32 * 16 + 64 + 128 * 64 * 16 + 128 + 64 * 128 * 9 + 64
CHARTS_WEIGHTS = 2 * (3456 * 8 + 8) + (3456 * 2 + 2)


@pytest.fixture(scope="module")
def runs(data_dir, tmp_path_factory):
    runs_dir = tmp_path_factory.mktemp("runs")
    for name in ("dim-ua", "dim-c+"):
        run_to_end(small_config(name, max_steps=2), runs_dir / name, data_dir)
    return runs_dir


@pytest.fixture(scope="module")
def frames():
    return torch.randint(0, 256, (3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "weights"), [("dim-c+", ENCODER_WEIGHTS), ("dim-ua", ENCODER_WEIGHTS + CHARTS_WEIGHTS)]
)
def test_an_encoder_has_exactly_its_own_weights(name, weights, runs):
    encoder = load(runs / name)
    assert sum(parameter.numel() for parameter in encoder.parameters()) == weights
    state = encoder.state_dict()
    assert sum(value.numel() for value in state.values()) == weights
    assert {value.device.type for value in state.values()} == {"cpu"}
    assert not any(parameter.requires_grad for parameter in encoder.parameters())


@pytest.mark.parametrize("name", ["dim-c+", "dim-ua"])
def test_an_encoder_is_moved_copied_saved_and_loaded_as_any_module(name, runs, frames):
    encoder = load(runs / name)
    expected = encoder(frames)
    buffer = io.BytesIO()
    torch.save(encoder, buffer)
    buffer.seek(0)
    for other in (
        encoder.to("cpu"),
        copy.deepcopy(encoder),
        pickle.loads(pickle.dumps(encoder)),
        torch.load(buffer, weights_only=False),
    ):
        assert torch.equal(other(frames), expected)
    zeroed = copy.deepcopy(encoder)
    for parameter in zeroed.parameters():
        parameter.zero_()
    assert not torch.equal(zeroed(frames), expected)
    zeroed.load_state_dict(encoder.state_dict())
    assert torch.equal(zeroed(frames), expected)
    assert encoder.double()(frames).dtype == torch.float64


def test_an_encoder_can_be_finetuned_and_exported(runs, frames):
    encoder = load(runs / "dim-ua").requires_grad_(True)
    encoder(frames).sum().backward()
    # The chart that no frame is a member of, and the choice among them, get no gradient; the convolutions do.
    assert all(parameter.grad.abs().sum() > 0 for parameter in encoder.method.encoder.parameters())
    encoder.requires_grad_(False)
    exported = torch.export.export(encoder, (frames,))
    torch.testing.assert_close(exported.module()(frames), encoder(frames))


def changed_run(runs, tmp_path, change):
    """A copy of the run whose weights were changed by somebody who also knows to change their hash."""
    run_dir = tmp_path / "changed"
    shutil.copytree(runs / "dim-ua", run_dir)
    path = run_dir / "encoder.safetensors"
    state = safetensors.torch.load(path.read_bytes())
    change(state)
    description = read_sealed(run_dir / "encoder.json", "encoder", "")
    description["sha256"]["chosen"] = write_weights(path, state)
    write_sealed(run_dir / "encoder.json", description)
    return run_dir


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("encoder.conv2.weight"), r"encoder\.conv2\.weight is missing"),
        (lambda state: state.update({"extra.bias": torch.zeros(3)}), r"extra\.bias is unexpected"),
        (
            lambda state: state.update({"encoder.conv1.bias": torch.zeros(31)}),
            r"encoder\.conv1\.bias is float32 \[31\] instead of float32 \[32\]",
        ),
        (
            lambda state: state.update({"encoder.conv1.bias": torch.zeros(32, dtype=torch.float16)}),
            r"encoder\.conv1\.bias is float16 \[32\] instead of float32 \[32\]",
        ),
        (lambda state: state.clear(), r"encoder\.conv1\.bias is missing; .*; and \d+ more"),
    ],
    ids=["missing", "unexpected", "misshapen", "mistyped", "empty"],
)
def test_weights_that_do_not_fit_are_named_and_refused(change, words, runs, tmp_path):
    with pytest.raises(UserError, match=words):
        load(changed_run(runs, tmp_path, change))


@pytest.mark.parametrize("name", ["encoder.json", "encoder.safetensors", "encoder-last.safetensors"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing", "empty"])
def test_a_damaged_finished_run_is_told_by_the_same_call(name, damage, runs, data_dir, tmp_path):
    run_dir = tmp_path / "damaged"
    shutil.copytree(runs / "dim-c+", run_dir)
    path = run_dir / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"flipped": content, "truncated": content[:-9], "empty": b""}[damage])
    if name == "encoder.json" and damage == "missing":
        with pytest.raises(UserError, match="has no encoder.json: finish the run with 'manicap resume"):
            load(run_dir)
        return
    with pytest.raises(UserError, match=rf"{name} .*; train the run again"):
        run_to_end(small_config("dim-c+", max_steps=2), run_dir, data_dir)
    with pytest.raises(UserError, match=rf"{name} .*; train the run again|cannot read .*{name}.*"):
        load(run_dir, weights="last" if "last" in name else "chosen")


def test_the_training_parts_are_kept_without_the_optimizer(runs):
    run_dir = runs / "dim-c+"
    method = FinishedRun(run_dir).trained_method()
    assert {value.device.type for value in method.state_dict().values()} == {"cpu"}
    last = load(run_dir, weights="last").method.encoder.state_dict()
    assert all(torch.equal(value, last[name]) for name, value in method.encoder.state_dict().items())
    # Every weight once: neither a checkpoint nor moments of Adam. Headers of safetensors are a few kilobytes.
    kept = sum(parameter.numel() for parameter in method.state_dict().values()) - ENCODER_WEIGHTS
    assert 0 <= (run_dir / "training.safetensors").stat().st_size - 4 * kept < 4096
    assert not (run_dir / "checkpoints").exists()


def test_a_damaged_file_of_training_parts_is_refused_and_a_removed_one_is_none(runs, tmp_path):
    run_dir = tmp_path / "copy"
    shutil.copytree(runs / "dim-c+", run_dir)
    path = run_dir / "training.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"training\.safetensors is not the file that was saved"):
        FinishedRun(run_dir).trained_method()
    path.unlink()
    assert FinishedRun(run_dir).trained_method() is None
