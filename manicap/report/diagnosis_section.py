"""The page's section on the representation: measures, capacity per variable, alarms, and the nerve."""

import base64
from collections.abc import Sequence
from html import escape

from manicap.report.contents import Diagnosis, Fact
from manicap.report.sections import section


def diagnosis_section(diagnosis: Diagnosis | None) -> str:
    if diagnosis is None:
        return ""
    alarms = "".join(
        f'<p class="caveat" role="note"><strong>Alarm.</strong> {escape(text)}</p>' for text in diagnosis.alarms
    )
    notes = "".join(f'<p class="note">{escape(text)}</p>' for text in diagnosis.notes)
    body = alarms + notes + _facts(diagnosis.measures)
    if diagnosis.capacities:
        note = (
            "Manifold capacity of the frames that share a value of a variable, or of classes: how many such groups per"
            " dimension a hyperplane separates under random labels. First with the points measured, which is too high,"
            " then its limit for infinitely many points with a 95 % interval, or none if none is in sight."
        )
        body += f'<p class="note">{note}</p>{_facts(diagnosis.capacities)}'
    if diagnosis.nerve_svg:
        # As an image it cannot run scripts or load anything, whatever it contains.
        source = "data:image/svg+xml;base64," + base64.b64encode(diagnosis.nerve_svg.encode()).decode()
        caption = escape(diagnosis.nerve_caption)
        body += f'<figure><figcaption>{caption}</figcaption><img alt="{caption}" width="100%" src="{source}"></figure>'
    return section("diagnosis", "Representation", body)


def _facts(facts: Sequence[Fact]) -> str:
    items = "".join(f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}</dd></div>" for fact in facts)
    return f'<dl class="facts">{items}</dl>' if items else ""
