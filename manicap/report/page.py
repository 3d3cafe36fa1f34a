"""A run's result page: one self-contained HTML file, built from plain values.

    page = RunPage(title="DIM-C+ on Pong", method="dim-c+", rows=(...), overall=ScoreRow(...), ...)
    path.write_text(build_page(page), encoding="utf-8")

Equal values give equal bytes. The page makes no network requests (its own policy forbids them), and no text in it is
ever treated as markup or code. `from_dict(RunPage, json.loads(text))` restores a page saved as JSON by `to_dict`.
"""

import json
import math
from html import escape
from typing import Any

from manicap.core.config import to_dict
from manicap.report import image_sections, label_section, sections
from manicap.report.assets import asset, content_policy, fill
from manicap.report.contents import (
    BitsRow,
    Chart,
    ControlRow,
    Diagnosis,
    Fact,
    LabelReading,
    LayerRow,
    Marker,
    MarkerAxis,
    Player,
    PublishedScore,
    RunPage,
    SavedRow,
    Score,
    ScoreRow,
    Series,
    Track,
    VariableScore,
    check_page,
)
from manicap.report.diagnosis_section import diagnosis_section
from manicap.report.image_contents import ImagePage

__all__ = [
    "BitsRow",
    "Chart",
    "ControlRow",
    "Diagnosis",
    "Fact",
    "LabelReading",
    "LayerRow",
    "Marker",
    "MarkerAxis",
    "Player",
    "PublishedScore",
    "RunPage",
    "SavedRow",
    "Score",
    "ScoreRow",
    "Series",
    "Track",
    "VariableScore",
    "build_page",
]


def build_page(page: RunPage | ImagePage) -> str:
    """The whole HTML file."""
    css = asset("page.css")
    if isinstance(page, ImagePage):
        css += "\n" + asset("neighbors.css")
        own = {
            "headline": image_sections.headline(page),
            "scores": image_sections.scores(page),
            "variables": image_sections.classes(page),
            "player": image_sections.neighbors(page),
            "labels": image_sections.labels(page),
            "where": "",
            "doubts": "",
        }
    else:
        check_page(page)
        own = _play_sections(page)
    script = asset("page.js")
    player = None if isinstance(page, ImagePage) else page.player
    parts = {
        "title": escape(page.title),
        "policy": content_policy(script),
        "css": css,
        "caveat": sections.caveat(page),
        "facts": sections.facts(page),
        "charts": sections.charts(page),
        "diagnosis": diagnosis_section(page.diagnosis),
        "data": _script_json({"charts": [_plain(chart) for chart in page.all_charts], "player": _plain(player)}),
        "js": script,
    }
    return fill(asset("page.html"), **parts, **own)


def _play_sections(page: RunPage) -> dict[str, str]:
    """By place in the template. Labels saved come first if there are label curves, otherwise F1."""
    reading = page.labels
    common = {
        "scores": sections.scores(page),
        "player": sections.player(page),
        "doubts": sections.doubts(page),
    }
    if reading is None:
        return common | {
            "headline": sections.headline(page),
            "labels": "",
            "variables": sections.variables(page),
            "where": "",
        }
    return common | {
        "headline": label_section.label_headline(page, reading),
        "labels": label_section.label_curves(reading),
        "variables": label_section.label_variables(page),
        "where": label_section.label_details(page, reading),
    }


def _script_json(value: Any) -> str:
    """JSON that no HTML parser reads as markup: `</script>` and `<!--` cannot occur in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any) -> Any:
    """Values for JSON: None, lists and dicts; a float that is not finite becomes None."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _plain(to_dict(value)) if hasattr(value, "__dataclass_fields__") else value
