"""The device and precision to compute with."""

import ctypes
import os
import subprocess
import sys
from functools import cache
from typing import Literal

import torch

from manicap.core.errors import UserError
from manicap.core.seeding import stream_seed

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["auto", "float32", "bfloat16"]
MAX_THREADS = 1024
"""More than any machine has cores; tens of thousands crash with a segmentation fault."""


def choose_device(name: DeviceName = "auto", local_rank: int = 0) -> torch.device:
    """CUDA, else Apple's MPS, else the CPU; or the one named."""
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if name == "auto":
        name = "cuda" if cuda else "mps" if mps else "cpu"
    if (name == "cuda" and not cuda) or (name == "mps" and not mps):
        raise UserError(f"device {name!r} is not available here; use --device auto or cpu")
    return torch.device("cuda", local_rank) if name == "cuda" else torch.device(name)


def choose_precision(name: Precision, device: torch.device) -> torch.dtype:
    """float32 on a CPU, bfloat16 on a GPU that supports it; bfloat16 on a CPU only if a child process survives it."""
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    if name == "bfloat16" and device.type == "cpu" and not cpu_survives_bfloat16():
        raise UserError("bfloat16 crashes with an illegal instruction on this CPU; use --precision float32")
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


_BFLOAT16_TRIAL = """
import torch
from torch import nn
with torch.autocast("cpu", torch.bfloat16):
    x = torch.randn(8, 16, 32, 32, requires_grad=True)
    y = nn.Linear(28 * 28, 64)(nn.Conv2d(16, 8, 5)(x).flatten(2))
    y.float().sum().backward()
"""


@cache
def cpu_survives_bfloat16() -> bool:
    """Some CPUs advertise instructions that they cannot run, and torch trusts them: let a child process try."""
    return subprocess.run([sys.executable, "-c", _BFLOAT16_TRIAL], capture_output=True).returncode == 0


def keep_freed_memory() -> None:
    """Tell glibc to keep large blocks for the next step instead of returning them to the kernel.

    Activations are allocated anew in every step; fetching their pages again took 15 % of an encoder's step and 20 %
    of the heads'. Has an effect only on Linux with glibc.
    """
    _set_malloc(mmap_max=0, trim_threshold=2**31 - 1, top_pad=256 * 2**20)


def return_freed_memory() -> None:
    """The reverse, for what comes after training: blocks that differ in size by gigabytes would leave such gaps.

    Without it, probing 11,264 features of Space Invaders took more than 17 GB in the process of the run.
    """
    libc = _set_malloc(mmap_max=65536, trim_threshold=128 * 2**10, top_pad=128 * 2**10)  # glibc's own
    if libc is not None:
        libc.malloc_trim(0)


def _set_malloc(mmap_max: int, trim_threshold: int, top_pad: int) -> ctypes.CDLL | None:
    """glibc, or None if there is none."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        mallopt = libc.mallopt
    except (OSError, AttributeError):
        return None
    for name, value in ((-4, mmap_max), (-1, trim_threshold), (-2, top_pad)):  # M_MMAP_MAX, ... of malloc.h
        mallopt(name, value)
    return libc


def noise_generator(seed: int, device: torch.device, rank: int, *stream: str | int) -> torch.Generator:
    """The generator of a step's noise on one process: it depends only on its name."""
    return torch.Generator(device).manual_seed(stream_seed(seed, "noise", rank, *stream))


def set_threads(threads: int | None) -> int:
    """Fix torch's thread count: the one given, else OMP_NUM_THREADS, else all cores.

    A different count changes the order in which sums are added.
    """
    number = default_threads() if threads is None else threads
    if not 1 <= number <= MAX_THREADS:
        raise UserError(f"threads must be from 1 to {MAX_THREADS}, got {number}")
    torch.set_num_threads(number)
    return torch.get_num_threads()


def default_threads() -> int:
    """OMP_NUM_THREADS if it is set (torchrun sets it), else the cores that this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "").strip()
    if not asked:
        return available_cores()
    outermost = asked.split(",")[0].strip()  # a list is for nested parallel regions
    if not outermost.isdecimal() or not 1 <= int(outermost) <= MAX_THREADS:
        raise UserError(f"OMP_NUM_THREADS must be a number from 1 to {MAX_THREADS}, got {asked!r}")
    return int(outermost)


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: a container or a scheduler may allow fewer than there are
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
