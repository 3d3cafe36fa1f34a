"""The page in a real browser: Debian's chromium, driven by playwright."""

import dataclasses
import os
import re
import shutil

import pytest

from manicap.report.page import build_page
from tests.report.test_page import replace_texts

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'manicap[dev]'")

CHROMIUM = os.environ.get("MANICAP_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync"
FRAME_MILLISECONDS = 67  # 15 frames per second

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def example_file(example, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(build_page(example), encoding="utf-8")
    return path


@pytest.fixture
def load(browser):
    """Open a file in a fresh context; at the end there were no errors and no requests but the file itself."""
    contexts, troubles, requests = [], [], []

    def load(path, stopped_clock=False, **options):
        """With a stopped clock, time passes in the page only by `tab.clock.run_for(milliseconds)`."""
        context = browser.new_context(**options)
        contexts.append(context)
        tab = context.new_page()
        if stopped_clock:
            tab.clock.install(time=0)
            tab.clock.pause_at(1)
        tab.set_default_timeout(5_000)
        tab.on("console", lambda message: troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("dialog", lambda dialog: (troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(path.as_uri())
        return tab

    yield load
    for context in contexts:
        context.close()
    assert troubles == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def cells(tab, variable):
    return tab.locator("#values tbody tr", has_text=variable).locator("td").all_inner_texts()


def position(tab):
    return tab.locator("#position").inner_text()


def test_everything_is_drawn(load, example_file):
    tab = load(example_file)
    assert tab.title() == "DIM-C+ on Pong"
    assert tab.locator(".bars .bar").count() == 3
    assert tab.locator(".bars .mark").count() == 6
    assert tab.locator(".chart svg path.line").count() == 3
    assert tab.locator("#values tbody tr").count() == 3
    assert tab.locator(".panel-f1 tbody tr").count() == 3
    widths = tab.eval_on_selector_all(".bars .track", "t => t.map(e => e.firstChild.offsetWidth / e.clientWidth)")
    assert widths == pytest.approx([0.72, 0.68, 0.63], abs=0.01)
    assert tab.evaluate("document.getElementById('frame').naturalWidth") == 160


def test_keys_move_the_slider_the_frame_and_the_values(load, example_file):
    tab = load(example_file)
    assert position(tab) == "Frame 1 of 12, 3 of 3 values right"
    first = tab.get_attribute("#frame", "src")
    tab.focus("#slider")
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    assert position(tab) == "Frame 4 of 12, 2 of 3 values right"
    assert tab.input_value("#slider") == "3"
    assert tab.get_attribute("#slider", "aria-valuetext") == "Frame 4 of 12, 2 of 3 values right"
    assert tab.inner_text("#caption") == "episode 1, step 3"
    assert tab.get_attribute("#frame", "src") != first
    assert cells(tab, "ball_x") == ["75", "95", "✗ off by +20", "83 %"]  # 10 of 12 right
    assert cells(tab, "ball_y") == ["100", "100", "✓ right", "100 %"]
    assert tab.locator("#values tr.wrong").count() == 1
    tab.keyboard.press("End")
    assert position(tab).startswith("Frame 12 of 12")
    tab.keyboard.press("ArrowRight")
    assert position(tab).startswith("Frame 12 of 12")
    tab.keyboard.press("Home")
    assert tab.get_attribute("#frame", "src") == first
    tab.keyboard.press("m")
    assert position(tab).startswith("Frame 4 of 12")


def test_a_value_within_its_tolerance_is_right(load, example, tmp_path):
    ball_x, *others = example.player.tracks
    tracks = (dataclasses.replace(ball_x, tolerance=4), *others)
    path = tmp_path / "report.html"
    player = dataclasses.replace(example.player, tracks=tracks)
    path.write_text(build_page(dataclasses.replace(example, player=player)), encoding="utf-8")
    tab = load(path)
    tab.click("#mistake")
    assert position(tab) == "Frame 4 of 12, 2 of 3 values right"  # off by 20
    tab.focus("#slider")
    for _ in range(4):
        tab.keyboard.press("ArrowRight")
    assert position(tab) == "Frame 8 of 12, 3 of 3 values right"
    assert cells(tab, "ball_x") == ["95", "91", "✓ off by −4", "92 %"]  # 11 of 12
    assert "counts as right within 5 % of its range" in tab.inner_text("#player .note")


def test_the_mouse_moves_the_slider(load, example_file):
    tab = load(example_file)
    slider = tab.locator("#slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    slider.click(position={"x": box["width"] - 3, "y": box["height"] / 2})
    assert position(tab).startswith("Frame 12 of 12")
    tab.click("#previous")
    assert position(tab).startswith("Frame 11 of 12")
    tab.click("#mistake")
    assert position(tab).startswith("Frame 4 of 12")
    tab.click("#mistake")
    assert position(tab).startswith("Frame 8 of 12")


def test_it_plays_to_the_end_and_pauses(load, example_file):
    tab = load(example_file, stopped_clock=True)
    tab.click("#play")
    assert tab.get_attribute("#play", "aria-pressed") == "true"
    expect = sync_api.expect  # waits; the page's policy forbids wait_for_function
    tab.clock.run_for(3 * FRAME_MILLISECONDS)
    expect(tab.locator("#position")).to_contain_text("Frame 4 of 12")
    tab.click("#play")
    tab.clock.run_for(5 * FRAME_MILLISECONDS)
    assert position(tab).startswith("Frame 4 of 12")
    tab.focus("#slider")
    tab.keyboard.press("Space")
    tab.clock.run_for(20 * FRAME_MILLISECONDS)
    expect(tab.locator("#position")).to_contain_text("Frame 12 of 12")
    expect(tab.locator("#play")).to_have_text("Play")
    tab.keyboard.press("Space")  # from the end it starts again
    expect(tab.locator("#play")).to_have_text("Pause")


def test_places_are_marked_where_the_object_is_drawn(load, example_file):
    tab = load(example_file)
    # The ball covers columns 20-21 and rows 60-63: with 2 pixels of air the box is 18..24 by 58..66.
    assert tab.get_attribute("#marks path.true", "d") == "M18 58h6v8h-6z"
    assert tab.locator("#marks path.link").count() == 0
    tab.focus("#slider")
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    # Frame 4: true x 75 is column 36, decoded 95 column 56; a line joins them.
    assert tab.get_attribute("#marks path.link", "d") == "M36 92L56 92"
    tab.uncheck("#show-marks")
    assert tab.locator("#marks path").count() == 0


def test_light_and_dark_have_their_own_ground(load, example_file):
    grounds = []
    for scheme in ("light", "dark"):
        tab = load(example_file, color_scheme=scheme)
        colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        grounds.append([int(part) for part in re.findall(r"\d+", colour)])
    assert min(grounds[0]) > 230
    assert max(grounds[1]) < 40


@pytest.mark.parametrize("hostile", [False, True])
def test_a_phone_never_scrolls_sideways(load, example, tmp_path, hostile):
    path = tmp_path / "report.html"
    path.write_text(build_page(replace_texts(example) if hostile else example), encoding="utf-8")
    tab = load(path, viewport={"width": 360, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.locator("#play").scroll_into_view_if_needed()
    assert tab.locator("#play").bounding_box()["height"] >= 40


def test_hostile_text_is_shown_and_does_nothing(load, example, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(build_page(replace_texts(example)), encoding="utf-8")
    tab = load(path)
    assert "<script>alert(1)</script>" in tab.inner_text("h1")
    assert "<script>alert(1)</script>" in tab.locator("#values tbody th").first.inner_text()
    assert tab.locator("img").count() == 1
    assert tab.locator("script").count() == 2


def test_a_curve_reads_its_values_by_mouse_and_keys(load, example_file):
    tab = load(example_file)
    readout = tab.locator(".readout").first
    assert readout.inner_text() == "Last step 4: train 3 · validation 3.5"
    tab.locator(".plot").first.focus()
    tab.keyboard.press("Home")
    assert readout.inner_text() == "At step 1: train 5 · validation 4.5 (at 2)"
    plot = tab.locator(".plot").first
    plot.hover(position={"x": plot.bounding_box()["width"] / 2.5, "y": 50})
    assert readout.inner_text() == "At step 2: train 4 · validation 4.5"


def test_the_metric_switch_works_by_keyboard(load, example_file):
    tab = load(example_file)
    assert tab.locator(".panel-f1").is_visible()
    assert not tab.locator(".panel-accuracy").is_visible()
    tab.focus("#metric-f1")
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".panel-accuracy").is_visible()
    assert not tab.locator(".panel-f1").is_visible()


def test_a_page_without_player_and_charts_has_no_errors(load, example, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(build_page(dataclasses.replace(example, player=None, charts=())), encoding="utf-8")
    assert load(path).locator("section").count() == 3
