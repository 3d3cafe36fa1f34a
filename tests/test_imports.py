"""The one rule of the tree: data flows down it, imports point only up."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "manicap"
# From the top of the tree to the bottom. A place may import `core` and the places above it. `domains` is what the trunk
# asks of any domain; the domains themselves come after all that they use.
ORDER = [
    "core",
    "play",
    "atari",
    "environments",
    "images",
    "nn",
    "losses",
    "algorithms",
    "domains",
    "pretrained",
    "train",
    "probing",
    "statistics",
    "diagnostics",
    "topology",
    "domains/play",
    "domains/atari",
    "domains/environments",
    "domains/images",
    "jobs",
    "bench",
    "report",
    "exporting",
    "rl",
    "cli",
    "library",
]
SIBLINGS = [
    {"nn", "losses"},
    {"domains/atari", "domains/images"},
    {"domains/atari", "domains/environments"},
    {"domains/environments", "domains/images"},
    {"domains/play", "domains/images"},
    {"cli", "library"},
    {"atari", "images"},
    {"atari", "environments"},
    {"environments", "images"},
]
"""Places that do not know each other."""
KNOW_NO_DOMAIN = ("jobs", "bench", "report", "exporting", "cli")
"""They ask for a domain by name: `find_domain(config.domain)`."""


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write manicap.x"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names if is_module(f"{node.module}.{alias.name}")}
    return found


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def place_of(parts: tuple[str, ...]) -> str:
    """The place in the tree of `manicap.parts[0].parts[1]`...: its folder, or the folder of one domain."""
    longer = "/".join(parts[:2])
    return longer if longer in ORDER else parts[0]


def violations(place: str, modules: set[str]) -> list[str]:
    wrong = []
    for module in sorted(modules):
        package, *parts = module.split(".")
        if package != "manicap" or not parts:
            continue
        target = place_of(tuple(parts))
        is_above = target in ORDER and ORDER.index(target) <= ORDER.index(place)
        if not is_above or {place, target} in SIBLINGS or (place in KNOW_NO_DOMAIN and target.startswith("domains/")):
            wrong.append(module)
    return wrong


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.name == "library.py"]


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def test_imports_point_only_up(path):
    place = place_of(path.relative_to(PACKAGE).with_suffix("").parts)
    assert place in ORDER, f"{place} is not in the tree: give it a place in ORDER"
    assert violations(place, imported_modules(path)) == []


@pytest.mark.parametrize("folder", ["core", "atari", "statistics", "report"])
def test_folders_that_must_stay_light_do_not_import_torch(folder):
    for path in (PACKAGE / folder).rglob("*.py"):
        assert not {name for name in imported_modules(path) if name.split(".")[0] == "torch"}, path


def test_the_rule_sees_a_violation():
    assert violations("nn", {"manicap.losses.infonce"}) == ["manicap.losses.infonce"]
    assert violations("atari", {"manicap.train.loop", "manicap.core.files"}) == ["manicap.train.loop"]
    assert violations("algorithms", {"manicap.nn.heads", "torch"}) == []
    assert violations("train", {"manicap.domains.base", "manicap.domains.play.data"}) == ["manicap.domains.play.data"]
    assert violations("domains/images", {"manicap.domains.play.data"}) == ["manicap.domains.play.data"]
    assert violations("report", {"manicap.domains.images.config"}) == ["manicap.domains.images.config"]
    assert violations("jobs", {"manicap.library"}) == ["manicap.library"]
