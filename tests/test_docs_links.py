"""What the pages name is there: links and their anchors, files, commands and their flags."""

import re
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest

from manicap.algorithms import METHODS
from manicap.cli.main import COMMANDS, main

ROOT = Path(__file__).parent.parent
CHANGELOG = ROOT / "CHANGELOG.md"
"""Names what there was; only its links must lead somewhere."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")
FILE = re.compile(r"(?<![\w./<>-])((?:benchmarks|campaign|docs|examples|manicap|tests)/[\w./-]+\.\w+)")
CHOICES = ("--game", "--env", "--dataset", "--method", "--preset")
"""Flags on which other flags depend."""
YOURS = {"manicap/algorithms/my_method.py", "docs/methods/my-method.md"}
"""Files that CONTRIBUTING.md asks a reader to write."""


def name(page):
    return str(page.relative_to(ROOT))


def anchors(page):
    """The anchors that GitHub gives headings; the second of two equal ones ends in -1."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} (.+)$", FENCED.sub("", page.read_text()), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found[slug] = found.get(slug, 0) + 1
    return {f"{slug}-{index}" if index else slug for slug, count in found.items() for index in range(count)}


def dead_links(page):
    dead = []
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        if "://" in target:
            continue
        if not goal.exists() or (anchor and anchor not in anchors(goal)):
            dead.append(target)
    return dead


@pytest.mark.parametrize("page", [*PAGES, CHANGELOG], ids=name)
def test_links_lead_to_a_file_and_a_heading(page):
    assert dead_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_a_page_names_exist(page):
    named = {path.rstrip(".") for path in FILE.findall(page.read_text())} - YOURS
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def calls(page):
    """Every call of manicap on a page, as words: lines of code blocks, and code in sentences."""
    text = page.read_text().replace("\\\n", " ")
    codes = [line for _, block in FENCED.findall(text) for line in block.splitlines()]
    codes += [code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", FENCED.sub("", text))]
    found = (re.match(r"(?:torchrun .*-m )?manicap (.+)", code) for code in codes)
    words = (match[1].partition(" #")[0].split() for match in found if match)
    return [each for each in words if each[0] not in ("COMMAND", "--help", "--version")]


def command_of(words):
    """Its name in COMMANDS: one word or two."""
    return next((name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS), None)


@cache
def help_of(command, chosen):
    """The help of a command, with the flags of the subject, the method and the preset that a call chooses."""
    shown = StringIO()
    with redirect_stdout(shown), pytest.raises(SystemExit):
        main([*command.split(), *chosen, "--help"])
    return shown.getvalue()


def unknown_words(words):
    """What there is not in a call: the command, or flags. A reader's own method is taken for the default one."""
    command = command_of(words)
    if command is None:
        return words[:2]
    pairs = [pair for pair in pairwise(words) if pair[0] in CHOICES and (pair[0] != "--method" or pair[1] in METHODS)]
    known = {"--help", "--plugin", *re.findall(r"--[a-z0-9-]+", help_of(command, tuple(sum(pairs, ()))))}
    return [word for word in words if word.startswith("--") and word.split("=")[0] not in known]


@pytest.mark.parametrize("page", [page for page in PAGES if calls(page)], ids=name)
def test_commands_and_flags_that_a_page_names_exist(page, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert [(words, unknown) for words in calls(page) if (unknown := unknown_words(words))] == []


def test_the_check_sees_what_is_missing(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `b` (c)\n[1](#a-b-c) [2](#d) [3](page.md#a-b-c) [4](gone.md)\n```\n[5](gone.md)\n# d\n```\n")
    assert dead_links(page) == ["#d", "gone.md"]
    page.write_text("`manicap rum`\n```\nmanicap run --game pong --methods st-dim  # --no\nmanicap data list\n```\n")
    assert [unknown_words(words) for words in calls(page)] == [["--methods"], [], ["rum"]]
