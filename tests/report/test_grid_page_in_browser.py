"""A grid's page in a real browser: Debian's chromium, driven by playwright."""

import re
from xml.etree import ElementTree

import pytest

from manicap.bench.grid import build_grid
from manicap.report.grid_report import write_grid_report
from tests.report.synthetic_runs import write_synthetic_run
from tests.report.test_grid_report import VALUES, made_up_score, write_run
from tests.report.test_page_in_browser import browser, load, pytestmark, sync_api  # noqa: F401 - fixtures

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    root = tmp_path_factory.mktemp("grid")
    grid = build_grid(VALUES | {"note": "Made up."}, "made-up")
    for (_, label, _), cell in grid.places.items():
        if label != "dim-c+ (epsilon 0.05)":
            write_run(root / "runs", cell, made_up_score, validations=5)
    return write_grid_report(grid, root / "runs", root / "report")


def column(tab, table, index):
    return tab.locator(f"{table} tbody tr").evaluate_all(f"rows => rows.map(row => row.cells[{index}].textContent)")


VISIBLE = ".panel:not([hidden])"


def test_everything_is_drawn(load, page_file):  # noqa: F811
    tab = load(page_file)
    assert tab.title() == "Made up"
    assert tab.locator(VISIBLE).count() == 1
    assert tab.locator(f"{VISIBLE} .grid-table").count() == 2
    assert tab.locator("#runs tbody tr").count() == 2 * 4 * 3
    assert tab.locator(".figure svg").count() == len(list((page_file.parent / "figures").glob("*.svg"))) > 0
    for box in tab.locator(".figure svg").evaluate_all("all => all.map(e => e.getBoundingClientRect().height)"):
        assert box > 100


def test_a_click_sorts_and_another_turns_it_round(load, page_file):  # noqa: F811
    tab = load(page_file)
    tab.select_option("#metric", "f1")
    table = f"{VISIBLE} .grid-table >> nth=0"
    head = tab.locator(f"{VISIBLE} .grid-table").first.locator("thead th").nth(1)
    rows = tab.locator(f"{VISIBLE} .grid-table").first.locator("tbody th")
    assert rows.all_inner_texts() == ["Pong", "Freeway"]
    tab.locator(f"{VISIBLE} .grid-table").first.locator("thead th").first.locator("button").click()
    assert rows.all_inner_texts() == ["Freeway", "Pong"]
    head = tab.locator(f"{VISIBLE} .grid-table").first.locator("thead th").nth(4)  # dim-c+: 0.701 and 0.633
    head.locator("button").focus()
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert rows.all_inner_texts() == ["Pong", "Freeway"]
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert rows.all_inner_texts() == ["Freeway", "Pong"]
    assert tab.locator(table).locator("tfoot th").inner_text() == "Mean"


def test_evaluation_and_metric_are_chosen(load, page_file):  # noqa: F811
    tab = load(page_file)
    assert tab.locator(f"{VISIBLE} h3").first.inner_text() == "labels saved, output (ridge probe)"
    tab.select_option("#evaluation", "backbone")
    tab.select_option("#metric", "accuracy")
    assert tab.locator(f"{VISIBLE} h3").first.inner_text() == "accuracy, backbone (ridge probe)"


def test_a_number_tells_its_runs_under_the_mouse(load, page_file):  # noqa: F811
    tab = load(page_file)
    output = tab.locator(f"{VISIBLE} .details")
    cell = tab.locator(f"{VISIBLE} tbody tr", has_text="Pong").first.locator("td").first
    cell.hover()
    assert output.inner_text() == "Pong, st-dim: 3 runs: 2 x (seed 0), 8 x (seed 1), 4 x (seed 2)"
    assert cell.inner_text() == "4 ×÷ 2"
    tab.select_option("#metric", "f1")
    cell.hover()
    expected = "Pong, st-dim: 3 runs: 0.500 (seed 0), 0.600 (seed 1), 0.700 (seed 2); published 0.81, ours -0.210"
    assert output.inner_text() == expected
    assert cell.inner_text() == "0.600 ± 0.100"  # text that can be selected and copied


