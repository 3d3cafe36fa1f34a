"""The contents of a run's page: plain values that survive a round trip through JSON."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """F1 and accuracy in [0, 1]; plus_minus is the standard deviation over seeds, if there are several."""

    f1: float | None = None
    accuracy: float | None = None
    f1_plus_minus: float | None = None
    accuracy_plus_minus: float | None = None


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


@dataclass(frozen=True)
class Series:
    """One line of a chart. Values that are not finite are not drawn."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Chart:
    title: str
    series: tuple[Series, ...]
    x_label: str = "step"


@dataclass(frozen=True)
class Track:
    """A variable's value in each frame of the player."""

    variable: str
    true: tuple[int, ...]
    decoded: tuple[int, ...]


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
    frame_width: int = 160
    frame_height: int = 210
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
class RunPage:
    title: str
    method: str
    """As named in the published scores, so that its column is shown beside ours."""
    overall: ScoreRow
    """The mean over categories; its F1 is the page's headline."""
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
    probe_note: str = ""
    """How the scores were probed, in one sentence."""


def check_page(page: RunPage) -> None:
    """Raise `ValueError` if lengths or names do not match."""
    for chart in page.charts:
        for series in chart.series:
            if len(series.steps) != len(series.values):
                raise ValueError(
                    f"chart {chart.title!r} needs one value per step, got {len(series.steps)} steps and"
                    f" {len(series.values)} values of {series.name!r}"
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
