import pytest

from manicap.core.arrays import write_arrays
from manicap.core.errors import UserError
from manicap.core.results import has_result, known_result, read_result, write_result


def test_a_flipped_digit_of_a_score_is_noticed(tmp_path):
    path = tmp_path / "result.json"
    write_result(path, {"encoder": "abc", "evaluation": {"scores": {"f1": 0.751}}})
    assert read_result(path)["evaluation"]["scores"]["f1"] == 0.751
    path.write_text(path.read_text().replace("0.751", "0.951"))
    with pytest.raises(
        UserError, match=r"result\.json is damaged \(its checksum differs\); remove it and evaluate again"
    ):
        read_result(path)


def test_a_result_is_known_by_its_encoder_and_with_its_labels(tmp_path):
    path = tmp_path / "result.json"
    assert known_result(path, "abc") is None
    sha256 = write_arrays(path.with_suffix(".npz"), {"true": [1, 2]})
    write_result(path, {"encoder": "abc", "predictions_sha256": sha256})
    assert known_result(path, "abc") == read_result(path)
    assert known_result(path, "other") is None
    path.with_suffix(".npz").write_bytes(b"damaged")
    assert known_result(path, "abc") is None
    path.with_suffix(".npz").unlink()
    assert known_result(path, "abc") is None


def test_a_result_that_cannot_be_read_is_there_and_told(tmp_path):
    path = tmp_path / "result.json"
    assert not has_result(path)
    path.symlink_to(path)
    assert has_result(path)
    with pytest.raises(UserError, match=r"cannot read the result .*result\.json"):
        read_result(path)
