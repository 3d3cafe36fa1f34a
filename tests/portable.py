"""The suite as other CPUs would run it: `make portable`, or `python tests/portable.py --help` for the flags.

Torch, oneDNN, MKL, NumPy and OpenBLAS choose their kernels by the CPU. Here they are told to choose as on an old one
(`default`, no AVX), on a usual one (`avx2`) and on this one (`own`), with one and with two threads. Sums are then taken
in other orders, and a test that depends on the bits of one CPU fails.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent

INSTRUCTION_SETS: dict[str, dict[str, str]] = {
    "default": {
        "ATEN_CPU_CAPABILITY": "default",
        "DNNL_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Nehalem",
    },
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "MKL_CBWR": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "own": {},
}
# What NumPy may not use: its newer feature names are those of the x86-64 levels.
NUMPY_BEYOND = {"default": ("AVX", "FMA", "F16C", "XOP", "X86_V3", "X86_V4"), "avx2": ("AVX512", "X86_V4"), "own": ()}
SHOW = "import torch; print(torch.backends.cpu.get_cpu_capability())"


class Outcome(NamedTuple):
    passed: int
    failed: list[str]
    seconds: float
    log: Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default=",".join(INSTRUCTION_SETS), help="default: %(default)s")
    parser.add_argument("--threads", default="1,2", help="default: %(default)s")
    parser.add_argument(
        "--workers", type=int, default=0, help="of pytest-xdist for one thread, as many fewer for more; 0: none"
    )
    parser.add_argument("--logs", type=Path, help="where pytest's output goes; else a temporary directory")
    parser.add_argument("pytest", nargs="*", help="paths and, after --, flags for pytest")
    arguments = parser.parse_args()
    names = arguments.sets.split(",")
    if unknown := set(names) - set(INSTRUCTION_SETS):
        parser.error(f"unknown instruction sets {sorted(unknown)} (of {', '.join(INSTRUCTION_SETS)})")
    logs = arguments.logs or Path(tempfile.mkdtemp(prefix="portable-"))
    logs.mkdir(parents=True, exist_ok=True)
    print(f"{'instructions':<14}{'torch has':<12}{'threads':>8}{'passed':>9}{'failed':>8}{'seconds':>9}", flush=True)
    sound = True
    for name in names:
        for threads in map(int, arguments.threads.split(",")):
            environment = environment_for(name, threads)
            torch_has = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True)
            outcome = run_suite(
                environment, arguments.pytest, arguments.workers // threads, logs / f"{name}-{threads}.txt"
            )
            counts = f"{threads:>8}{outcome.passed:>9}{len(outcome.failed):>8}{outcome.seconds:>9.0f}"
            print(f"{name:<14}{torch_has.stdout.strip():<12}{counts}", flush=True)
            for test in outcome.failed:
                print(f"  {test}", flush=True)
            sound = sound and bool(outcome.passed) and not outcome.failed
    print(f"pytest's output: {logs}")
    return 0 if sound else 1


def environment_for(name: str, threads: int) -> dict[str, str]:
    """This process's environment with the instruction set and the threads; processes that tests start inherit it."""
    threading = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    threading["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that spin while they wait would take the other processes' time
    disabled = [feature for feature in numpy_features() if feature.startswith(NUMPY_BEYOND[name])]
    numpy_setting = {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)} if disabled else {}
    return os.environ | INSTRUCTION_SETS[name] | threading | numpy_setting


def numpy_features() -> list[str]:
    """Features that this NumPy chooses by the CPU and this CPU has; it warns of any other that one disables."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [feature for feature in __cpu_dispatch__ if __cpu_features__[feature]]


def run_suite(environment: dict[str, str], pytest_arguments: list[str], workers: int, log: Path) -> Outcome:
    report = log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *pytest_arguments]
    if workers:
        command += ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]
    started = time.monotonic()
    with log.open("w") as file:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - started
    if not report.exists():
        return Outcome(0, [f"pytest ended without a report: see {log}"], seconds, log)
    cases = list(ElementTree.parse(report).iter("testcase"))
    wrong = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    failed = [f"{case.get('classname')}::{case.get('name')}" for case in wrong]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Outcome(len(cases) - len(failed) - skipped, failed, seconds, log)


if __name__ == "__main__":
    sys.exit(main())
