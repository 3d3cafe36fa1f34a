"""What the page of a run on images is made of: plain values that survive JSON."""

from dataclasses import dataclass

from manicap.report.contents import Chart, Diagnosis, Fact


@dataclass(frozen=True)
class ImageScore:
    """Accuracies of test images in [0, 1]: of this run, and of what to compare it with."""

    name: str
    ours: float
    untrained: float | None = None
    """The same network without training, probed alike."""
    majority: float | None = None
    """Always the commonest class."""


@dataclass(frozen=True)
class Picture:
    image: str
    """PNG in base64, see `manicap.report.png.image_text`."""
    label: str


@dataclass(frozen=True)
class NeighborRow:
    """A test image, what the probe said of it, and the training images nearest to it."""

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
    """The class is among the first five choices; None where there are hardly more classes than that."""
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
