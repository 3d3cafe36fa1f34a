"""Why the unbalanced atlas ends in one chart: its membership, trained on a run's features with and without their mean.

    python docs/scripts/one_chart.py RUN [--data-dir data]

Prints the shares of the four charts for five seeds. In DIM-UA the membership enters no other term of the loss.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manicap.core.paths import DATA_DIR
from manicap.domains.base import find_domain
from manicap.losses.atlas import unbalance
from manicap.nn.heads import Membership
from manicap.train.finished import FinishedRun

CHARTS, STEPS, BATCH, WEIGHT = 4, 400, 64, 0.1


def shares(features: Tensor, seed: int) -> list[float]:
    """Fraction of the samples in each chart, largest first, after training as DIM-UA trains its membership."""
    torch.manual_seed(seed)
    membership = Membership(features.shape[1], CHARTS)
    optimizer = torch.optim.Adam(membership.parameters(), 3e-4, eps=1e-5)
    for _ in range(STEPS):
        loss = WEIGHT * unbalance(membership(features[torch.randint(len(features), (BATCH,))]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        counts = np.bincount(membership(features).argmax(1).numpy(), minlength=CHARTS)
    return sorted((counts / len(features)).round(2).tolist(), reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR)
    options = parser.parse_args()
    run = FinishedRun(options.run)
    encoder = run.encoder("backbone")
    found = find_domain(run.config.domain).test_features(run.config, encoder, 12_000, options.data_dir, True)
    features = torch.from_numpy(np.asarray(found)).float()
    mean = features.mean(0)
    spread = float((features - mean).square().sum(1).mean().sqrt())
    print(f"{run.config.method}: length of the mean {float(mean.norm()):.1f}, root mean squared distance {spread:.1f}")
    for name, samples in (("as they are", features), ("without their mean", features - mean)):
        print(f"{name}: {[shares(samples, seed) for seed in range(5)]}")


if __name__ == "__main__":
    main()
