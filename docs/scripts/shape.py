"""The shape of the package in numbers: how large it is, how it hangs together, how often it asks for the domain.

    python docs/scripts/shape.py                  modules, lines, imports, branches, by folder
    python docs/scripts/shape.py --calls          and the calls between `manicap run` and the loss, from a real run
    python docs/scripts/shape.py PATH             of another tree, such as a checkout of an older commit

A branch on the domain is an `isinstance` on a config, a comparison with a domain's name, or a dict with such names as
keys. Registries are branches too: the fewer there are, the less a new domain has to touch.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

DOMAINS = {"atari", "images"}
CALLS = """
import sys, traceback
from pathlib import Path
import torch
from manicap.cli.main import main
try:
    from manicap.algorithms.dim_c_plus import DIMCPlus
except ImportError:  # as the folder was called before
    from manicap.methods.dim_c_plus import DIMCPlus

torch.set_num_threads(1)

class Seen(Exception):
    pass

def loss(self, batch):
    frames = [frame for frame in traceback.extract_stack() if "/manicap/" in frame.filename]
    names = [f"{Path(frame.filename).stem}.{frame.name}" for frame in frames]
    first = next(index for index, name in enumerate(names) if name == "main.run")
    print("CALLS", *names[first + 1 :])
    raise Seen

DIMCPlus.loss = loss
try:
    main("run --game pong --method dim-c+ --collect-steps 2400 --probe-steps 2400 --quiet".split())
except Seen:
    pass
"""


def modules(package: Path) -> dict[str, ast.Module]:
    """Dotted name to syntax tree of every module."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text())
    return found


def imports(tree: ast.Module, known: set[str]) -> set[str]:
    """Modules of the package that a module imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & known) or ({node.module} & known)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
    return found


def branches(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every place that asks which domain it has to do with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            if any(name.endswith("Config") for name in names):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Compare):
            if any(is_domain(part) for part in (node.left, *node.comparators)):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Dict) and any(key is not None and is_domain(key) for key in node.keys):
            yield node.lineno, "{" + ", ".join(ast.unparse(key) for key in node.keys if key is not None) + "}"


def is_domain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in DOMAINS


def calls_to_the_loss(root: Path) -> list[str]:
    """Functions of the package from the command to the loss of its first step."""
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", CALLS]
        ended = subprocess.run(command, cwd=place, env=environment, text=True, capture_output=True)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("CALLS")]
    if not lines:
        sys.exit(ended.stderr)
    return [*lines[0].split()[1:], "loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent.parent)
    parser.add_argument("--calls", action="store_true", help="run a small job, and count the calls to its loss")
    arguments = parser.parse_args()
    package = arguments.root.resolve() / "manicap"
    trees = modules(package)
    lines = {name: source_lines(package, name) for name in trees}
    edges = {name: imports(tree, set(trees)) - {name} for name, tree in trees.items()}
    folders = sorted({name.split(".")[1] for name in trees if name.count(".") > 1})
    print(f"{'folder':<14}{'modules':>9}{'lines':>9}{'imports':>9}{'branches':>10}")
    for folder in folders:
        inside = [name for name in trees if name.split(".")[1:2] == [folder]]
        asked = sum(len(list(branches(trees[name]))) for name in inside)
        numbers = (len(inside), sum(lines[x] for x in inside), sum(len(edges[x]) for x in inside), asked)
        print(f"{folder:<14}{numbers[0]:>9}{numbers[1]:>9,}{numbers[2]:>9}{numbers[3]:>10}")
    found = [(name, line, text) for name, tree in trees.items() for line, text in branches(tree)]
    total = (len(trees), sum(lines.values()), sum(map(len, edges.values())), len(found))
    print(f"{'all':<14}{total[0]:>9}{total[1]:>9,}{total[2]:>9}{total[3]:>10}")
    print(f"\nbranches on the domain, in {len({name for name, _, _ in found})} modules:")
    for name, line, text in found:
        print(f"  {name}:{line}  {text}")
    if arguments.calls:
        calls = calls_to_the_loss(arguments.root.resolve())
        print(f"\ncalls from the command to the loss: {len(calls)}")
        print("  " + " -> ".join(calls))


def source_lines(package: Path, name: str) -> int:
    path = package.parent / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return len(file.read_text().splitlines())


if __name__ == "__main__":
    main()
