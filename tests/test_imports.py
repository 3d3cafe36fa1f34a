"""The one rule of the tree: data flows down it, imports point only up."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "manicap"
# From the top of the tree to the bottom. A folder may import `core` and the folders above it; `nn` and `losses` are
# siblings that do not know each other.
ORDER = ["core", "atari", "images", "nn", "losses", "methods", "train", "evaluate", "bench", "report", "cli"]
SIBLINGS = {("losses", "nn"), ("nn", "losses")}


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write manicap.x"
            found.add(node.module or "")
    return found


def violations(folder: str, modules: set[str]) -> list[str]:
    wrong = []
    for module in modules:
        parts = module.split(".")
        if parts[0] != "manicap" or len(parts) == 1:
            continue
        target = parts[1]
        if target not in ORDER or ORDER.index(target) > ORDER.index(folder) or (folder, target) in SIBLINGS:
            wrong.append(module)
    return wrong


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE]


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def test_imports_point_only_up(path):
    folder = path.relative_to(PACKAGE).parts[0]
    assert folder in ORDER, f"{folder} is not in the tree: give it a place in ORDER"
    assert violations(folder, imported_modules(path)) == []


@pytest.mark.parametrize("folder", ["core", "atari", "report"])
def test_folders_that_must_stay_light_do_not_import_torch(folder):
    for path in (PACKAGE / folder).rglob("*.py"):
        assert not {name for name in imported_modules(path) if name.split(".")[0] == "torch"}, path


def test_the_rule_sees_a_violation():
    assert violations("nn", {"manicap.losses.infonce"}) == ["manicap.losses.infonce"]
    assert violations("atari", {"manicap.train.loop", "manicap.core.files"}) == ["manicap.train.loop"]
    assert violations("methods", {"manicap.nn.heads", "torch"}) == []
