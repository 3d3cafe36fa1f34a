import json
import random

import pytest

from manicap.core.errors import UserError
from manicap.core.sealed import read_sealed, write_sealed

VALUE = {"format": 1, "scores": {"f1": 0.75, "by seed": [0.5, 1.0]}, "name": "ä", "none": None, "exact": 0.1 + 0.2}


def read(path):
    return read_sealed(path, "result", remedy="evaluate again")


def test_a_value_is_read_back_as_it_was_written(tmp_path):
    write_sealed(tmp_path / "a.json", VALUE)
    assert read(tmp_path / "a.json") == VALUE
    assert "checksum" in json.loads((tmp_path / "a.json").read_text())


def test_layout_does_not_matter_and_content_does(tmp_path):
    path = tmp_path / "a.json"
    write_sealed(path, VALUE)
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found))
    assert read(path) == VALUE
    found["scores"]["f1"] = 0.76
    path.write_text(json.dumps(found))
    with pytest.raises(UserError, match=r"a\.json is damaged \(its checksum differs\); evaluate again"):
        read(path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"3", b"null", b'"text"', b"\xff\xfe", b"[" * 100_000, b"1" * 9999]
)
def test_other_contents_are_one_sentence(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(
        UserError, match=r"a\.json is (damaged|not a result|no result of this version).*; evaluate again"
    ):
        read(tmp_path / "a.json")


def test_a_missing_file_and_a_directory_are_one_sentence(tmp_path):
    with pytest.raises(UserError, match=r"there is no result .*; evaluate again"):
        read(tmp_path / "a.json")
    with pytest.raises(UserError, match="cannot read the result .*: it is a directory; evaluate again"):
        read(tmp_path)


def test_any_changed_byte_is_noticed_or_changes_nothing(tmp_path):
    path = tmp_path / "a.json"
    write_sealed(path, VALUE)
    content, rng, noticed = path.read_bytes(), random.Random(0), 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            assert read(path) == VALUE  # a space between two words of the layout
        except UserError:
            noticed += 1
    assert noticed > len(content) / 2
