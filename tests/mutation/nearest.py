"""Which tests watch over a source file, nearest first."""

from pathlib import Path

# From frames to loss: they fail for most changes of a loss, a method or a head, and take seconds.
LITERAL = ("tests/methods/test_literal.py", "tests/methods/test_image_literal.py")
OTHERS = {
    "losses": ("tests/losses", "tests/methods"),
    "methods": ("tests/methods", "tests/losses"),
    "nn": ("tests/nn", "tests/methods"),
}
# Tests of several processes take long, and only what gathers over processes needs them.
DISTRIBUTED = "tests/losses/test_distributed.py"


def tests_of(root: Path, file: str) -> list[str]:
    """The test file of the same name, the literal forms, the file's own folder, others that touch it; each once."""
    _, folder, name = file.split("/", 2)
    literal = LITERAL[::-1] if '"images"' in (root / file).read_text() else LITERAL
    places = [f"tests/{folder}/test_{name}", *literal, *OTHERS[folder]]
    if name == "atlas.py":
        places.insert(1, "tests/evaluate/topology")
    found: dict[Path, None] = {}
    for path in (root / place for place in places):
        found |= dict.fromkeys(sorted(path.rglob("test_*.py")) if path.is_dir() else [path] * path.exists())
    names = [str(path.relative_to(root)) for path in found]
    names = [each for each in names if each != DISTRIBUTED]
    return [DISTRIBUTED, *names] if name == "gather.py" else names
