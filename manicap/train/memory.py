"""Check that a method's weights fit into memory before allocating them: otherwise the kernel kills the process."""

import os
from pathlib import Path

import torch

from manicap.algorithms import find_method
from manicap.algorithms.base import MethodContext
from manicap.core.errors import UserError
from manicap.domains.run_config import RunConfig

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
COPIES = 4
"""Numbers per weight in training: the weight, its gradient, and the two moments of Adam."""


def require_memory(config: RunConfig, context: MethodContext) -> None:
    """Refuse a config whose weights alone exceed the machine's memory."""
    method_type = find_method(config.method)
    with torch.device("meta"):  # shapes, without the numbers
        weights = sum(parameter.numel() for parameter in method_type(config.settings, context).parameters())
    needed, present = 4 * weights * (COPIES if method_type.is_trained else 1), memory_bytes()
    if needed > present:
        raise UserError(
            f"{config.method} with these settings has {weights:,} weights, which take {needed / 2**30:,.0f} GiB in"
            f" training; this machine has {present / 2**30:,.0f} GiB: use fewer units or heads"
        )


def memory_bytes() -> int:
    """Bytes of memory of the machine, or of the container if that has less."""
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(present, int(CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no such limit; "max"
        return present
