import contextlib
import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from manicap.cli.main import COMMANDS, main
from manicap.images import open_dataset
from tests.image_folder import write_image_folder
from tests.images.files import write_cifar10


def call(*arguments):
    """Exit code of `manicap ARGUMENTS`, run in this process."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name, capsys):
    assert call(*name.split(), "--help") == 0
    text = capsys.readouterr().out
    assert f"manicap {name}" in text
    summary = COMMANDS[name].load().__doc__
    assert summary is not None
    first_words = " ".join(summary.splitlines()[0].split()[:4])
    assert first_words in " ".join(text.replace("│", " ").split())


def test_the_overview_lists_every_command(capsys):
    for word in ("--help", "help"):
        main([word])
        text = capsys.readouterr().out
        for name in COMMANDS:
            assert f"manicap {name}" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["colect"], "unknown command 'colect'; did you mean 'collect'?"),
        (["data", "lst"], "unknown command 'data lst'; did you mean 'data list'?"),
        (["collect", "--game", "pogn"], "unknown game 'pogn'; did you mean 'pong'?"),
        (["collect", "--game", "pong", "--steps", "3"], "steps must be at least the number of lanes (8), got 3"),
        (["collect", "--game", "pong", "--workers", "0"], "workers must be at least 1, got 0"),
        (["annotations", "list", "pong", "--annotation-set", "ari2020"], "did you mean 'ari-2020'"),
        (["annotations", "list", "skiing", "--annotation-set", "ari-2019"], "skiing is not annotated in 'ari-2019'"),
        (["data", "verify", "--data-dir", "/nonexistent"], "no stores and no images in /nonexistent"),
        (["data", "remove", "/nonexistent"], "there is no store at /nonexistent"),
        (["data", "splits", "/nonexistent"], "there is no store at /nonexistent"),
        (["methods", "--plugin"], "--plugin must be followed by package.module:Name, got nothing"),
        (["methods", "--plugin="], "--plugin must be followed by package.module:Name, got nothing"),
        (["methods", "--plugin", "my_package"], "--plugin must be followed by package.module:Name, got 'my_package'"),
        (["methods", "--plugin=a:B my_package"], "must be followed by package.module:Name, got 'a:B my_package'"),
        (["evaluate", "/nonexistent", "--annotation-set", "x" * 300], "unknown annotation set 'xxx"),
        (["compare", "/nonexistent", "--baseline", "x" * 300], "/nonexistent"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments, sentence, capsys):
    assert call(*arguments) == 2
    message = capsys.readouterr().err
    assert sentence in message
    assert message.count("\n") == 1


PRETRAIN = ["pretrain", "--game", "pong"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([*PRETRAIN, "--units", "0"], "units must be at least 1, got 0"),
        ([*PRETRAIN, "--units", "1000000000000"], "units must be at most 65,536, got 1000000000000"),
        ([*PRETRAIN, "--collect-steps", "7"], "collect_steps must be at least the number of lanes (8), got 7"),
        ([*PRETRAIN, "--method", "supervised", "--annotation-set", "x"], "unknown annotation set 'x'"),
        ([*PRETRAIN, "--num-heads", "0"], "num_heads must be at least 1, got 0"),
        ([*PRETRAIN, "--epsilon", "-1"], "epsilon must not be negative, got -1.0"),
        ([*PRETRAIN, "--learning-rate", "nan"], "learning_rate must be a finite number, got nan"),
        ([*PRETRAIN, "--batch-size", "1"], "batch_size must be at least 2, got 1"),
        ([*PRETRAIN, "--log-every", "0"], "log_every must be at least 1, got 0"),
        ([*PRETRAIN, "--threads", "-1"], "threads must be at least 1, got -1"),
        ([*PRETRAIN, "--threads", "100000"], "threads must be at most 1,024, got 100000"),
        ([*PRETRAIN, "--seed", "-1"], "seed must not be negative, got -1"),
        ([*PRETRAIN, "--name", "../../x"], "name must be one name, without / or \\, got '../../x'"),
        (["run", "--game", "pong", "--width", "0"], "width must be at least 1, got 0"),
        (["run", "--game", "pong", "--annotation-set", "typo"], "unknown annotation set 'typo'"),
        (["run", "--game", "pong", "--seeds"], "seeds must not be empty"),
        (["images", "--neighbor-temperature", "nan"], "neighbor_temperature must be a finite number, got nan"),
        (["nerve", "--shape", "circle", "--batch-size", "0"], "batch_size must be at least 2, got 0"),
        (["annotations", "verify", "pong", "--steps", "9"], "steps must be at least 10, got 9"),
        (["collect", "--game", "pong", "--steps", str(10**21)], "steps must be at most 1,000,000,000, got 1000"),
        (["collect", "--game", "pong", "--seed", "-1", "--lanes", "0"], "got -1; lanes must be at least 1, got 0"),
    ],
)
def test_a_number_out_of_range_is_refused_before_anything_is_done(arguments, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call(*arguments) == 2
    message = capsys.readouterr().err
    assert sentence in message
    assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_flag_that_does_not_exist_exits_2(capsys):
    assert call("collect", "--gmae", "pong") == 2


def test_a_group_without_its_command_says_which_there_are(capsys):
    assert call("data") == 2
    assert "data list, data verify" in capsys.readouterr().err


def test_collect_list_verify_splits_remove_in_a_row(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for _ in range(2):
        main(["collect", "--game", "MsPacmanNoFrameskip-v4", "--steps", "1600", "--data-dir", str(tmp_path)])
    (path,) = (tmp_path / "ms_pacman").glob("[!.]*")
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "40")
    main(["data", "list", "--data-dir", str(tmp_path)])
    assert any(line.startswith(f"{path}  ms_pacman") for line in capsys.readouterr().out.splitlines())
    monkeypatch.setenv("COLUMNS", "200")
    main(["data", "verify", "--data-dir", str(tmp_path)])
    assert capsys.readouterr().out == f"{path}: sound\n"
    main(["data", "splits", str(path)])
    text = capsys.readouterr().out
    assert "test frames seen in training" in text
    assert "player_x" in text

    with (path / "ram.zst").open("r+b") as file:
        file.seek(5000)
        file.write(b"\x99\x98")
    assert call("data", "list", "--data-dir", str(tmp_path)) == 2
    output = capsys.readouterr()
    assert "not a sound store: ram.zst has changed" in output.out
    assert "1 of 1 stores cannot be opened" in output.err
    assert call("data", "verify", "--data-dir", str(tmp_path)) == 2
    output = capsys.readouterr()
    assert "ram.zst has changed" in output.out
    assert "1 of 1 are damaged" in output.err
    main(["data", "remove", str(path)])
    assert not path.exists()


def test_a_closed_pipe_is_no_traceback():
    # As in `manicap annotations list | head -1`: the reading end is closed before anything is written.
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "manicap", "annotations", "list"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["nerve", "--help"], "Cech nerve"),
        (["--help"], "Cech nerve"),
        (["methods"], "| dim-c+"),
        (["annotations", "list", "pong"], "| ball_x"),
    ],
)
def test_a_terminal_that_lacks_characters_gets_plain_ones(arguments, part, encoding, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    with contextlib.suppress(SystemExit):
        main(arguments)
    sys.stdout.flush()
    assert part in raw.getvalue().decode(encoding)


def test_a_name_that_is_not_utf8_is_told_of(capsys):
    assert call("bench", "plan", os.fsdecode(b"a\xff.toml")) == 2
    assert "there is no grid file 'a\\udcff.toml'" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence():
    command = [sys.executable, "-m", "manicap", "annotations", "list"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "manicap: No space left on device; free some space and rerun to resume\n"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (PermissionError(13, "Permission denied", "runs/a"), 1, "Permission denied: runs/a"),
        (OSError(28, "No space left on device", "a"), 1, "No space left on device: a; free some space and rerun"),
        (OSError(36, "File name too long", "x" * 300), 1, "File name too long: xxx"),
        (OSError("the library's own\nwords"), 1, "the library's own words"),
        (MemoryError(), 1, "out of memory; use smaller settings"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you"), 1, "out of memory; use smaller settings"),
        (RecursionError(), 2, "an input is nested too deeply"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates"), 2, "cannot be encoded as UTF-8"),
        (KeyboardInterrupt(), 130, "interrupted; rerun the command to resume"),
    ],
)
def test_what_the_system_refuses_is_one_sentence(error, code, sentence, capsys, monkeypatch):
    def fail(words):
        raise error

    monkeypatch.setattr("manicap.cli.main.run", fail)
    assert call("methods") == code
    message = capsys.readouterr().err
    assert sentence in message
    assert message.count("\n") == 1
    assert len(message) < 400


def test_a_fault_of_the_program_keeps_its_traceback(capsys, monkeypatch):
    monkeypatch.setattr("manicap.cli.main.run", lambda words: {}["missing"])
    with pytest.raises(KeyError):
        main(["methods"])
    assert "this is a bug in manicap; please report it" in capsys.readouterr().err


def test_python_m_manicap_says_its_version():
    done = subprocess.run([sys.executable, "-m", "manicap", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("manicap 0.")


def test_images_are_listed_and_verified_beside_the_stores(tmp_path, capsys):
    pytest.importorskip("PIL")
    write_cifar10(tmp_path / "cifar10")
    write_image_folder(tmp_path / "stripes", num_train=1, num_test=1)
    open_dataset("folder", tmp_path / "stripes", "train", quiet=True)
    main(["data", "list", "--data-dir", str(tmp_path)])
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["images", "dataset"],
        [f"{tmp_path}/cifar10", "cifar10"],
        [f"{tmp_path}/stripes", "folder"],
    ]
    main(["data", "verify", "--data-dir", str(tmp_path)])
    assert capsys.readouterr().out == f"{tmp_path}/cifar10: sound\n{tmp_path}/stripes: sound\n"
    with (tmp_path / "cifar10/cifar-10-batches-bin/test_batch.bin").open("r+b") as file:
        file.write(b"\x09\x09")
    assert call("data", "verify", str(tmp_path / "cifar10"), str(tmp_path / "stripes")) == 2
    output = capsys.readouterr()
    assert "cifar10: test_batch.bin has changed" in output.out
    assert "1 of 2 are damaged" in output.err


def test_a_typo_in_the_annotation_set_is_told_without_a_game_too(capsys):
    for command in ("list", "verify"):
        assert call("annotations", command, "--annotation-set", "corected") == 2
        assert "did you mean 'corrected'?" in capsys.readouterr().err


def save_points(path, points):
    np.save(path, points)
    return str(path)


@pytest.mark.parametrize("points", [np.float64(3), np.arange(5.0), np.zeros((5, 2, 2))])
def test_a_file_without_a_table_of_points_is_refused(points, tmp_path, capsys):
    assert call("nerve", "--shape", save_points(tmp_path / "points.npy", points)) == 2
    assert "must contain one array of points [n, C]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY\x01\x00garbage", b"text", b"\x93NUMPY\x01\x00\x10\x00{'shape': (5, 3" + bytes(9)]
)
def test_a_file_that_is_no_array_is_refused(content, tmp_path, capsys):
    (tmp_path / "points.npy").write_bytes(content)
    assert call("nerve", "--shape", str(tmp_path / "points.npy")) == 2
    message = capsys.readouterr().err
    assert "cannot read points from" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"domain = 'atari'\nmethod = 3", "method must be str, got 3"),
        (b"domain = ['atari']\nmethod = 'st-dim'", "domain must be str, got ['atari']"),
        (b"domain = 'atari'\nmethod = 'st-dim'\ngame = 'pong'\nseed = nan", "seed must be int, got nan"),
        (b"game = \xff", "byte 7 is not UTF-8"),
        (b"a = " + b"[" * 50_000, "nested too deeply"),
        (b"a = " + b"9" * 5_000, "is not valid TOML"),
        (b"domain = 'atari'\nmethod = 'st-dim'", "game is required"),
        (b"method = 'st-dim'\ngame = 'pong'", "names no domain: it was written by an earlier version; train the run"),
        (b"domain = 'os:system'\nmethod = 'st-dim'", "a file cannot decide what is imported"),
        (b"", "names no domain"),
    ],
)
def test_a_damaged_config_of_a_run_is_one_sentence(content, sentence, tmp_path, capsys):
    (tmp_path / "config.toml").write_bytes(content)
    for command in ("resume", "evaluate", "diagnose"):
        assert call(command, str(tmp_path)) == 2
        message = capsys.readouterr().err
        assert sentence in message
        assert message.count("\n") == 1


def test_a_line_break_in_a_name_does_not_break_the_sentence(tmp_path, capsys):
    assert call("data", "verify", "--data-dir", f"{tmp_path}/a\nb\x1b[2J") == 2
    message = capsys.readouterr().err
    assert message == f"manicap: no stores and no images in {tmp_path}/a\\nb\\x1b[2J\n"


def test_sigterm_ends_any_command_with_a_sentence_and_its_exit_code(capsys, monkeypatch):
    """Also one that does not train: it has no step to finish."""
    monkeypatch.setattr("manicap.cli.train.methods", lambda: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stopped:
        main(["methods"])
    assert stopped.value.code == 143
    assert capsys.readouterr().err == "manicap: stopped by SIGTERM; rerun the command to resume\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_pretrain_and_run_name_the_same_domains(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for command in ("run", "pretrain"):
        assert call(command, "--help") == 0
        assert "atari, environments, images, or package.module:Name" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "pretrain"])
def test_a_job_without_a_subject_names_the_flags_of_all_domains(command, capsys):
    assert call(command, "--method", "st-dim") == 2
    expected = "manicap: name what to learn from: one of --game pong, --env CartPole-v1, --dataset cifar10\n"
    assert capsys.readouterr().err == expected
    assert call(command, "--help") == 0
