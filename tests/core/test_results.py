import pytest

from manicap.core.errors import UserError
from manicap.core.results import has_result, read_result, write_result
from manicap.core.sealed import write_sealed


def test_a_flipped_digit_of_a_score_is_noticed(tmp_path):
    path = tmp_path / "result.json"
    write_result(path, {"encoder": "abc", "evaluation": {"scores": {"f1": 0.751}}})
    assert read_result(path)["evaluation"]["scores"]["f1"] == 0.751
    path.write_text(path.read_text().replace("0.751", "0.951"))
    with pytest.raises(
        UserError, match=r"result\.json is damaged \(its checksum differs\); remove it and evaluate again"
    ):
        read_result(path)


def test_a_result_that_cannot_be_read_is_there_and_told(tmp_path):
    path = tmp_path / "result.json"
    assert not has_result(path)
    path.symlink_to(path)
    assert has_result(path)
    with pytest.raises(UserError, match=r"cannot read the result .*result\.json"):
        read_result(path)


def test_a_result_of_another_format_is_refused_and_says_what_to_do(tmp_path):
    write_sealed(tmp_path / "result.json", {"format": 1, "game": "pong"})
    with pytest.raises(UserError, match=r"result\.json has format 1, but this version reads 2; evaluate again"):
        read_result(tmp_path / "result.json")
