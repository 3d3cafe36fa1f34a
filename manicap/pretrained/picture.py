"""The picture on an encoder's card: its label curve beside those of its floors."""

from collections.abc import Mapping
from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

ENCODER = "encoder"
COLOURS = ("#7a7a7a", "#b08b4f", "#9d8fb3", "#a3b18a")
"""Colours of the floors; the encoder stands out."""


def draw_label_curves(curves: Mapping[str, Mapping[int, float]], title: str) -> bytes:
    """A PNG file: score by number of labels, on a logarithmic axis."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    floors = sorted((name for name in curves if name != ENCODER), key=lambda name: (name != "untrained", name))
    for colour, name in zip(COLOURS, floors, strict=False):
        axes.plot(list(curves[name]), list(curves[name].values()), color=colour, marker="o", markersize=3, label=name)
    own = curves[ENCODER]
    axes.plot(
        list(own), list(own.values()), color="#1f6fb2", marker="o", markersize=4, linewidth=2, label="this encoder"
    )
    axes.set(xscale="log", xlabel="labels", ylabel="mean score (R², F1 for names)", title=title, ylim=(0, 1))
    axes.set_xticks(list(own))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    content = BytesIO()
    figure.savefig(content, format="png", dpi=120, metadata={"Software": None})
    return content.getvalue()
