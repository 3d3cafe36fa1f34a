"""The sections of an image run's page as HTML. Every text that comes from outside passes through `escape`."""

from html import escape

from manicap.report.image_contents import ImagePage, ImageScore, NeighborRow, Picture
from manicap.report.label_section import curve_table
from manicap.report.sections import CHART_NOTE, chart_figure, number, percent, section


def headline(page: ImagePage) -> str:
    """Labels saved if they were measured, the sentence with the accuracy, and the numbers for reference."""
    row = page.overall
    stats = [("This run", row.ours, "ours"), ("Untrained", row.untrained, "")]
    stats += [("Most frequent class", row.majority, "")]
    published = "Published, another probe," if page.published_note else "Published"
    stats += [(f"{published} {method}", value, "") for method, value in page.published if method == page.method]
    blocks = "".join(
        f'<div class="stat {kind}"><dt>{escape(name)}</dt><dd>{_accuracy(value)}</dd></div>'
        for name, value, kind in stats
        if value is not None
    )
    return f'{_saved_sentence(page)}{_accuracy_sentence(page)}\n<dl class="stats">{blocks}</dl>'


def _saved_sentence(page: ImagePage) -> str:
    if page.labels is None:
        return ""
    before, strong, after = map(escape, page.labels.sentence)
    return (
        f'<p class="summary">{before}<strong class="headline">{strong}</strong>{after}</p>\n'
        '<p class="note below">By the F1 of a logistic regression that is fitted to convergence.</p>\n'
    )


def _accuracy_sentence(page: ImagePage) -> str:
    row = page.overall
    comparisons = [
        _difference(row.ours, row.untrained, "the same network untrained"),
        _difference(row.ours, row.majority, "always guessing the most frequent class"),
    ]
    said = "".join(f", {text}" for text in comparisons if text)
    probe = f", {escape(page.probe)} probe" if page.probe else ""
    return f'<p class="summary">Accuracy on test images{probe}: <strong>{_accuracy(row.ours)}</strong>{said}.</p>'


def labels(page: ImagePage) -> str:
    """F1 by number of labelled images, of this run and of the untrained network."""
    if page.labels is None:
        return ""
    note = (
        "A logistic regression on the frozen features, fitted to convergence with ever more labelled images; this is"
        " not the probe of the accuracies below. F1 on test images is weighted by how often a class occurs: for classes"
        " of equal size it is close to accuracy. Lines are means over draws of the labelled images, bands their range."
    )
    curve = page.labels.curve
    values = f"<details><summary>Values</summary>{curve_table(curve)}</details>"
    figure = chart_figure(len(page.charts), curve, values)
    warnings = "".join(
        f'<p class="caveat" role="note"><strong>Warning.</strong> {escape(text)}</p>' for text in page.labels.warnings
    )
    body = f'<p class="note">{note} {CHART_NOTE}</p><div class="wide">{figure}</div>{warnings}'
    return section("labels", "Labels and scores", body)


