"""What the bytes of a run's result depend on beside its config and its data: versions, threads, and the processor.

Libraries choose their code by the processor's instructions, and sums come out differently in the last bits. A run
begun with AVX-512 and resumed with AVX2 would end with other bytes, so the instructions are part of its identity.
"""

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

import torch

# Instructions that ATen, oneDNN and the BLAS choose their code by.
_DISPATCHED = ("sse4", "avx", "fma", "f16c", "amx", "asimd", "sve", "sme", "bf16", "i8mm")  # beginnings of names
# What limits that choice.
_LIMITS = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",
    "OPENBLAS_CORETYPE",
)


def processor_identity(device: torch.device) -> dict[str, Any]:
    """`gpu` where the run computes on one, else `cpu`: what must be equal for equal bytes."""
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
    """Vector instructions of this CPU, by the kernel's names; none where the kernel does not tell."""
    words = cpu_facts().get("flags") or cpu_facts().get("Features") or ""
    return tuple(sorted({word for word in words.split() if word.startswith(_DISPATCHED)}))


def cpu_model() -> str:
    """Its name, for people: models with the same instructions may still differ in the last bits."""
    return cpu_facts().get("model name") or platform.processor() or platform.machine()


@cache
def cpu_facts() -> dict[str, str]:
    """The lines of the first processor in /proc/cpuinfo, where there is one."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
