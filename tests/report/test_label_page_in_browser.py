"""The page of a run with label curves in a real browser."""

from itertools import pairwise

import pytest

from manicap.report.page import build_page
from manicap.report.play_page import write_play_page
from tests.report.hand_made import result, ridge_evaluation, write_run
from tests.report.test_label_page import page_with_labels
from tests.report.test_page import replace_texts
from tests.report.test_page_in_browser import browser, load, pytestmark  # noqa: F401 - fixtures, and the same skip


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    place = tmp_path_factory.mktemp("labels")
    return write_play_page(write_run(place / "run", result(ridge_evaluation())), place / "data")


def open_all(tab):
    tab.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")


def test_label_curves_are_drawn_with_their_bands(load, page_file):  # noqa: F811
    tab = load(page_file)
    # The mean of the run, the untrained network and the pixels; the first two for each of 3 variables.
    assert tab.locator("#labels .wide path.line").count() == 3
    assert tab.locator("#labels .wide path.band").count() == 3
    assert tab.locator("#labels .small path.line").count() == 6
    assert tab.locator("#where path.line").count() == 4
    for plot in tab.locator("#labels svg[role=img]").all():
        box = plot.bounding_box()
        assert box["width"] > 100
        assert box["height"] > 100


def test_the_axis_of_labels_is_logarithmic(load, page_file):  # noqa: F811
    tab = load(page_file)
    places = {text.text_content(): float(text.get_attribute("x")) for text in tab.locator("#labels .wide text").all()}
    ticks = [places[name] for name in ("50", "100", "200", "400", "800")]
    steps = [right - left for left, right in pairwise(ticks)]
    assert steps == pytest.approx([steps[0]] * 4)  # each is twice the one before
    assert places["labels"] > places["50"]


def test_a_label_curve_reads_its_values(load, page_file):  # noqa: F811
    tab = load(page_file)
    readout = tab.locator("#labels .wide .readout")
    # Means of the curves by hand: 2.4 / 3 and 2.05 / 3.
    assert readout.inner_text() == "800 labels: this run 0.80 · untrained 0.68 · pixels, random 0.68"
    tab.locator("#labels .wide .plot").focus()
    tab.keyboard.press("Home")
    assert readout.inner_text() == "50 labels: this run 0.30 · untrained 0.23 · pixels, random 0.23"
    tab.keyboard.press("ArrowRight")
    assert readout.inner_text().startswith("100 labels: this run 0.47")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_band_is_a_faint_area_in_the_colour_of_its_line(load, page_file, scheme):  # noqa: F811
    tab = load(page_file, color_scheme=scheme)
    look = "e => { const s = getComputedStyle(e); return [s.fill, s.stroke, Number(s.opacity)] }"
    for index in range(3):
        fill, stroke, opacity = tab.locator(f"#labels .wide path.band.series-{index}").evaluate(look)
        _, line, _ = tab.locator(f"#labels .wide path.line.series-{index}").evaluate(look)
        assert (fill, stroke) == (line, "none")
        assert opacity < 0.3


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("width", [320, 360, 700])
def test_no_screen_scrolls_sideways(load, page_file, tmp_path, width, hostile):  # noqa: F811
    path = page_file
    if hostile:
        path = tmp_path / "report.html"
        path.write_text(build_page(replace_texts(page_with_labels())), encoding="utf-8")
    tab = load(path, viewport={"width": width, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    open_all(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for plot in tab.locator("#labels .plot").all():
        box = plot.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_each_metric_has_its_table(load, page_file):  # noqa: F811
    tab = load(page_file)
    for key in ("r2", "f1", "accuracy", "macro_f1", "error"):
        tab.locator(f"label[for=metric-{key}]").click()
        shown = [panel for panel in tab.locator(".panel").all() if panel.is_visible()]
        assert [panel.get_attribute("class") for panel in shown] == [f"panel panel-{key}"]


def test_without_a_script_the_values_are_in_tables(load, page_file):  # noqa: F811
    tab = load(page_file, java_script_enabled=False)
    assert tab.locator("#labels noscript").count() == 1
    table = tab.locator("#labels .wide table")
    assert not table.is_visible()
    tab.locator("#labels .wide summary").click()
    assert table.is_visible()
    assert "0.30 (0.20 to 0.40)" in table.inner_text()


def test_hostile_text_is_shown_and_does_nothing(load, tmp_path):  # noqa: F811
    path = tmp_path / "report.html"
    path.write_text(build_page(replace_texts(page_with_labels())), encoding="utf-8")
    tab = load(path)
    assert "<script>alert(1)</script>" in tab.locator("#labels .legend").first.inner_text()
    assert tab.locator("script").count() == 2
