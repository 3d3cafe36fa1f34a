"""Which layers become integers."""

import pytest

from manicap.exporting.int8 import _sums


def test_a_product_that_is_added_to_features_stays_in_float(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'manicap[onnx]'")
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="layer", beta=1.0),
        onnx.helper.make_node("Gemm", ["y", "v", "y"], ["z"], name="filter", beta=0.1),
        onnx.helper.make_node("Gemm", ["z", "u"], ["out"], name="without beta"),
    ]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 2]) for name in "xwbvu"]
    out = [onnx.helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, [2, 2])]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "graph", values, out)), tmp_path / "model.onnx")
    assert _sums(tmp_path / "model.onnx") == ["filter"]
