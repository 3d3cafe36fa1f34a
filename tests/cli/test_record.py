"""`manicap record`: an environment or a file becomes a store, mistakes one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from manicap.cli.main import main

WALK = "tests.environments.worlds:Walk"


def call(capsys, *words):
    main(["record", *map(str, words)])
    return capsys.readouterr().out


def fail(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        main(["record", *map(str, words)])
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_an_environment_is_recorded_with_all_that_the_flags_name(capsys, tmp_path):
    flags = ("--env", WALK, "--steps", 30, "--lanes", 2, "--labels", "tests.environments.worlds:position")
    policy = ("--policy=tests.environments.worlds:rightwards", "--label-kinds", "y:place", "--data-dir", tmp_path)
    out = call(capsys, *flags, *policy, "--workers", 1, "--frame-size", 50, 60)
    assert str(tmp_path / "environments" / WALK.replace(":", ".")) in out
    assert "50 x 60" in out
    assert "state variables: y (place), far (class)" in out


def test_a_module_of_the_current_directory_is_found_and_hides_no_package(tmp_path):
    # As the command is installed: unlike `python -m manicap`, its script does not have the current directory first.
    script = "import sys; sys.path = [p for p in sys.path if p]; from manicap.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-P", "-c", script]
    (tmp_path / "my_world.py").write_text("from tests.environments.worlds import Walk as make\n")
    (tmp_path / "zstandard.py").write_text("raise SystemExit('not this one')\n")
    flags = ["--steps", "20", "--lanes", "2", "--data-dir", "data"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for name, code, words in (("make", 0, "20 steps"), ("mak", 2, "unknown name 'mak'; did you mean 'make'?")):
        named = [*command, "record", "--env", f"my_world:{name}", *flags]
        found = subprocess.run(named, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert found.returncode == code, found.stderr
        assert words in found.stdout + found.stderr


def test_a_file_is_imported_under_a_name(capsys, tmp_path):
    frames = np.zeros((9, 48, 48), np.uint8)
    np.savez(tmp_path / "play.npz", frames=frames, episode=np.zeros(9, int), label_x=np.arange(9))
    out = call(capsys, "--env", "robot", "--from", tmp_path / "play.npz", "--data-dir", tmp_path)
    assert str(tmp_path / "environments/robot") in out
    assert "48 x 48 gray" in out
    err = fail(capsys, "--env", "robot", "--from", tmp_path / "play.npz", "--data-dir", tmp_path, "--seed", 3)
    assert err == "manicap: frames from a file are not played: leave out --seed\n"


def test_mistakes_are_one_sentence(capsys, tmp_path):
    err = fail(capsys, "--env", "tests.environments.worlds:Failing", "--steps", 8, "--data-dir", tmp_path, "--lanes", 1)
    assert "failed in lane 0 at step 3: ZeroDivisionError: the wheel came off\n" in err
    assert "Traceback" not in err
    assert "did you mean CartPole-v1" in fail(capsys, "--env", "CartPole-v7", "--data-dir", tmp_path)
    assert "--env" in fail(capsys, "--steps", 8)


def test_help_teaches_with_two_examples(capsys):
    with pytest.raises(SystemExit):
        main(["record", "--help"])
    out = capsys.readouterr().out
    assert out.count("Example: manicap record") == 2
    assert "--from" in out
    assert "--source" not in out


def test_stores_of_environments_are_listed_verified_and_removed(capsys, tmp_path):
    frames = np.zeros((9, 48, 48), np.uint8)
    for name in ("robot", "rover"):
        np.savez(tmp_path / f"{name}.npz", frames=frames, episode=np.zeros(9, int), label_x=np.arange(9))
        call(capsys, "--env", name, "--from", tmp_path / f"{name}.npz", "--data-dir", tmp_path)
    main(["data", "list", "--data-dir", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["environment", "robot", "rover"]
    path = Path(lines[1].split()[0])
    main(["data", "verify", "--data-dir", str(tmp_path)])
    assert capsys.readouterr().out.count(": sound\n") == 2

    with (path / "labels.npy").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    for command in ("list", "verify"):
        with pytest.raises(SystemExit):
            main(["data", command, "--data-dir", str(tmp_path)])
        found = capsys.readouterr()
        assert "labels.npy has changed" in found.out
        assert "1 of 2" in found.err
    main(["data", "remove", str(path)])
    assert not path.exists()
    with pytest.raises(SystemExit):
        main(["data", "remove", str(tmp_path / "environments" / "rover")])
    assert "does not look like a store" in capsys.readouterr().err
