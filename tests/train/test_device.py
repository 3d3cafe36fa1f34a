"""How many threads a run has."""

import os
import platform
import subprocess
import sys

import pytest
import torch

from manicap.core.errors import UserError
from manicap.train.device import MAX_THREADS, available_cores, default_threads, set_threads


@pytest.fixture(autouse=True)
def one_thread_again():
    yield
    torch.set_num_threads(1)


def test_what_is_given_comes_before_the_environment_and_that_before_the_cores(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert set_threads(None) == 3
    assert set_threads(2) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")  # nested regions have two
    assert set_threads(None) == 4
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert default_threads() == available_cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("threads", [0, -1, MAX_THREADS + 1, 100_000, 10**30])
def test_a_count_that_cannot_be_is_refused(threads, monkeypatch):
    with pytest.raises(UserError, match=f"threads must be from 1 to {MAX_THREADS}, got {threads}"):
        set_threads(threads)
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    with pytest.raises(UserError, match=f"OMP_NUM_THREADS must be a number from 1 to {MAX_THREADS}, got '{threads}'"):
        set_threads(None)
    monkeypatch.setenv("OMP_NUM_THREADS", "two")
    with pytest.raises(UserError, match="OMP_NUM_THREADS must be a number"):
        set_threads(None)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's malloc")
def test_memory_that_training_keeps_is_returned_afterwards():
    """In a process of its own: the settings are the process's."""
    held, returned, later = subprocess.run(
        [sys.executable, "-c", _KEEP_AND_RETURN], capture_output=True, text=True, check=True
    ).stdout.split()
    # 100 million numbers have 400 MB.
    assert int(held) > 350e6
    assert int(returned) < 50e6
    assert int(later) < 50e6


_KEEP_AND_RETURN = """
import os
import torch
from manicap.train.device import keep_freed_memory, return_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def after_use():
    torch.ones(100_000_000)
    return resident() - before

before = resident()
keep_freed_memory()
held = after_use()
return_freed_memory()
print(held, resident() - before, after_use())
"""
