"""A handful of trials of each part, and that the parts see what they are there to see."""

import random
import re

import pytest

from campaign.calls import CALLS
from campaign.files import WHOLE, Changed, change_value
from campaign.flags import flags_of
from campaign.flips import ONLY_OUTPUT, OTHER, without_speed
from campaign.forking import Ended
from campaign.inputs import _not_measured
from campaign.ranges import problem
from campaign.trees import differences, lost, read_tree
from campaign.trials import fault_of
from manicap.cli.main import COMMANDS, main


def test_every_command_is_tried():
    assert {call.command for call in CALLS.values()} == set(COMMANDS)


@pytest.mark.parametrize("name", ["run dim-ua", "images simclr", "collect pong", "nerve shape", "grid serial"])
def test_the_flags_are_those_that_help_shows(name, capsys):
    call = CALLS[name]
    with pytest.raises(SystemExit):
        main([*call.words, "--help"])
    shown = set(re.findall(r"^[│ ]+(--[a-z][a-z0-9-]+)", capsys.readouterr().out, re.MULTILINE)) - {"--help"}
    flags = flags_of(call.command, call.words[len(call.command.split()) :])
    known = {flag.name for flag in flags if not flag.is_positional}
    # A switch that is on by default is shown as its negation.
    assert {flag.replace("--no-", "--") for flag in shown} == known


def ended(code, stderr="", **changes):
    return Ended(code, 1.0, stderr=stderr, **changes)


def test_a_call_that_succeeds_or_says_why_it_does_not_is_in_order():
    assert fault_of(ended(0)) == ""
    assert fault_of(ended(2, "manicap: unknown game 'x'\n")) == ""
    assert fault_of(ended(143, "manicap: stopped by SIGTERM", was_stopped=True)) == ""


def test_tracebacks_signals_silence_and_hanging_are_faults():
    trace = "Traceback (most recent call last):\n  ...\nValueError: x"
    assert fault_of(ended(1, trace)) == "traceback: ValueError: x"
    assert "SIGBUS" in fault_of(ended(-7))
    assert "not with one sentence" in fault_of(ended(1))
    assert "not with one sentence" in fault_of(ended(2, "manicap: a\nb"))
    assert "hung" in fault_of(ended(-9, hung=True, was_stopped=True))
    assert "code 3" in fault_of(ended(3))


def test_files_are_compared_but_for_what_may_differ(tmp_path):
    run = tmp_path / "runs" / "x"
    (run / "checkpoints").mkdir(parents=True)
    (run / "result.json").write_text('{"f1": 1, "evaluation": {"seconds": {"probe": 1.0}}}')
    (run / "report.html").write_text("<dd>features 1 s, probe 0 s (1 thread)</dd><dd>0.5</dd>")
    (run / "checkpoints" / "step-1.pt").write_text("1")
    (run / ".lock").touch()
    before = read_tree(tmp_path)
    (run / "result.json").write_text('{"f1": 1, "evaluation": {"seconds": {"probe": 2.0}}}')
    (run / "report.html").write_text("<dd>features 0 s, probe 12 s (1 thread)</dd><dd>0.5</dd>")
    (run / "checkpoints" / "step-1.pt").write_text("2")
    (run / ".lock").unlink()
    assert differences(before, read_tree(tmp_path)) == []
    (run / "result.json").write_text('{"f1": 2, "evaluation": {"seconds": {"probe": 2.0}}}')
    (run / "report.html").write_text("<dd>features 0 s, probe 12 s (1 thread)</dd><dd>0.6</dd>")
    (run / "checkpoints" / ".step-1.pt.abc").touch()
    assert differences(before, read_tree(tmp_path)) == [
        "runs/x/checkpoints/.step-1.pt.abc should not be there",
        "runs/x/report.html differs",
        "runs/x/result.json differs",
    ]
    assert lost(before, read_tree(tmp_path)) == ["runs/x/report.html differs", "runs/x/result.json differs"]


def test_numbers_outside_their_meaning_are_known():
    assert [problem("batch_size", value) != "" for value in (-1, 0, 1, 10**9)] == [True, True, False, False]
    assert [problem("seed", value) != "" for value in (-1, 0)] == [True, False]
    assert [problem("weight_decay", value) != "" for value in (float("nan"), -1.0, 0.0, 1.0)] == [
        True,
        True,
        False,
        False,
    ]


def test_every_field_can_be_reached():
    places = set()
    for seed in range(300):
        values = {"a": 1, "b": {"c": [1.5, {"d": "x"}]}}
        change_value(random.Random(seed), values)
        places |= {place for place, same in (("a", values.get("a") == 1), ("b", "b" in values)) if not same}
        inner = values.get("b")
        if isinstance(inner, dict) and inner != {"c": [1.5, {"d": "x"}]}:
            places.add("inside b")
    assert places == {"a", "b", "inside b"}


@pytest.mark.parametrize("kind", sorted(WHOLE))
def test_a_file_malformed_as_a_whole_is_another_file(kind, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}\n')
    WHOLE[kind](path)
    assert path.is_symlink() or not path.is_file() or path.read_bytes() != b'{"a": 1}\n'


def test_a_handful_of_trials_of_each_part(campaign):
    ended = campaign("--trials", "2", "--calls", "images simclr", "images again")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for part in ("kills", "inputs", "flips", "disk"):
        assert re.search(rf"│ {part} +│ .* │ +2 │", ended.stdout), part


def test_how_fast_an_export_is_does_not_count_as_another_result():
    lines = ["encoder.onnx: onnx", "speed relative to torch: torch 1.00, onnx {}", "largest difference 1e-7"]
    slow, quick = ("\n".join(lines).format(ratio) for ratio in (1.2, 1.5))
    assert without_speed(slow) == without_speed(quick) == [lines[0], lines[2]]


def test_a_removed_result_may_be_measured_again_and_nothing_else_may_differ():
    place, missing = "runs/pong-st-dim-s0/results/1.json", Changed("missing")
    assert _not_measured(place, missing, ONLY_OUTPUT)
    assert not _not_measured(place, missing, f"{OTHER}, and no word: reports/grid/report.html differs; stdout differs")
    assert not _not_measured(place, Changed("half"), ONLY_OUTPUT)
    assert not _not_measured("runs/pong-st-dim-s0/encoder.json", missing, ONLY_OUTPUT)
