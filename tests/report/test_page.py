"""The page as text: what it holds, what it refuses, and that nothing in it can run."""

import dataclasses
import io
import json
import re
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from manicap.core.config import from_dict, to_dict
from manicap.report.page import Chart, Fact, Marker, MarkerAxis, RunPage, Score, ScoreRow, Series, build_page
from manicap.report.png import encode_png, frame_text

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{js}} & \"'"


def decode_png(content):
    """An independent, literal reader of what the encoder may write."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(content):
        size, kind = struct.unpack(">I4s", content[at : at + 8])
        body = content[at + 8 : at + 8 + size]
        assert struct.unpack(">I", content[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + size
    width, height, bits, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    stride = 1 + (width * bits + 7) // 8
    raw = zlib.decompress(chunks[b"IDAT"])
    frame = np.zeros((height, width), np.uint8)
    for row in range(height):
        line = raw[row * stride : (row + 1) * stride]
        assert line[0] == 0
        for column in range(width):
            byte, bit = divmod(column * bits, 8)
            index = line[1 + byte] >> (8 - bits - bit) & (2**bits - 1)
            frame[row, column] = chunks[b"PLTE"][3 * index] if colour == 3 else index
    return frame


@pytest.mark.parametrize("num_levels", [1, 2, 3, 4, 5, 16, 17, 256])
def test_png_keeps_every_pixel(num_levels):
    generator = np.random.default_rng(num_levels)
    levels = generator.permutation(256)[:num_levels].astype(np.uint8)
    frame = generator.choice(levels, (9, 13))
    np.testing.assert_array_equal(decode_png(encode_png(frame)), frame)


@pytest.mark.parametrize("num_colours", [1, 2, 5, 17, 256, 400])
def test_a_colour_png_keeps_every_pixel(num_colours):
    generator = np.random.default_rng(num_colours)
    colours = generator.integers(0, 256, (num_colours, 3)).astype(np.uint8)
    frame = colours[generator.permutation(21 * 23) % num_colours].reshape(21, 23, 3)
    with Image.open(io.BytesIO(encode_png(frame))) as image:
        np.testing.assert_array_equal(np.asarray(image.convert("RGB")), frame)


def test_png_refuses_what_is_not_a_frame():
    with pytest.raises(ValueError, match=r"needs a frame uint8 \[height, width\] or .*, got float64 \(2, 3\)"):
        encode_png(np.zeros((2, 3)))


def test_equal_values_give_equal_bytes(example):
    assert build_page(example) == build_page(dataclasses.replace(example))


def test_the_page_survives_json(example):
    finite = dataclasses.replace(example, charts=example.charts[1:])  # nan is never equal to itself
    assert from_dict(RunPage, json.loads(json.dumps(to_dict(finite)))) == finite


def test_the_headline_compares_the_numbers_shown(example):
    # 0.664 is shown as 0.66, the floors as 0.36 and 0.08.
    page = build_page(example)
    assert "<strong>0.66 ± 0.01</strong>, 0.30 above an untrained network at the same width, 0.58 above always" in page
    worse = dataclasses.replace(example, overall=ScoreRow("Mean", Score(0.3), untrained=Score(0.36)))
    assert "<strong>0.30</strong>, 0.06 below an untrained network at the same width." in build_page(worse)


def test_every_score_is_text(example):
    text = re.sub(r"<[^>]+>", "", build_page(example))
    for expected in ["0.72", "0.73", "0.68", "0.63", "0.84", "0.81", "± 0.01", "Small object localization", "Seeds"]:
        assert expected in text
    assert "train,4,3\n" in text


def test_sections_without_contents_are_left_out():
    page = build_page(RunPage("Bare", "dim-c+", ScoreRow("Mean", Score())))
    assert re.findall(r'<section id="(\w+)"', page) == ["scores"]
    assert ">–<" in page


class Collector(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        assert not [name for name, _ in attrs if name.startswith("on")], (tag, attrs)


def replace_texts(value):
    """Every string of a page but the frames made hostile."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return type(value)(**{k: v if k == "frames" else replace_texts(v) for k, v in fields.items()})
    if isinstance(value, tuple):
        return tuple(replace_texts(item) for item in value)
    return value + HOSTILE if isinstance(value, str) else value


def test_hostile_text_adds_no_element(example):
    plain, hostile = Collector(), Collector()
    plain.feed(build_page(example))
    hostile.feed(build_page(replace_texts(example)))
    assert hostile.tags == plain.tags
    assert hostile.addresses == plain.addresses == ["data:,"]


def test_the_policy_allows_the_page_its_own_script_alone(example):
    page = build_page(example)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:;")
    assert re.search(r"script-src 'sha256-[\w+/=]{44}'$", policy)


def test_values_that_are_not_finite_stay_valid_json(example):
    data = re.search(r'id="data">(.*?)</script>', build_page(example)).group(1)
    assert json.loads(data)["charts"][0]["series"][0]["values"] == [5.0, 4.0, None, 3.0]


def test_what_does_not_fit_together_is_refused(example):
    track = dataclasses.replace(example.player.tracks[0], decoded=(1, 2))
    cases = [
        ({"tracks": (track,)}, r"needs 12 values of 'ball_x', got 12 true and 2 decoded"),
        ({"captions": ("one",)}, r"needs 12 captions or none, got 1"),
        ({"markers": (Marker("fish", x=MarkerAxis(1.0, 0.0, "fish_x")),)}, r"'fish' needs a track of 'fish_x'"),
        ({"frames": ()}, r"needs at least one frame"),
    ]
    for change, message in cases:
        with pytest.raises(ValueError, match=message):
            build_page(dataclasses.replace(example, player=dataclasses.replace(example.player, **change)))
    with pytest.raises(ValueError, match=r"chart 'loss' needs one value per step, got 2 steps and 1 values of 'train'"):
        build_page(dataclasses.replace(example, charts=(Chart("loss", (Series("train", (1, 2), (0.5,)),)),)))


def test_three_hundred_busy_frames_stay_under_three_megabytes(example):
    # Busier than any game: 14 gray levels, a third of the screen random in 2 x 2 blocks.
    generator = np.random.default_rng(0)
    frame = np.repeat(np.arange(14, dtype=np.uint8) * 18, 15)[:, None] * np.ones((1, 160), np.uint8)
    frame[:70] = np.kron(generator.integers(0, 14, (35, 80)), np.ones((2, 2))).astype(np.uint8) * 18
    player = dataclasses.replace(example.player, frames=(frame_text(frame),) * 300, tracks=(), markers=(), captions=())
    assert len(build_page(dataclasses.replace(example, player=player))) < 3_000_000


def test_building_a_page_does_not_load_torch():
    code = "import sys, manicap.report.page, manicap.report.png; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_facts_keep_their_order(example):
    page = build_page(dataclasses.replace(example, facts=(Fact("b", "1"), Fact("a", "2"))))
    assert page.index("<dt>b</dt><dd>1</dd>") < page.index("<dt>a</dt><dd>2</dd>")
