"""The page of a run on an environment, in a real browser: coordinates that the user gives are drawn into its frames."""

import re

import numpy as np
import pytest

import manicap
from manicap.domains.base import find_domain
from manicap.train.setup import Execution
from tests.report.test_page_in_browser import browser, load, pytestmark  # noqa: F401 - fixtures, and the same skip

WORLDS = "tests.environments.worlds"
# Cells of three pixels, their centres in the middle: the frame of 48 x 64 ends after 16 and 21 1/3 cells.
COORDINATES = ("square_x:x:-0.5:20.8333333333333333", "square_y:y:-0.5:15.5")
UNIT = 210 / 48
"""Frames are drawn in units in which they are 210 high."""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    place = tmp_path_factory.mktemp("square")
    [found] = manicap.run(
        "random-cnn",
        env=f"{WORLDS}:Walk",
        labels=f"{WORLDS}:square",
        collect_steps=120,
        lanes=4,
        batch_size=4,
        runs_dir=place,
        data_dir=place,
        execution=Execution(threads=1, quiet=True),
        evaluation={"probe_steps": 240, "probe": "discriminant", "coordinates": COORDINATES},
    )
    return found, place


def test_the_square_is_marked_where_it_is_drawn(result, load):  # noqa: F811
    found, place = result
    tab = load(place / found.config.run_name / "report.html")
    store = find_domain("environments").probe_store(found.config, found.evaluation_config, place)
    assert tab.get_attribute("#marks", "viewBox") == "0 0 280 210"
    assert tab.locator("#marks text").all_text_contents() == ["square"]
    tab.focus("#slider")
    seen = set()
    for _ in range(6):
        row = int(tab.locator("#caption").inner_text().removeprefix("frame "))
        down, across = np.nonzero(store.colour_frames(row)[..., 0] == 250)
        x, y = (UNIT * (place.mean() + 0.5) for place in (across, down))
        seen.add((x, y))
        # The box is a sixteenth of the frame and has two units of air on each side.
        box = re.fullmatch(r"M(\S+) (\S+)h(\S+)v(\S+)h\S+z", tab.locator("#marks path.true").last.get_attribute("d"))
        left, top, width, height = map(float, box.groups())
        assert (width, height) == pytest.approx((280 / 16 + 4, 210 / 16 + 4))
        assert (left + width / 2, top + height / 2) == pytest.approx((x, y), abs=1e-6)
        tab.keyboard.press("ArrowRight")
    assert len(seen) > 1


def test_differences_of_real_numbers_are_read_by_people(result, load):  # noqa: F811
    found, place = result
    tab = load(place / found.config.run_name / "report.html")
    for words in tab.locator("#values td.verdict").all_inner_texts():
        assert len(words.split()[-1]) < 12  # not +0.30000000000000004
