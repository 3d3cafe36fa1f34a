"""The page of a run on images in a real browser."""

import re
from dataclasses import replace

import numpy as np
import pytest

from manicap.report.contents import Chart, Fact, Series
from manicap.report.image_contents import ClassLabels, ImagePage, ImageScore, NeighborRow, Picture
from manicap.report.page import build_page
from manicap.report.png import encode_colour_png, image_text
from tests.report.test_page_in_browser import browser, load, pytestmark, sync_api  # noqa: F401 - fixtures

HOSTILE = "</figcaption><script>alert(1)</script>"


def picture(label, level):
    return Picture(image_text(np.full((3, 32, 32), level, np.uint8)), label)


@pytest.fixture(scope="module")
def page():
    """Three test images: a cat and a dog that are recognised, a ship taken for a truck; 8 neighbours each."""
    rows = []
    for label, decoded, others in (("cat", "cat", 2), ("dog", "dog", 0), ("ship", "truck", 5)):
        nearest = [picture("truck" if n < others else label, 20 * n) for n in range(8)]
        rows.append(NeighborRow(picture(label, 200), decoded, tuple(nearest)))
    return ImagePage(
        title="cifar10: simclr-c+",
        method="simclr-c+",
        overall=ImageScore("accuracy", 0.523, 0.341, 0.1),
        top5=ImageScore("top-5", 0.9, 0.8, 0.5),
        classes=(ImageScore("cat", 0.4, 0.2, 1.0), ImageScore("ship", 0.6, 0.5, 0.0)),
        published=(("simclr", 0.911), ("simclr-c+", 0.913)),
        published_source="arXiv 2405.13848, Table 2",
        caveat="10 epochs, not 1000.",
        facts=(Fact("Dataset", "cifar10"),),
        charts=(Chart("Loss", (Series("training", (1, 2, 3), (5.0, 4.0, 3.5)),)),),
        neighbors=tuple(rows),
    )


@pytest.fixture
def tab(load, page, tmp_path):  # noqa: F811
    path = tmp_path / "report.html"
    path.write_text(build_page(page), encoding="utf-8")
    return load(path)


def test_a_colour_png_is_read_back_exactly(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 7), dtype=np.uint8)
    (tmp_path / "image.png").write_bytes(encode_colour_png(pixels))
    read = np.asarray(Image.open(tmp_path / "image.png"))
    np.testing.assert_array_equal(read.transpose(2, 0, 1), pixels)


def test_the_numbers_are_there(tab):
    summary = tab.inner_text(".summary")
    assert summary == (
        "Accuracy on test images: 52.3 %, 18.2 points above the same network untrained, 42.3 points above always"
        " guessing the most frequent class."
    )
    assert tab.locator(".stat", has_text="Published simclr-c+").locator("dd").inner_text() == "91.3 %"
    assert tab.locator("#scores tbody tr").count() == 2
    assert tab.locator(".bars .bar").count() == 2
    widths = tab.eval_on_selector_all(".bars .track", "t => t.map(e => e.firstChild.offsetWidth / e.clientWidth)")
    assert widths == pytest.approx([0.4, 0.6], abs=0.01)
    assert tab.locator(".chart svg path.line").count() == 1


@pytest.fixture
def labels():
    ours = Series("this run", (50, 100, 800), (0.2, 0.3, 0.5), (0.1, 0.2, 0.5), (0.3, 0.4, 0.5))
    curve = Chart("F1 by number of labelled images", (ours,), "labels", logarithmic=True, limits=(0.0, 0.5))
    return ClassLabels(("100 labelled images do what 300 do: ", "3 x fewer", "."), curve, ("2 of 9 fits stopped.",))


