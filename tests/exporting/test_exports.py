"""`manicap.export` writes a file, reads it back, compares it with torch, and says what int8 costs."""

import sys

import numpy as np
import pytest

import manicap
from manicap.cli.main import main
from manicap.core.errors import Failure
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.base import find_domain
from manicap.exporting.formats import run_torch
from manicap.exporting.parity import check_parity, encode_in_batches
from manicap.train.finished import FinishedRun
from tests.algorithms.small import small_config
from tests.image_folder import small_image_config
from tests.train.runner import run_to_end


@pytest.fixture(scope="module")
def run_dir(data_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    run_to_end(small_config("st-dim", max_steps=2), run_dir, data_dir)
    return run_dir


@pytest.fixture(scope="module")
def image_run(image_folder, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("images") / "run"
    run_to_end(small_image_config(image_folder, "simclr", view_size=12, max_epochs=1), run_dir, run_dir)
    return run_dir


def test_features_of_images_as_8_bit_integers_are_probed_beside_the_float_ones(image_run, capsys):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'manicap[onnx]'")
    main(["export", str(image_run), "--int8", "--frames", "70", "--threads", "1"])
    said = capsys.readouterr().out
    assert "encoder.onnx: onnx, opset 18, uint8 frames [batch, 3, 16, 16] -> float32 [batch, 64]" in said
    assert "on 70 frames of the run's probe" in said
    assert "int8, knn probe" in said
    assert "speed relative to torch: torch 1.00, onnx " in said
    exact, small = (onnx.load(image_run / f"encoder{end}.onnx") for end in ("", "-int8"))
    assert [entry.version for entry in exact.opset_import if entry.domain == ""] == [18]
    assert {entry.key for entry in exact.metadata_props} >= {"manicap.card", "manicap.layer"}
    assert "QuantizeLinear" in {node.op_type for node in small.graph.node}
    # Every weight of a convolution is an 8-bit integer.
    stored = {entry.name: entry.data_type for entry in small.graph.initializer}
    weights = [node.input[0] for node in small.graph.node if node.op_type == "DequantizeLinear"]
    assert sum(stored.get(name) == onnx.TensorProto.INT8 for name in weights) >= 17  # of a ResNet-18


def test_encoders_are_compared_on_the_runs_probe_store_as_evaluate_probes_them(run_dir, data_dir):
    run = FinishedRun(run_dir)
    domain, evaluation = find_domain("atari"), AtariEvaluationConfig(probe_steps=640)
    encoder = manicap.load(run_dir)
    rounded = {"float": encoder, "int8": lambda frames: run_torch(encoder, frames).round(1)}
    probe, scores = domain.compare_encoders(run.config, evaluation, rounded, data_dir, quiet=True)
    alone = manicap.evaluate(encoder, "pong", steps=640, probe=probe, data_dir=data_dir, floors="majority", quiet=True)
    assert probe == "discriminant"
    assert scores["float"] == alone.metrics
    assert scores["int8"]["f1"] != scores["float"]["f1"]
    frames = domain.raw_frames(run.config, evaluation, 50, data_dir, quiet=True)
    assert (frames.shape, frames.dtype) == ((50, 1, 210, 160), np.uint8)


def test_a_saved_encoder_is_exported_to_torch_and_checked_on_noise(run_dir, tmp_path):
    saved = manicap.load(run_dir, "backbone").save_pretrained(tmp_path / "saved")
    found = manicap.export(saved, "torch-export", num_frames=66)
    assert (found.path, found.layer, found.num_features) == (saved / "encoder.pt2", "backbone", 3456)
    assert "66 frames of noise" in str(found)
    assert "opset" not in str(found)


def test_batches_of_several_sizes_cover_every_frame_once():
    frames = np.arange(150, dtype=np.uint8)[:, None]
    sizes = []

    def encode(batch):
        sizes.append(len(batch))
        return batch.astype(np.float32)

    assert np.array_equal(encode_in_batches(encode, frames)[:, 0], np.arange(150))
    assert sizes == [1, 64, 64, 21]


def test_features_that_differ_are_a_failure():
    expected = np.ones((200, 4), np.float32)
    one, many = expected.copy(), expected.copy()
    one[0] = 2  # one frame in 200: a chart chosen by a rounding error
    many[:4, 0] = 1.01
    assert check_parity(expected, one, "it").max_difference == 1
    with pytest.raises(Failure, match=r"does not compute what the module computes: 2.0 % of 200 frames"):
        check_parity(expected, many, "it")
    with pytest.raises(Failure, match=r"returns features \[200, 3\], the module \[200, 4\]"):
        check_parity(expected, expected[:, :3], "it")
    with pytest.raises(Failure, match="does not compute"):
        check_parity(expected, np.full_like(expected, np.nan), "it")


@pytest.mark.parametrize(("format", "name"), [("onnx", "encoder.onnx"), ("torch-export", "encoder.pt2")])
def test_an_export_that_fails_its_check_leaves_the_older_file_and_nothing_else(
    run_dir, tmp_path, monkeypatch, format, name
):
    if format == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed: pip install 'manicap[onnx]'")
    older, new = tmp_path / "older" / name, tmp_path / "new" / name
    older.parent.mkdir()
    older.write_bytes(b"the older one")
    monkeypatch.setattr("manicap.exporting.exports._noise", lambda encoder, count: np.zeros((2, 1, 210, 160), np.uint8))
    monkeypatch.setattr("manicap.exporting.exports.run_torch", lambda encoder, frames: next(answers))
    monkeypatch.setattr("manicap.exporting.exports.OnnxEncoder", lambda path: lambda frames: next(answers))
    for path in (older, new):
        # The module's features of two batches, then the export's: 3 is not 1.
        answers = iter(np.full((1, 4), value, np.float32) for value in (1, 1, 1, 3))
        with pytest.raises(Failure, match=rf"{name} \({format}\) does not compute what the module computes"):
            manicap.export(run_dir, format, output=path, data_dir=tmp_path / "no data")
    assert [path.name for path in older.parent.iterdir()] == [name]
    assert older.read_bytes() == b"the older one"
    assert [*new.parent.iterdir()] == []


def test_mistakes_are_told(run_dir, tmp_path, monkeypatch):
    with pytest.raises(manicap.UserError, match="int8 is for ONNX only"):
        manicap.export(run_dir, "torch-export", int8=True)
    with pytest.raises(manicap.UserError, match=r"the file of format onnx must end with \.onnx, got .*model\.pt"):
        manicap.export(run_dir, output=tmp_path / "model.pt")
    with pytest.raises(manicap.UserError, match="format"):
        manicap.export(run_dir, "tflite")
    saved = manicap.load(run_dir).save_pretrained(tmp_path / "saved")
    with pytest.raises(manicap.UserError, match="int8 is calibrated on the frames of a run"):
        manicap.export(saved, int8=True)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(manicap.UserError, match=r"requires onnx, onnxscript and onnxruntime: pip install 'manicap\[on"):
        manicap.export(run_dir)
