"""The contents of a run's page: plain values that survive a round trip through JSON."""

from dataclasses import dataclass

TOLERANCE = 0.05
"""Share of its range by which a regressed place or number may be off and count as right in the player."""


@dataclass(frozen=True)
class Score:
    """F1 and accuracy in [0, 1]; plus_minus is the standard deviation over seeds, if there are several."""

    f1: float | None = None
    accuracy: float | None = None
    f1_plus_minus: float | None = None
    accuracy_plus_minus: float | None = None
    macro_f1: float | None = None
    r2: float | None = None
    """Share of the variance explained; None for names."""
    error: float | None = None
    """Mean absolute error in the variable's own units; None where units are mixed."""


@dataclass(frozen=True)
class PublishedScore:
    method: str
    score: Score


@dataclass(frozen=True)
class ScoreRow:
    """One row of the table: a category, or the mean over them."""

    name: str
    ours: Score
    untrained: Score | None = None
    """An untrained network, probed at the same width."""
    majority: Score | None = None
    """Always guessing the most frequent value."""
    supervised: Score | None = None
    published: tuple[PublishedScore, ...] = ()


@dataclass(frozen=True)
class VariableScore:
    """One bar with its floors."""

    name: str
    category: str
    ours: Score
    untrained: Score | None = None
    majority: Score | None = None
    kind: str = ""
    """place, number or name."""
    saved: str = ""
    """Labels saved against the untrained network, in words."""
    unseen: float | None = None
    """Share of test frames whose value never occurs in training."""


@dataclass(frozen=True)
class Series:
    """One line of a chart. Values that are not finite are not drawn."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    """Empty, or the ends of a band around each value."""


@dataclass(frozen=True)
class Chart:
    title: str
    series: tuple[Series, ...]
    x_label: str = "step"
    logarithmic: bool = False
    """Whether steps are drawn on a logarithmic axis, each with its tick."""
    limits: tuple[float, float] | None = None
    """Ends of the vertical axis; values beyond them are drawn at its edge. Those of the values if None."""


@dataclass(frozen=True)
class Track:
    """A variable's value in each frame of the player."""

    variable: str
    true: tuple[float, ...]
    decoded: tuple[float, ...]
    tolerance: float = 0
    """A value that is off by no more counts as right."""


@dataclass(frozen=True)
class MarkerAxis:
    """`slope * value + intercept` is the pixel column (x) or row (y). Without a variable the object does not move."""

    slope: float
    intercept: float
    variable: str | None = None


@dataclass(frozen=True)
class Marker:
    """An object drawn on the frames: a box of its size where it is, a cross where it was decoded."""

    name: str
    x: MarkerAxis | None = None
    y: MarkerAxis | None = None
    """None if unknown; a line across the frame then marks the other axis."""
    width: float = 8.0
    height: float = 8.0


@dataclass(frozen=True)
class Player:
    frames: tuple[str, ...]
    """PNG in base64; see `manicap.report.png.frame_text`."""
    tracks: tuple[Track, ...]
    markers: tuple[Marker, ...] = ()
    captions: tuple[str, ...] = ()
    """Empty, or one per frame: `episode 3, step 118`."""
    frame_width: float = 160
    frame_height: float = 210
    """In the units of markers."""
    frames_per_second: int = 15
    """15 steps of 4 frames are the game's own speed."""


@dataclass(frozen=True)
class Fact:
    name: str
    value: str


@dataclass(frozen=True)
class Diagnosis:
    """What `manicap diagnose` and `manicap nerve` found, in words and numbers."""

    measures: tuple[Fact, ...] = ()
    capacities: tuple[Fact, ...] = ()
    """Manifold capacity per variable."""
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    nerve_svg: str = ""
    nerve_caption: str = ""


@dataclass(frozen=True)
class SavedRow:
    """Labels saved against one floor, in words."""

    floor: str
    factor: str
    interval: str
    """95 %, over draws of the labels; empty if there was one draw."""
    labels: str
    """What the run's labels are worth on the floor."""


@dataclass(frozen=True)
class LayerRow:
    name: str
    width: int
    ours: float
    untrained: float | None = None


