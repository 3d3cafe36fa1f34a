"""Run the mutants of losses, methods and networks against their tests: `make mutants`, `--help` for the flags.

The repository is copied to a temporary directory, where one file at a time is changed. A process that has loaded torch
and pytest forks a child for each mutant: it runs the tests of that file, nearest first, up to the first failure.
A mutant is killed when a test fails or when the tests take more than `--seconds` of processor time; what survives is
printed. Mutants that change nothing a user could see are listed with the reason in `equivalent.toml`.
"""

import argparse
import contextlib
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.nearest import tests_of

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("manicap/losses", "manicap/algorithms", "manicap/nn")
Stages = tuple[list[str], list[str]]
"""The tests nearest to a file, and the others; two, because collecting tests takes longer than most failures."""
COPIED = ("manicap", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", help=f"files or folders to mutate; else {', '.join(FOLDERS)}")
    parser.add_argument("--every", type=int, default=1, help="take every n-th mutant")
    parser.add_argument("--seconds", type=int, default=300, help="processor time that a mutant's tests may take")
    parser.add_argument("--list", action="store_true", help="list the mutants, run nothing")
    parser.add_argument(
        "--near", action="store_true", help="without the tests that train: quicker, and a few more survive"
    )
    arguments = parser.parse_args()
    files = find_files(arguments.files or list(FOLDERS))
    mutants = {file: mutants_of(ROOT, file)[:: arguments.every] for file in files}
    if arguments.list:
        for mutant in (each for found in mutants.values() for each in found):
            print(describe(mutant))
        return 0
    return run_all({file: found for file, found in mutants.items() if found}, arguments.seconds, arguments.near)


def find_files(names: list[str]) -> list[str]:
    found: list[Path] = []
    for path in (ROOT / name for name in names):
        if not path.exists():
            raise SystemExit(f"there is no {path}")
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [str(path.relative_to(ROOT)) for path in found]


def run_all(mutants: dict[str, list[Mutant]], seconds: int, near: bool) -> int:
    reasons = read_equivalents()
    totals: Counter[str] = Counter()
    survivors: list[Mutant] = []
    green: set[frozenset[str]] = set()
    with tempfile.TemporaryDirectory() as directory:
        copy = copy_repository(Path(directory))
        prepare_process(copy)
        print(f"{'file':<38}{'made':>6}{'killed':>8}{'equivalent':>12}{'survived':>10}{'seconds':>9}", flush=True)
        for file, found in mutants.items():
            stages = tests_of(ROOT, file)
            if near:
                stages[1].extend(["-k", "not falls and not in_the_middle"])
            if frozenset(stages[0] + stages[1]) not in green:
                require_green(file, stages, seconds)
                green.add(frozenset(stages[0] + stages[1]))
            started, counts = children_seconds(), Counter[str]()
            for mutant in found:
                outcome = "equivalent" if mutant.key in reasons else run_mutant(copy, mutant, stages, seconds)
                counts[outcome] += 1
                if outcome == "survived":
                    survivors.append(mutant)
                    print(describe(mutant), flush=True)
            print_row(file, len(found), counts, children_seconds() - started)
            totals += counts
    print_row("all", sum(map(len, mutants.values())), totals, children_seconds())
    return 1 if survivors else 0


def print_row(file: str, made: int, counts: Counter[str], seconds: float) -> None:
    numbers = f"{counts['killed']:>8}{counts['equivalent']:>12}{counts['survived']:>10}{seconds:>9.0f}"
    print(f"{file.removeprefix('manicap/'):<38}{made:>6}{numbers}", flush=True)


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def describe(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.line} {mutant.function}\n  - {mutant.before}\n  + {mutant.after}"


def read_equivalents() -> dict[tuple[str, str, str, str], str]:
    listed = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text()).get("mutant", [])
    return {(each["file"], each["function"], each["before"], each["after"]): each["reason"] for each in listed}


def copy_repository(directory: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, directory / name)
    return directory


def prepare_process(copy: Path) -> None:
    """Load what every child needs, but nothing of manicap, and let children import the copy."""
    os.environ |= {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "MANICAP_TEST_STORES": str(copy / "stores")}
    os.chdir(copy)
    # The package and the suite are found in the copy alone.
    sys.path[:] = [str(copy), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if name == "tests" or name.startswith("tests.")]:
        del sys.modules[name]
    import torch

    torch.set_num_threads(1)


def require_green(file: str, stages: Stages, seconds: int) -> None:
    """The tests of an unchanged file pass. Load what they have loaded of other packages, for the children to come."""
    sys.dont_write_bytecode = False
    loaded = Path("loaded.txt")
    if run_tests(stages[0] + stages[1], seconds, loaded=loaded) != "survived":
        raise SystemExit(f"the tests of {file} fail without any change: {' '.join(stages[0] + stages[1])}")
    sys.dont_write_bytecode = True
    for name in loaded.read_text().split():
        with contextlib.suppress(ImportError):  # parts of packages that are not there under their own name
            importlib.import_module(name)


def run_mutant(copy: Path, mutant: Mutant, stages: Stages, seconds: int) -> str:
    path = copy / mutant.file
    original = path.read_text()
    # Bytecode is matched by size and second of change, which two mutants can share.
    for bytecode in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        bytecode.unlink()
    path.write_text(mutant.source)
    try:
        word = path.stem.replace("_plus", "+").replace("_", "-")  # dim_c_plus.py is the method dim-c+
        survives = all(run_tests(tests, seconds, word) == "survived" for tests in stages)
        return "survived" if survives else "killed"
    finally:
        path.write_text(original)


class _Nearest:
    """Tests with this word in their name come first."""

    def __init__(self, word: str) -> None:
        self.word = word

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: self.word not in item.nodeid)


def run_tests(tests: list[str], seconds: int, word: str = "", loaded: Path | None = None) -> str:
    """Whether the code survives its tests, in a child of its own; `loaded` gets the names of modules of others."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        import pytest

        flags = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=no"]
        code = pytest.main([*flags, *tests], plugins=[_Nearest(word)])
        if loaded is not None:
            ours = ("manicap", "tests", "conftest", "__")
            loaded.write_text("\n".join(name for name in list(sys.modules) if not name.startswith(ours)))
        os._exit(int(code))
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes of its tests
    # 5: no test was selected.
    return "survived" if os.waitstatus_to_exitcode(status) in (0, 5) else "killed"


if __name__ == "__main__":
    sys.exit(main())
