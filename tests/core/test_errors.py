"""Errors that reach a user as one sentence."""

import errno
import os

import pytest

from manicap.core.errors import Failure, UserError, refused_by_system, unknown_choice


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, Failure), (errno.EDQUOT, Failure), (errno.EACCES, UserError), (errno.ENOTDIR, UserError)],
)
def test_a_full_disk_is_a_failure_and_a_wrong_path_a_mistake(number, kind):
    error = refused_by_system("cannot write to runs/a", OSError(number, os.strerror(number)))
    assert type(error) is kind
    assert str(error) == f"cannot write to runs/a: {os.strerror(number)}"


def test_a_write_that_ends_in_the_middle_is_a_failure():
    """As NumPy's tofile reports a disk that takes only a part, without a number."""
    error = refused_by_system("cannot write to runs/a", OSError("240 requested and 122 written"))
    assert type(error) is Failure
    assert str(error) == "cannot write to runs/a: 240 requested and 122 written; is the disk full?"


def test_an_unknown_choice_without_a_near_one_lists_them_all():
    assert str(unknown_choice("layer", "foo", ["output", "local"])) == "unknown layer 'foo' (2 layers: local, output)"
    assert str(unknown_choice("layer", "foo", ["local"])) == "unknown layer 'foo' (1 layer: local)"
