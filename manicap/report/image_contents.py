"""The contents of an image run's page: plain values that survive a round trip through JSON."""

from dataclasses import dataclass

from manicap.report.contents import Chart, Diagnosis, Fact


@dataclass(frozen=True)
class ImageScore:
    """Accuracies on test images in [0, 1]: this run's, and those to compare it with."""

    name: str
    ours: float
    untrained: float | None = None
    """The same network without training, probed in the same way."""
    majority: float | None = None
    """Always guessing the most frequent class."""


@dataclass(frozen=True)
class Picture:
    image: str
    """PNG in base64; see `manicap.report.png.image_text`."""
    label: str


@dataclass(frozen=True)
class NeighborRow:
    """A test image, the probe's prediction, and the nearest training images."""

    asked: Picture
    decoded: str
    nearest: tuple[Picture, ...]


@dataclass(frozen=True)
class ImagePage:
    title: str
    method: str
    """As named in the published scores."""
    overall: ImageScore
    """Accuracy; its value is the page's headline."""
    top5: ImageScore | None = None
    """The class is among the probe's first five choices; None if there are hardly more classes than that."""
    classes: tuple[ImageScore, ...] = ()
    published: tuple[tuple[str, float], ...] = ()
    """Accuracy by method."""
    published_source: str = ""
    caveat: str = ""
    """What differs from the paper's setting, in one sentence."""
    facts: tuple[Fact, ...] = ()
    charts: tuple[Chart, ...] = ()
    neighbors: tuple[NeighborRow, ...] = ()
    diagnosis: Diagnosis | None = None
    probe_note: str = ""
    """How the scores were probed, in one sentence."""
