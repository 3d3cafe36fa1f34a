"""Which tests watch over a source file, nearest first."""

from pathlib import Path

# From frames to loss: they fail for most changes of a loss, a method or a head, and take seconds.
LITERAL = ("tests/algorithms/test_literal.py", "tests/algorithms/test_image_literal.py")
OTHERS = {
    "losses": ("tests/losses", "tests/algorithms"),
    "algorithms": ("tests/algorithms", "tests/losses"),
    "nn": ("tests/nn", "tests/algorithms"),
}
# Tests of several processes take long, and only what gathers over processes needs them.
DISTRIBUTED = "tests/losses/test_distributed.py"
# Tests of a file under another name.
ALSO_NEAR = {"atlas.py": "tests/topology/test_fit.py", "polar.py": "tests/losses/test_nuclear_norm.py"}


def tests_of(root: Path, file: str) -> tuple[list[str], list[str]]:
    """The test file of the same name with the literal forms; then the other tests of folders that touch the file."""
    _, folder, name = file.split("/", 2)
    literal = LITERAL[::-1] if "image" in (root / file).read_text() else LITERAL
    own = [f"tests/{folder}/test_{name}", *literal]
    if name == "gather.py":
        own.insert(0, DISTRIBUTED)
    near = [each for each in own if (root / each).exists()]
    if name in ALSO_NEAR:
        near.insert(1, ALSO_NEAR[name])
    others = [path for place in OTHERS[folder] for path in sorted((root / place).rglob("test_*.py"))]
    names = (str(path.relative_to(root)) for path in others)
    last = [DISTRIBUTED] if DISTRIBUTED not in near and "losses.gather import" in (root / file).read_text() else []
    return near, [each for each in names if each not in near and each != DISTRIBUTED] + last
