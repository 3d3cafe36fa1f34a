"""What was measured before is read again only if it is whole and of the same encoder."""

from dataclasses import replace

from manicap.core.arrays import write_arrays
from manicap.domains.atari.config import AtariConfig
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.result import RunResult
from manicap.jobs.probing import known_result
from tests.report.synthetic_runs import made_up_result


def test_a_result_is_known_by_its_encoder_and_with_its_labels(tmp_path):
    path = tmp_path / "result.json"
    assert known_result(path, "abc") is None
    sha256 = write_arrays(path.with_suffix(".npz"), {"true": [1, 2]})
    result = made_up_result(AtariConfig(game="pong"), AtariEvaluationConfig(), encoder="abc")
    replace(result, predictions_sha256=sha256).write(path)
    assert known_result(path, "abc") == RunResult.read(path)
    assert known_result(path, "other") is None
    path.with_suffix(".npz").write_bytes(b"damaged")
    assert known_result(path, "abc") is None
    path.with_suffix(".npz").unlink()
    assert known_result(path, "abc") is None


def test_a_damaged_result_is_told_and_counts_as_absent(tmp_path, capsys):
    path = tmp_path / "result.json"
    made_up_result(AtariConfig(game="pong"), AtariEvaluationConfig(), encoder="abc").write(path)
    path.write_text(path.read_text().replace("abc", "abd"))
    assert known_result(path, "abd") is None
    assert "measuring again: " in capsys.readouterr().err
