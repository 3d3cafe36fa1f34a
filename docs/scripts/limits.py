"""What it changes that predictions stay within the range of the labels: the table of docs/probing.md.

    python docs/scripts/limits.py [pong breakout ...] [--data-dir data]

The default probe on the untrained network (3456 features, pixels / 255) of each game, 12,000 steps. Every fit predicts
the test frames twice, as it is and limited: mean R2 of places and numbers, over the draws of the labels.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from manicap.atari.collect import collect
from manicap.atari.games import find_game
from manicap.atari.store import StoreConfig
from manicap.core.paths import DATA_DIR
from manicap.nn.encoders import NatureCNN
from manicap.probing.encoders import FrameEncoder
from manicap.probing.features import extract_features
from manicap.probing.metrics import explained_variance
from manicap.probing.play_bench import PlayBench
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData

GAMES = ("breakout", "freeway", "ms_pacman", "pong", "qbert", "seaquest")
STEPS, SHOWN = 12_000, (50, 200, 800)

Scores = dict[int, list[float]]
"""Mean R2 of each draw, by number of labels."""


def measure(game: str, data_dir: Path) -> tuple[Scores, Scores]:
    """R2 of free and of limited predictions."""
    train, _, test = features_of(game, data_dir)
    probe = RidgeProbes().fit(train)
    z, true = probe.standardisation_(test.features), test.labels.astype(np.float64)
    free, limited = Scores(), Scores()
    for (_, count), fit in probe.numbers_.items():
        numbers = fit.columns(slice(test.labels.shape[1]))
        predictions = numbers(z)
        for scores, predicted in ((free, predictions), (limited, numbers.limit(predictions))):
            r2 = explained_variance(true, predicted.numpy().astype(np.float64))
            scores.setdefault(count, []).append(float(r2.mean()))
    return free, limited


def features_of(game: str, data_dir: Path) -> list[ProbeData]:
    """Of the untrained network: train, validation and test with places and numbers only."""
    bench = PlayBench(collect(StoreConfig(game, STEPS, purpose="probe"), data_dir))
    torch.manual_seed(0)
    network = NatureCNN().eval()
    encoder = FrameEncoder(lambda frames: network(frames).features_BF, arrays="torch")
    features = extract_features(encoder, bench.store, bench.rows, quiet=True)
    kinds = [bench.kinds[name] for name in bench.splits.variables]
    chosen = [v for v, kind in enumerate(kinds) if kind != "class"]
    pieces = np.split(features, np.cumsum([len(part) for part in bench.parts])[:-1])
    return [
        ProbeData(piece, labels[:, chosen], part.episodes)
        for piece, labels, part in zip(pieces, bench.labels, bench.parts, strict=True)
    ]


def parse_arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", default=GAMES)
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments(__doc__)
    print("| game | " + " | ".join(f"{count} labels" for count in SHOWN) + " | all |")
    print("|---|" + "---|" * (len(SHOWN) + 1))
    for game in arguments.games:
        free, limited = measure(game, arguments.data_dir)
        cells = (f"{np.mean(free[n]):.3f}, {np.mean(limited[n]):.3f}" for n in (*SHOWN, max(free)))
        print(f"| {find_game(game).title} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