@dataclass(frozen=True)
class ControlRow:
    """A place or a number: R2 of its values, and of the same values exchanged at random."""

    name: str
    ours: float
    control: float
    untrained: float | None = None
    untrained_control: float | None = None


@dataclass(frozen=True)
class BitsRow:
    """Description length of a variable's training labels, in kilobits."""

    name: str
    ours: float
    untrained: float | None
    plain: float
    """Without features."""


@dataclass(frozen=True)
class LabelReading:
    """What a probe that is fitted to few labels and to all of them finds: labels saved, label curves and more."""

    sentence: tuple[str, str, str]
    """Labels saved: the words before the number, the number, and those after it."""
    num_labels: int
    """Labels of this run that are compared with those of the floors."""
    curve: Chart
    """Mean score over the variables by number of labels: this run and its floors."""
    note: str = ""
    """What the sentence leaves out."""
    saved: tuple[SavedRow, ...] = ()
    """The floor of the headline first."""
    variables: tuple[Chart, ...] = ()
    """One curve per variable."""
    widths: Chart | None = None
    layers: tuple[LayerRow, ...] = ()
    layers_note: str = ""
    controls: tuple[ControlRow, ...] = ()
    bits: tuple[BitsRow, ...] = ()


@dataclass(frozen=True)
class RunPage:
    title: str
    method: str
    """As named in the published scores, so that its column is shown beside ours."""
    overall: ScoreRow
    """The mean over categories; its F1 is the page's headline, unless there are labels saved."""
    converged: ScoreRow | None = None
    """The same with a converged logistic regression: what is linearly decodable."""
    rows: tuple[ScoreRow, ...] = ()
    caveat: str = ""
    """What differs from the paper's setting, in one sentence."""
    facts: tuple[Fact, ...] = ()
    variables: tuple[VariableScore, ...] = ()
    charts: tuple[Chart, ...] = ()
    player: Player | None = None
    diagnosis: Diagnosis | None = None
    published_source: str = ""
    """Where the published numbers are from."""
    probe: str = ""
    """Name of the probe."""
    probe_note: str = ""
    """How the scores were probed, in one sentence."""
    published_note: str = ""
    """How the published numbers were probed, if otherwise."""
    labels: LabelReading | None = None
    """None for a probe that is fitted to all labels only."""
    left_out: tuple[str, ...] = ()
    """What was not scored, a sentence each."""
    warnings: tuple[str, ...] = ()
    """What may be wrong with the scores, a sentence each."""
    commands: tuple[Fact, ...] = ()
    """Commands that measure this again."""

    @property
    def all_charts(self) -> tuple[Chart, ...]:
        """In the order in which the page's script finds them."""
        if self.labels is None:
            return self.charts
        widths = () if self.labels.widths is None else (self.labels.widths,)
        return (self.labels.curve, *self.labels.variables, *widths, *self.charts)


def check_page(page: RunPage) -> None:
    """Raise `ValueError` if lengths or names do not match."""
    for chart in page.all_charts:
        for series in chart.series:
            for values in (series.values, *filter(None, (series.low, series.high))):
                if len(series.steps) != len(values):
                    raise ValueError(
                        f"chart {chart.title!r} needs one value per step, got {len(series.steps)} steps and"
                        f" {len(values)} values of {series.name!r}"
                    )
    if page.player is None:
        return
    count = len(page.player.frames)
    names = {track.variable for track in page.player.tracks}
    if not count:
        raise ValueError("the player needs at least one frame; pass None for a page without a player")
    for track in page.player.tracks:
        if len(track.true) != count or len(track.decoded) != count:
            raise ValueError(
                f"the player needs {count} values of {track.variable!r}, got {len(track.true)} true and"
                f" {len(track.decoded)} decoded"
            )
    if page.player.captions and len(page.player.captions) != count:
        raise ValueError(f"the player needs {count} captions or none, got {len(page.player.captions)}")
    for marker in page.player.markers:
        for axis in (marker.x, marker.y):
            if axis is not None and axis.variable is not None and axis.variable not in names:
                raise ValueError(f"marker {marker.name!r} needs a track of {axis.variable!r}, got {sorted(names)}")