def test_a_run_links_to_its_page(load, page_file):  # noqa: F811
    tab = load(page_file)
    link = tab.locator("#runs a", has_text="pong-dim-c+-s0").first
    with tab.expect_navigation():
        link.click()
    assert re.search(r"/runs/pong-dim-c(\+|%2B)-s0-[0-9a-f]{8}/report.html$", tab.url)


def test_light_and_dark_have_their_own_ground_and_ink(load, page_file):  # noqa: F811
    found = []
    for scheme in ("light", "dark"):
        tab = load(page_file, color_scheme=scheme)
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = tab.evaluate("getComputedStyle(document.querySelector('.figure svg text')).fill")
        found.append([sum(int(x) for x in re.findall(r"\d+", colour)[:3]) for colour in (ground, ink)])
    assert found[0][0] > 690 > 150 > found[0][1]
    assert found[1][0] < 120 < 600 < found[1][1]


def test_a_phone_never_scrolls_sideways(load, page_file):  # noqa: F811
    tab = load(page_file, viewport={"width": 360, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert tab.locator("#evaluation").bounding_box()["height"] >= 40


def test_hostile_text_is_shown_and_does_nothing(load, tmp_path):  # noqa: F811
    values = VALUES | {"title": HOSTILE, "note": HOSTILE, "seeds": [0], "datasets": ["pong"]}
    values["variants"] = [{"method": "dim-c+", "label": HOSTILE, "epsilon": 0.1}]
    grid = build_grid(values, "hostile")
    for cell in grid.cells:
        write_run(tmp_path / "runs", cell, made_up_score, validations=2)
    tab = load(write_grid_report(grid, tmp_path / "runs", tmp_path / "report"))
    assert tab.inner_text("h1") == HOSTILE
    assert HOSTILE in tab.inner_text("#runs")
    assert tab.locator("script").count() == 1


FOLDER = 'h"><img src=x onerror=alert(1)><base href=file:///nowhere> $\\frac{$ [/x]'


def write_hostile_image_grid(root):
    """Datasets, columns and evaluations with hostile names, over two folders of one name."""
    (root / "a" / FOLDER).mkdir(parents=True)
    (root / "b" / FOLDER).mkdir(parents=True)
    values = {
        "title": FOLDER,
        "note": FOLDER,
        "datasets": [str(root / "a" / "x" / ".." / ".." / "a" / FOLDER), str(root / "b" / FOLDER)],
        "methods": ["simclr"],
        "seeds": [0, 1, 2],
        "variants": [{"method": "simclr-c+", "label": FOLDER, "epsilon": [0.0, 0.005]}],
        "evaluations": [{"name": FOLDER}, {"name": "control \x1b\x00", "probe": "knn"}],
    }
    (root / "a" / "x").mkdir()
    grid = build_grid(values, "hostile")
    for cell in grid.cells:
        write_synthetic_run(root / "runs", cell, validations=2)
    return write_grid_report(grid, root / "runs", root / "out" / "report")


def test_hostile_names_of_folders_stay_inside_the_report_and_do_nothing(load, tmp_path):  # noqa: F811
    path = write_hostile_image_grid(tmp_path)
    written = {file.relative_to(tmp_path).parts[0] for file in tmp_path.rglob("*") if file.is_file()}
    assert written == {"runs", "out"}
    figures = list((tmp_path / "out" / "report" / "figures").iterdir())
    # Bars and profiles of two evaluations, a sweep for each of two folders and two evaluations, curves; two files each.
    assert len(figures) == 2 * (2 + 2 + 4 + 1)
    assert all(re.fullmatch(r"[a-z0-9_-]+\.(svg|pdf)", figure.name) for figure in figures)
    tab = load(path)  # which fails on any request, error or dialog
    assert tab.inner_text("h1") == FOLDER
    assert tab.locator("script").count() == 1
    assert tab.locator("main img, base, form").count() == 0
    assert tab.locator(".figure svg").count() == 9
    assert FOLDER in tab.locator("#figures").inner_text()
    for figure in figures:
        if figure.suffix == ".svg":
            ElementTree.parse(figure)


def test_the_policy_forbids_another_base_and_forms(load, page_file):  # noqa: F811
    policy = load(page_file).locator("meta[http-equiv]").get_attribute("content")
    assert "base-uri 'none'" in policy
    assert "form-action 'none'" in policy
