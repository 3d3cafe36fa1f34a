import pytest

from manicap.atari.games import PAPER_GAMES
from manicap.domains.published import published_scores


def test_every_game_of_the_paper_has_six_methods():
    for game in PAPER_GAMES:
        assert [entry.method for entry in published_scores(game)] == [
            "vae",
            "cpc",
            "st-dim",
            "dim-ua",
            "dim-uac+",
            "dim-c+",
        ]
    assert published_scores("skiing") == []


# Read off Tables 1 and 6 of arXiv 2405.13848 by eye.
@pytest.mark.parametrize(
    ("game", "method", "f1", "f1_std", "accuracy"),
    [
        ("pong", "dim-c+", 0.84, 0.006, 0.85),
        ("freeway", "dim-c+", 0.95, 0.011, 0.96),
        ("freeway", "vae", 0.01, None, 0.07),
        ("video_pinball", "dim-uac+", 0.67, 0.023, 0.68),
        ("space_invaders", "dim-ua", 0.62, None, 0.63),
    ],
)
def test_numbers_are_the_printed_ones(game, method, f1, f1_std, accuracy):
    (entry,) = [entry for entry in published_scores(game) if entry.method == method]
    assert entry.scores["f1"] == (f1, f1_std)
    assert entry.scores["accuracy"][0] == accuracy


def test_the_printed_mean_is_the_mean_of_the_games():
    # Table 1 prints 0.78 for DIM-C+ and 0.75 for DIM-UA over the 19 games.
    for method, printed in (("dim-c+", 0.78), ("dim-ua", 0.75)):
        entries = [entry for game in PAPER_GAMES for entry in published_scores(game) if entry.method == method]
        values = [entry.scores["f1"][0] for entry in entries]
        assert sum(values) / len(values) == pytest.approx(printed, abs=0.005)
