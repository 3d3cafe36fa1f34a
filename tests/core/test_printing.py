from pathlib import Path

import pytest
from rich.table import Table

import manicap.cli
from manicap.core.printing import in_columns, plain_console
from manicap.core.progress import Tracker

NAMES = ["C+ [/x]", "[bold]a", ":smile:", "[link=file:///etc]b[/link]"]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_is_markup(name, capsys):
    table = Table(title=name)
    table.add_column(name)
    table.add_row(name)
    console = plain_console()
    console.print(table)
    console.print(name)
    assert capsys.readouterr().out.count(name) == 4


@pytest.mark.parametrize("name", NAMES)
def test_no_title_of_a_bar_is_markup(name, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    with Tracker(name, 2, "steps") as tracker:
        tracker.advance(1, detail=name)
        tracker.say(name)
    assert name in capsys.readouterr().err


def test_every_command_prints_through_the_plain_console():
    # `main` alone prints markup, of its own words.
    for path in Path(manicap.cli.__file__).parent.glob("*.py"):
        assert path.name == "main.py" or "Console(" not in path.read_text(), path


def test_columns_are_aligned_and_a_row_is_a_line():
    text = in_columns(("path", "MB"), [("a" * 300, "7"), ("b", "1,234")], numbers=("MB",))
    head, first, second = text.splitlines()
    assert first == "a" * 300 + "      7"
    assert second == "b" + " " * 301 + "1,234"
    assert head.startswith("path ")
