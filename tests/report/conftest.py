import numpy as np
import pytest

from manicap.report.page import (
    Chart,
    Fact,
    Marker,
    MarkerAxis,
    Player,
    PublishedScore,
    RunPage,
    Score,
    ScoreRow,
    Series,
    Track,
    VariableScore,
)
from manicap.report.png import frame_text

NUM_FRAMES = 12


@pytest.fixture(scope="session")
def example() -> RunPage:
    """A small page: 2 categories, 3 variables, 2 charts, 12 frames with a ball; ball_x is wrong in frames 3 and 7."""
    frames = np.zeros((NUM_FRAMES, 210, 160), np.uint8)
    for t in range(NUM_FRAMES):
        frames[t, 60 + 10 * t : 64 + 10 * t, 20 + 5 * t : 22 + 5 * t] = 236
    x, y = range(60, 60 + 5 * NUM_FRAMES, 5), range(70, 70 + 10 * NUM_FRAMES, 10)
    decoded_x = [value + {3: 20, 7: -4}.get(t, 0) for t, value in enumerate(x)]
    player = Player(
        frames=tuple(frame_text(frame) for frame in frames),
        tracks=(
            Track("ball_x", tuple(x), tuple(decoded_x)),
            Track("ball_y", tuple(y), tuple(y)),
            Track("score", (0,) * NUM_FRAMES, (0,) * NUM_FRAMES),
        ),
        markers=(Marker("ball", MarkerAxis(1.0, -39.5, "ball_x"), MarkerAxis(1.0, -8.5, "ball_y"), 2.0, 4.0),),
        captions=tuple(f"episode 1, step {t}" for t in range(NUM_FRAMES)),
    )
    floor = {"untrained": Score(0.36, 0.4), "majority": Score(0.08, 0.1)}
    return RunPage(
        title="DIM-C+ on Pong",
        method="dim-c+",
        overall=ScoreRow(
            "Mean over categories",
            Score(0.664, 0.68, 0.012, 0.011),
            **floor,
            published=(PublishedScore("st-dim", Score(0.81)), PublishedScore("dim-c+", Score(0.84, 0.85, 0.006))),
        ),
        rows=(
            ScoreRow("small_object_localization", Score(0.7, 0.71), **floor),
            ScoreRow("score_clock_lives_display", Score(0.63, 0.65), **floor),
        ),
        caveat="1,200 steps instead of 100 epochs.",
        facts=(Fact("Game", "Pong"), Fact("Seeds", "0, 1")),
        variables=(
            VariableScore("ball_x", "small_object_localization", Score(0.72, 0.73), **floor),
            VariableScore("ball_y", "small_object_localization", Score(0.68, 0.69), **floor),
            VariableScore("score", "score_clock_lives_display", Score(0.63, 0.65), **floor),
        ),
        charts=(
            Chart(
                "InfoNCE loss",
                (
                    Series("train", (1, 2, 3, 4), (5.0, 4.0, float("nan"), 3.0)),
                    Series("validation", (2, 4), (4.5, 3.5)),
                ),
            ),
            Chart("Capacity term", (Series("train", (1, 2), (-0.1, -0.2)),), x_label="epoch"),
        ),
        player=player,
        published_source="arXiv 2405.13848, Table 1.",
    )
