"""What counts as a mutant, and that the list of equivalent ones is about the code that there is."""

import ast

import pytest

from tests.mutation.__main__ import FOLDERS, ROOT, find_files, read_equivalents
from tests.mutation.mutants import mutants_of
from tests.mutation.nearest import tests_of as nearest_tests

SOURCE = '''"""Mean of the second frame - the first."""

LIMIT = 0.5


def loss(x: list[int] = 3, scale: float = 2.0):
    """No constant 7 in here."""
    first, second = x[:B], x[B:]
    if len(first) < 2:
        raise ValueError(f"needs {2 + 2}")
    return -scale * (second - first).square().mean(1)
'''
AFTER = {
    "LIMIT = (1.0)",
    "def loss(x: list[int] = (4), scale: float = 2.0):",
    "def loss(x: list[int] = 3, scale: float = (4.0)):",
    "second, first = (x[:B], x[B:])",
    "first, second = ((x[B:], x[:B]))",
    "first, second = (x[B:]), x[B:]",
    "first, second = x[:B], (x[:B])",
    "if (len(first) <= 2):",
    "if (len(first) > 2):",
    "if len(first) < (3):",
    "return (-scale / (second - first).square().mean(1))",
    "return (-scale)",
    "return ((second - first).square().mean(1))",
    "return (scale) * (second - first).square().mean(1)",
    "return -scale * ((second - first).square().sum(1))",
    "return -scale * (second - first).square().mean((2))",
    "return -scale * (second - first).mean(1)",
    "return -scale * ((second + first)).square().mean(1)",
}


def test_signs_frames_means_factors_bounds_and_constants_are_changed(tmp_path):
    (tmp_path / "loss.py").write_text(SOURCE)
    found = mutants_of(tmp_path, "loss.py")
    # Parentheses and spelling are ast.unparse's.
    assert {ast.dump(ast.parse(mutant.source)) for mutant in found} == {
        ast.dump(ast.parse(with_line(after))) for after in AFTER
    }
    assert len(found) == len(AFTER)


def with_line(after: str) -> str:
    """The source with the line that begins alike replaced."""
    begins = after.lstrip("(").split(" ")[0].replace("second,", "first,")
    rows = SOURCE.split("\n")
    (number,) = (n for n, row in enumerate(rows) if row.lstrip().startswith(begins))
    indent = rows[number][: len(rows[number]) - len(rows[number].lstrip())]
    return "\n".join([*rows[:number], indent + after, *rows[number + 1 :]])


@pytest.mark.parametrize("file", ["manicap/losses/jsd.py", "manicap/algorithms/dim_ua.py"])
def test_mutants_of_the_package_are_valid(file):
    found = mutants_of(ROOT, file)
    assert len(found) > 20
    for mutant in found:
        ast.parse(mutant.source)


def test_every_file_has_tests_each_once():
    for file in find_files(list(FOLDERS)):
        near, others = nearest_tests(ROOT, file)
        assert near
        assert len({*near, *others}) == len(near) + len(others)


def test_every_equivalent_mutant_is_one_that_is_made_and_has_a_reason():
    listed = read_equivalents()
    made = {mutant.key for file in {key[0] for key in listed} for mutant in mutants_of(ROOT, file)}
    assert sorted(set(listed) - made) == []
    assert all(len(reason) > 20 for reason in listed.values())
