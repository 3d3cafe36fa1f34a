"""What the exact bits of a run's result depend on, besides its config and data: versions, threads and processor.

Libraries select code by the processor's instruction sets, and sums differ in the last bits. A run started with AVX-512
and resumed with AVX2 would not be bit-identical, so the instruction sets are part of its identity.
"""

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

import torch

# Instruction sets by which ATen, oneDNN and the BLAS select code.
_DISPATCHED = ("sse4", "avx", "fma", "f16c", "amx", "asimd", "sve", "sme", "bf16", "i8mm")  # beginnings of names
# Variables that restrict that choice.
_LIMITS = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",
    "OPENBLAS_CORETYPE",
)


def processor_identity(device: torch.device) -> dict[str, Any]:
    """`gpu` if the run uses one, else `cpu`: what must be equal for bit-identical results."""
    if device.type == "cuda":
        return {"gpu": torch.cuda.get_device_name(device)}
    return {
        "cpu": {
            "capability": torch.backends.cpu.get_cpu_capability(),
            "instructions": " ".join(cpu_instructions()),
            "limits": {name: os.environ[name] for name in _LIMITS if os.environ.get(name)},
        }
    }


@cache
def cpu_instructions() -> tuple[str, ...]:
    """Vector instruction sets of this CPU, by the kernel's names; empty if the kernel does not list them."""
    words = cpu_facts().get("flags") or cpu_facts().get("Features") or ""
    return tuple(sorted({word for word in words.split() if word.startswith(_DISPATCHED)}))


def cpu_model() -> str:
    """Its name, for display: models with the same instruction sets may still differ in the last bits."""
    return cpu_facts().get("model name") or platform.processor() or platform.machine()


@cache
def cpu_facts() -> dict[str, str]:
    """The entries of the first processor in /proc/cpuinfo, if the file exists."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
