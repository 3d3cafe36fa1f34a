"""Methods, encoders and probes of another package are named in the call, recorded, and scored like ours."""

from pathlib import Path

import manicap
from manicap.cli.main import main
from manicap.domains.result import RunResult

QUIET = manicap.Execution(threads=1, quiet=True)
SMALL = {"game": "pong", "collect_steps": 640, "batch_size": 6, "max_steps": 2, "units": 8}
EVALUATION = {"probe_steps": 640}


def test_a_run_with_everything_from_elsewhere(data_dir, tmp_path, capsys):
    places = {"runs_dir": tmp_path, "data_dir": data_dir, "execution": QUIET}
    evaluation = {**EVALUATION, "probe": "tests.plugins:nearest"}
    [result] = manicap.run("tests.plugins:Mine", encoder="tests.plugins:Net", evaluation=evaluation, **SMALL, **places)
    assert result.method == "tests.plugins:Mine"
    assert result.config.settings.encoder == "tests.plugins:Net"
    assert result.evaluation.probe == "nearest"
    # The same network, loss and probe under our own names: the same scores to the last digit.
    [ours] = manicap.run("st-dim", evaluation={**EVALUATION, "probe": "knn"}, **SMALL, **places)
    assert result.evaluation.scores == ours.evaluation.scores
    run_dir = tmp_path / result.config.run_name
    assert manicap.load(run_dir).num_features == 8
    main(f"evaluate {run_dir} --probe tests.plugins:nearest --probe-steps 640 --data-dir {data_dir}".split())
    assert "nearest probe" in capsys.readouterr().out
    assert RunResult.read(Path(run_dir) / "result.json").evaluation == result.evaluation