def scores(page: ImagePage) -> str:
    """Accuracy, with the numbers to compare it with."""
    head = "".join(f'<th scope="col">{escape(method)}</th>' for method, _ in page.published)
    groups = (
        '<th scope="col" rowspan="2">Test images</th><th scope="col" rowspan="2" class="ours">This run</th>'
        '<th scope="colgroup" colspan="2" class="group">for reference</th>'
    )
    if page.published:
        title = "published, another probe" if page.published_note else "published"
        groups += f'<th scope="colgroup" colspan="{len(page.published)}" class="group">{title}</th>'
    names = f'<th scope="col" class="first">untrained</th><th scope="col">most frequent</th>{head}'
    cells = "".join(f"<td>{_accuracy(value)}</td>" for _, value in page.published)
    empty = "<td>–</td>" * len(page.published)
    body = _score_row(page.overall, cells) + ("" if page.top5 is None else _score_row(page.top5, empty))
    note = escape(page.probe_note)
    if page.published:
        said = ("Columns under “published” are as printed.", page.published_note, page.published_source)
        note += "".join(f" {escape(text)}" for text in said if text)
    table = (
        f'<div class="scroll" role="region" tabindex="0" aria-label="Accuracy"><table class="scores">'
        f"<caption>Accuracy</caption><thead><tr>{groups}</tr><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    return section("scores", "Accuracy", f'<p class="note">{note}</p>{table}')


def _score_row(row: ImageScore, published: str) -> str:
    return (
        f'<tr><th scope="row">{escape(row.name)}</th><td class="ours">{_accuracy(row.ours)}</td>'
        f'<td class="first">{_accuracy(row.untrained)}</td><td>{_accuracy(row.majority)}</td>{published}</tr>'
    )


def classes(page: ImagePage) -> str:
    """Bars of accuracy by class, with a mark for the untrained network."""
    if not page.classes:
        return ""
    legend = (
        '<p class="legend"><span><i class="key-fill"></i>this run</span>'
        '<span><i class="key-mark untrained"></i>untrained</span></p>'
    )
    head = (
        '<thead><tr><th scope="col">Class</th><th scope="col" class="track-head"><span>0</span><span>0.5</span>'
        '<span>1</span></th><th scope="col">Accuracy</th><th scope="col">Untrained</th></tr></thead>'
    )
    table = f'<table class="bars">{head}<tbody>{"".join(map(_bar, page.classes))}</tbody></table>'
    return section("variables", "Accuracy by class", legend + table)


def _bar(row: ImageScore) -> str:
    mark = ""
    if row.untrained is not None:
        title = f"Untrained {number(row.untrained)}"
        mark = f'<i class="mark untrained" style="left:{percent(row.untrained)}" title="{title}"></i>'
    return (
        f'<tr class="bar"><th scope="row">{escape(row.name)}</th><td class="track-cell">'
        f'<span class="track"><span class="fill" style="width:{percent(row.ours)}"></span>{mark}</span></td>'
        f'<td class="ours" data-label="accuracy">{_accuracy(row.ours)}</td>'
        f'<td data-label="untrained">{_accuracy(row.untrained)}</td></tr>'
    )


def neighbors(page: ImagePage) -> str:
    """Test images and their nearest training images; wrong labels are marked by more than colour."""
    if not page.neighbors:
        return ""
    note = (
        '<p class="note">Each row shows a test image with its class and the probe’s verdict, then the training images'
        " with the nearest features, nearest first. ✗ marks a class other than the test image’s.</p>"
    )
    choice = '<p class="legend"><label><input type="checkbox" id="only-wrong">only the probe’s mistakes</label></p>'
    rows = "".join(map(_neighbor_row, page.neighbors))
    return section(
        "neighbors", "Nearest neighbours", f'<div class="neighbors">{note}{choice}<ul class="rows">{rows}</ul></div>'
    )


def _neighbor_row(row: NeighborRow) -> str:
    right = row.decoded == row.asked.label
    verdict = "✓ right" if right else f"✗ {escape(row.decoded)}"
    asked = (
        f'<figure class="asked"><img src="data:image/png;base64,{row.asked.image}" alt="">'
        f'<figcaption>{escape(row.asked.label)}<span class="verdict">{verdict}</span></figcaption></figure>'
    )
    nearest = "".join(_nearest(picture, row.asked.label) for picture in row.nearest)
    return f'<li class="{"right" if right else "wrong"}">{asked}<div class="nearest">{nearest}</div></li>'


def _nearest(picture: Picture, label: str) -> str:
    same = picture.label == label
    return (
        f'<figure class="{"same" if same else "other"}"><img src="data:image/png;base64,{picture.image}" alt="">'
        f"<figcaption>{'' if same else '✗ '}{escape(picture.label)}</figcaption></figure>"
    )


def _accuracy(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _difference(ours: float, floor: float | None, name: str) -> str:
    if floor is None:
        return ""
    difference = round(100 * ours, 1) - round(100 * floor, 1)  # of the numbers shown, so that they add up
    return f"{abs(difference):.1f} points {'above' if difference >= 0 else 'below'} {name}"