def test_labels_saved_come_first_and_every_number_has_its_probe(load, page, labels, tmp_path):  # noqa: F811
    path = tmp_path / "report.html"
    named = replace(page, labels=labels, probe="linear", published_note="Published by another probe.")
    path.write_text(build_page(named), encoding="utf-8")
    tab = load(path)
    first, second = tab.locator(".summary").all_inner_texts()
    assert first == "100 labelled images do what 300 do: 3 x fewer."
    assert second.startswith("Accuracy on test images, linear probe: 52.3 %")
    assert (
        tab.locator(".note.below").inner_text() == "By the F1 of a logistic regression that is fitted to convergence."
    )
    assert "not the probe of the accuracies" in tab.inner_text("#labels")
    assert "2 of 9 fits stopped." in tab.inner_text("#labels")
    assert tab.locator("#labels .line").count() == 1
    assert tab.locator("#curves .line").count() == 1
    # On a logarithmic axis 100 labels lie at log 2 / log 16 = 1/4 of the way from 50 to 800.
    points = [float(x) for x in re.findall(r"[ML]([\d.]+) ", tab.get_attribute("#labels .line", "d"))]
    assert (points[1] - points[0]) / (points[2] - points[0]) == pytest.approx(1 / 4, abs=0.002)
    assert "this run 0.5" in tab.inner_text("#labels .readout")
    assert "training 3.5" in tab.inner_text("#curves .readout")
    assert tab.locator(".stat", has_text="Published, another probe, simclr-c+").count() == 1
    assert "Published by another probe." in tab.inner_text("#scores")


def test_every_picture_is_drawn_with_its_label_and_mistakes_are_marked_in_words(tab):
    assert tab.locator(".rows li").count() == 3
    sizes = tab.eval_on_selector_all(".rows img", "all => all.map(i => [i.naturalWidth, i.naturalHeight])")
    assert sizes == [[32, 32]] * 27
    ship = tab.locator(".rows li.wrong")
    assert ship.locator(".verdict").inner_text() == "✗ truck"
    assert ship.locator(".other").count() == 5
    assert ship.locator(".nearest figcaption").all_inner_texts() == ["✗ truck"] * 5 + ["ship"] * 3
    assert tab.locator(".rows li.right .verdict").all_inner_texts() == ["✓ right"] * 2


def test_the_box_leaves_only_the_mistakes(tab):
    tab.check("#only-wrong")
    assert [row.is_visible() for row in tab.locator(".rows li").all()] == [False, False, True]
    tab.uncheck("#only-wrong")
    assert tab.locator(".rows li").first.is_visible()


def test_a_phone_never_scrolls_sideways(load, page, tmp_path):  # noqa: F811
    path = tmp_path / "report.html"
    path.write_text(build_page(page), encoding="utf-8")
    tab = load(path, viewport={"width": 360, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_light_and_dark_have_their_own_ground(load, page, tmp_path):  # noqa: F811
    path = tmp_path / "report.html"
    path.write_text(build_page(page), encoding="utf-8")
    grounds = []
    for scheme in ("light", "dark"):
        colour = load(path, color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        grounds.append([int(part) for part in re.findall(r"\d+", colour)])
    assert min(grounds[0]) > 230
    assert max(grounds[1]) < 40


def test_hostile_class_names_are_shown_and_do_nothing(load, page, tmp_path):  # noqa: F811
    row = NeighborRow(picture(HOSTILE, 1), HOSTILE + "x", (picture(HOSTILE, 2),))
    series = Series(HOSTILE, (1, 2), (0.1, 0.2))
    hostile = replace(
        page,
        labels=ClassLabels((HOSTILE, HOSTILE, HOSTILE), Chart(HOSTILE, (series,), HOSTILE), (HOSTILE,)),
        probe=HOSTILE,
        published_note=HOSTILE,
        title=HOSTILE,
        method=HOSTILE,
        classes=(ImageScore(HOSTILE, 0.5),),
        neighbors=(row,),
        published=((HOSTILE, 1),),
    )
    path = tmp_path / "report.html"
    path.write_text(build_page(hostile), encoding="utf-8")
    tab = load(path)
    assert HOSTILE in tab.inner_text("h1")
    assert HOSTILE in tab.locator(".asked figcaption").inner_text()
    assert tab.locator("script").count() == 2


def test_a_page_without_pictures_and_curves_has_no_errors(load, page, tmp_path):  # noqa: F811
    path = tmp_path / "report.html"
    path.write_text(build_page(replace(page, neighbors=(), charts=(), classes=())), encoding="utf-8")
    assert load(path).locator("section").count() == 2
