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
class ClassLabels:
    """What a logistic regression reads, fitted to few labels and to all of them."""

    sentence: tuple[str, str, str]
    """Labels saved: the words before the number, the number, and those after it."""
    curve: Chart
    """F1 by number of labels, of this run and of the untrained network."""
    warnings: tuple[str, ...] = ()
    """Fits that may not be the best, a sentence each."""


@dataclass(frozen=True)
class ImagePage:
    title: str
    method: str
    """As named in the published scores."""
    overall: ImageScore
    """Accuracy; its value is the page's headline, after labels saved if there are any."""
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
    probe: str = ""
    """Name of the probe of the accuracies."""
    published_note: str = ""
    """How the published numbers were probed, if otherwise."""
    labels: ClassLabels | None = None
    """None for a probe without label curves."""

    @property
    def all_charts(self) -> tuple[Chart, ...]:
        """In the order in which the page's script finds them."""
        return self.charts if self.labels is None else (*self.charts, self.labels.curve)
