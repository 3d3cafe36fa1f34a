"""Every method's encoder leaves the program: as a graph with a batch of any size, and as ONNX."""

import numpy as np
import pytest
import torch

from manicap.algorithms import METHODS
from manicap.algorithms.base import MethodContext
from manicap.exporting.formats import OnnxEncoder, export_program, run_torch, write_onnx
from manicap.exporting.parity import check_parity
from manicap.nn.image_input import ImageView
from manicap.pretrained.card import EncoderCard
from manicap.pretrained.encoder import PretrainedEncoder
from tests.algorithms.small import ATARI, small_settings
from tests.algorithms.small_images import small_image_settings

# Charts chosen by an argmax; images resized from 16 x 16 to 12 x 12. ONNX takes seconds: test_exports and the examples
# of docs/sharing.md write one of images and one of frames in every run of the suite.
QUICK = ("dim-ua", "simclr-c+")
SIDE = 84


def build(name, layer="output"):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if name in ATARI:
            method = METHODS[name](small_settings(name), MethodContext((1, SIDE, SIDE), num_variables=3))
        else:
            view = ImageView((3, 16, 16), 12, None, "bilinear", (0.5,) * 3, (0.25,) * 3)
            context = MethodContext(view.shape, mean=view.mean, std=view.std, image_view=view)
            method = METHODS[name](small_image_settings(name), context)
    return PretrainedEncoder(method, layer, "", EncoderCard(name, "", None, 0, 0, "initial", 0), {})


def random_frames(encoder, count):
    return np.random.default_rng(0).integers(0, 256, (count, *encoder.input_shape), np.uint8)


def all_methods(*quick):
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]


@pytest.mark.parametrize("name", all_methods())
def test_a_method_exports_to_onnx_with_a_batch_of_any_size(name, tmp_path):
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: pip install 'manicap[onnx]'")
    encoder = build(name)
    write_onnx(encoder, tmp_path / "encoder.onnx")
    exported = OnnxEncoder(tmp_path / "encoder.onnx")
    for count in (1, 3):
        frames = random_frames(encoder, count)
        check_parity(run_torch(encoder, frames), exported(frames), name)


@pytest.mark.parametrize("name", all_methods(*QUICK))
def test_a_method_exports_to_torch_with_a_batch_of_any_size(name):
    encoder = build(name)
    module = export_program(encoder).module()
    for count in (1, 3):
        frames = random_frames(encoder, count)
        check_parity(run_torch(encoder, frames), run_torch(module, frames), name)


@pytest.mark.parametrize("layer", ["backbone", "local", "convolution 2"])
def test_a_layer_is_exported_as_it_is_named(layer):
    encoder = build("st-dim", layer)
    frames = random_frames(encoder, 2)
    check_parity(run_torch(encoder, frames), run_torch(export_program(encoder).module(), frames), layer)
