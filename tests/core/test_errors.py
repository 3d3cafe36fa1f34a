"""Errors that reach a user as one sentence."""

import errno
import os

import pytest

from manicap.core.errors import Failure, UserError, refused_by_system


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, Failure), (errno.EDQUOT, Failure), (errno.EACCES, UserError), (errno.ENOTDIR, UserError)],
)
def test_a_full_disk_is_a_failure_and_a_wrong_path_a_mistake(number, kind):
    error = refused_by_system("cannot write to runs/a", OSError(number, os.strerror(number)))
    assert type(error) is kind
    assert str(error) == f"cannot write to runs/a: {os.strerror(number)}"
