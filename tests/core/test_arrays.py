import numpy as np
import pytest

from manicap.core.arrays import NOT_AN_ARRAY, read_arrays, write_arrays
from manicap.core.errors import UserError

ARRAYS = {"labels": np.arange(300, dtype=np.uint8).reshape(100, 3), "names": np.array(["player_y", "ball_x"])}


def test_arrays_are_read_back_as_they_were_written(tmp_path):
    sha256 = write_arrays(tmp_path / "a.npz", ARRAYS)
    found = read_arrays(tmp_path / "a.npz", sha256)
    assert found.keys() == ARRAYS.keys()
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


def test_a_file_that_is_not_the_one_written_is_one_sentence(tmp_path):
    path = tmp_path / "a.npz"
    sha256 = write_arrays(path, ARRAYS)
    content = path.read_bytes()
    for damaged in (content[:-1], b"", content[:50] + bytes([content[50] ^ 1]) + content[51:]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"a\.npz is not the file that was written .* evaluate again"):
            read_arrays(path, sha256)
    path.unlink()
    with pytest.raises(UserError, match=r"cannot read .*a\.npz: No such file"):
        read_arrays(path, sha256)


def test_whatever_byte_of_a_header_is_damaged_the_errors_of_an_array_are_known(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((5, 3)))
    content = path.read_bytes()
    kinds = set()
    for place in range(128):  # the header
        for value in (0, ord("("), ord('"'), 255):
            changed = bytearray(content)
            changed[place] = value
            path.write_bytes(changed)
            try:
                np.load(path, allow_pickle=False)
            except NOT_AN_ARRAY as error:
                kinds.add(type(error).__name__)
    assert {"ValueError", "TokenError"} <= kinds
