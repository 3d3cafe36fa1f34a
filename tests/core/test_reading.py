import os

import pytest

from manicap.core.errors import UserError
from manicap.core.reading import read_json, read_json_lines, read_toml_table

KEYS = {"format": int, "scores": dict}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is damaged"),
        (b'{"format": 1, "scores": {', "is damaged"),
        (b"[1, 2]", "it contains a list, not an object"),
        (b"3", "it contains a int, not an object"),
        (b'{"format": 1}', "'scores' is missing"),
        (b'{"format": 1, "scores": [0.5]}', "'scores' is [0.5]"),
        (b'{"format": "1", "scores": {}}', "'format' is '1'"),
        (b'{"format": "\xff"}', "byte 12 is not UTF-8"),
        (b"\x00" * 40, "is damaged"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"format": ' + b"9" * 5000 + b', "scores": {}}', "is damaged"),
    ],
)
def test_json_of_another_shape_is_one_sentence_with_the_path_and_the_remedy(path, content, sentence):
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_json(path, "result", KEYS, remedy="evaluate again")
    message = str(caught.value)
    assert sentence in message
    assert message.startswith(str(path))
    assert message.endswith("; evaluate again")
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a = ", "is not valid TOML"),
        (b"a = \xff", "byte 4 is not UTF-8"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "is not valid TOML"),
        (b"a\x00 = 1", "is not valid TOML"),
    ],
)
def test_toml_that_cannot_be_read_is_one_sentence_with_the_path(path, content, sentence):
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_toml_table(path, "grid file")
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_named(path, tmp_path):
    with pytest.raises(UserError, match="there is no grid file"):
        read_toml_table(path, "grid file")
    with pytest.raises(UserError, match="cannot read the grid file .*: it is a directory"):
        read_toml_table(tmp_path, "grid file")
    os.mkfifo(path)  # must not wait for somebody to write into it
    with pytest.raises(UserError, match="cannot read the result .*: it is not a regular file"):
        read_json(path, "result")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(UserError, match="cannot read the result .*symbolic links"):
        read_json(loop, "result")
    with pytest.raises(UserError, match="cannot read the result"):
        read_json(tmp_path / "a\0b", "result")
    with pytest.raises(UserError, match="File name too long"):
        read_json(tmp_path / ("x" * 300), "result")


def test_good_files_are_read(path):
    path.write_text('{"format": 1, "scores": {"f1": 0.5}}')
    assert read_json(path, "result", KEYS) == {"format": 1, "scores": {"f1": 0.5}}
    path.write_text("[a]\nb = [1, 2]")
    assert read_toml_table(path, "grid file") == {"a": {"b": [1, 2]}}


def test_lines_are_read_and_the_damaged_one_is_numbered(path):
    assert read_json_lines(path, "log") == []
    path.write_text('{"step": 1}\n{"step": 2}\n')
    assert read_json_lines(path, "log", {"step": int}) == [{"step": 1}, {"step": 2}]
    path.write_text('{"step": 1}\n{"st')
    with pytest.raises(UserError, match="line 2, is damaged"):
        read_json_lines(path, "log")
