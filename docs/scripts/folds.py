"""How many folds choose a regularization: the table of docs/probing.md.

    python docs/scripts/folds.py [pong breakout ...] [--data-dir data]

Ridge regression of the default probe on the untrained network (3456 features, pixels / 255) of each game, 12,000 steps,
all training labels. The same frames are read with the ratios that one fold of five chooses, and with those of all five:
mean R2 of places and numbers on the test frames, and the smallest and largest difference of a variable.
"""

import numpy as np
from limits import features_of, parse_arguments
from numpy.typing import NDArray

import manicap.probing.ridge
from manicap.atari.games import find_game
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData


def scores(train: ProbeData, test: ProbeData, many: int) -> NDArray[np.float64]:
    """R2 of each variable, where one fold is held out of more than `many` frames."""
    manicap.probing.ridge.MANY = many
    names = [str(v) for v in range(train.labels.shape[1])]
    curves = RidgeProbes(curves=False).fit(train).read(test, names).curves
    return np.array([curves[name][0][0] for name in names])


def main() -> None:
    arguments = parse_arguments(__doc__)
    print("| game | labels | one fold | every fold | by variable |")
    print("|---|---|---|---|---|")
    for game in arguments.games:
        train, _, test = features_of(game, arguments.data_dir)
        one, every = (scores(train, test, many) for many in (0, len(train)))
        change = every - one
        cells = (f"{len(train):,}", f"{one.mean():.3f}", f"{every.mean():.3f}")
        cells += (f"{change.min():+.3f} to {change.max():+.3f}",)
        print(f"| {find_game(game).title} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
