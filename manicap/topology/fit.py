"""Fit an atlas autoencoder to a point cloud.

atlas = fit_atlas(points, num_charts=10, dimension=2, seed=0)
atlas.membership        [n, charts]
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.progress import Tracker
from manicap.core.ranges import BatchSize, Count, NonNegative, Positive
from manicap.core.seeding import stream_seed
from manicap.losses.atlas import certainty, chart_error, imbalance
from manicap.nn.atlas import AtlasAutoencoder

Floats = NDArray[np.float64]


LARGEST = 1e12
"""Largest coordinate: squares and drawings of much larger ones overflow."""


@dataclass(frozen=True)
class FitConfig:
    """How an atlas is fitted."""

    steps: Count = 2000
    """Steps of Adam; the learning rate falls to zero along a cosine."""
    batch_size: BatchSize = 256
    """Points per step."""
    learning_rate: Positive = 1e-2
    """Initial learning rate."""
    extent_weight: NonNegative = 1.0
    """Weight of the charts' extent: keeps each chart in one place."""
    overlap: NonNegative = 0.3
    """How much charts overlap: weight of the membership entropy, in units of the charts' extent."""
    balance_weight: NonNegative = 1.0
    """Weight of the divergence of the charts' usage from uniform: keeps charts from dying."""


@dataclass(frozen=True)
class Atlas:
    """The fitted charts of a point cloud."""

    membership: Floats
    """[n, charts]"""
    centres: Floats
    """[charts, C]: the centre of each chart, in the space of the points."""
    error: float
    """Root mean squared distance of a point to its reconstruction, in units of the points' spread."""


def fit_atlas(
    points: NDArray[np.floating],
    num_charts: int,
    dimension: int,
    seed: int = 0,
    config: FitConfig = FitConfig(),  # noqa: B008 - frozen
    quiet: bool = False,
) -> Atlas:
    """Fit charts of `dimension` to points [n, C] by

        L = E sum_i q_i |x - psi_i(phi_i(x))|^2 + extent_weight E sum_i q_i |x - psi_i(0)|^2
            - temperature E H(q) + balance_weight KL(E q || uniform)

    where temperature = overlap x the second term, without gradient. Deviations: arXiv 1803.00156 matches the
    coordinates to a uniform prior by an adversary; here the extent of the charts is penalised and their usage balanced.
    """
    cloud = _checked(points, num_charts, dimension)
    middle, scale = cloud.mean(0), np.sqrt(cloud.var(0).sum())
    x_BC = torch.from_numpy((cloud - middle) / scale).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(seed, "atlas", "init"))
        model = AtlasAutoencoder(cloud.shape[1], num_charts, dimension)
    generator = torch.Generator().manual_seed(stream_seed(seed, "atlas", "batches"))
    optimizer = torch.optim.Adam(model.parameters(), config.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
    with Tracker(f"fitting {num_charts} charts", config.steps, "steps", quiet) as tracker:
        for _ in range(config.steps):
            batch_BC = x_BC[torch.randint(len(x_BC), (config.batch_size,), generator=generator)]
            q_BN, _, decoded_BNC = model(batch_BC)
            extent = chart_error(batch_BC, model.centres().expand_as(decoded_BNC), q_BN)
            loss = chart_error(batch_BC, decoded_BNC, q_BN) + config.extent_weight * extent
            loss = loss + config.overlap * config.extent_weight * extent.detach() * certainty(q_BN)
            loss = loss + config.balance_weight * imbalance(q_BN)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            tracker.advance()
    with torch.no_grad():
        q_BN, _, decoded_BNC = model(x_BC)
        error = float(chart_error(x_BC, decoded_BNC, q_BN).sqrt())
        centres = model.centres().double().numpy() * scale + middle
    return Atlas(q_BN.double().numpy(), centres, error)


def _checked(points: NDArray[np.floating], num_charts: int, dimension: int) -> Floats:
    cloud = np.asarray(points)
    if cloud.ndim != 2 or not np.issubdtype(cloud.dtype, np.number) or np.iscomplexobj(cloud):
        raise UserError(f"an atlas needs points [n, C], got an array {cloud.dtype} of shape {list(cloud.shape)}")
    if num_charts < 1 or not 1 <= dimension <= cloud.shape[1]:
        raise UserError(
            f"an atlas needs at least 1 chart and charts of 1 to {cloud.shape[1]} dimensions,"
            f" got {num_charts} charts of {dimension}"
        )
    if len(cloud) < 10 * num_charts:
        raise UserError(f"{num_charts} charts need at least {10 * num_charts} points, got {len(cloud)}")
    cloud = cloud.astype(np.float64)
    if not (np.abs(cloud) <= LARGEST).all() or not cloud.var(0).sum() > 0:  # NaN compares as false
        raise UserError(f"the points must be finite, at most {LARGEST:g} in size, and not all equal")
    return cloud
