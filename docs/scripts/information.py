"""Information where the truth is known; draws docs/images/information.svg.

    python docs/scripts/information.py

Left: correlated Gaussians, whose mutual information is -d/2 log(1 - r^2). With the best critic there is, the InfoNCE
bound stays under the truth and under its ceiling log K, and tightens with the batch K.

Right: two charts of one embedding, o_i = W_i z + noise (without the noise I[o_1; o_2] would be infinite), each of fixed
power |W_i|^2 = d, trained by InfoNCE with and without the capacity term. All is Gaussian, so that the best critic
and the true information are known in closed form at every step (arXiv 2405.13848, Theorem 1).
"""

from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from manicap.diagnostics.information import infonce_bound
from manicap.losses.capacity import centroids
from manicap.losses.nuclear_norm import nuclear_norm

OUTPUT = Path(__file__).parent.parent / "images" / "information.svg"
DIMENSION, CORRELATION = 4, 0.9
CHART_DIMENSION, NOISE, CHART_BATCH, STEPS = 8, 0.5, 64, 400


def gaussian_bounds(batches: list[int], samples: int = 16_384) -> list[float]:
    """The InfoNCE bound at each batch size, with the critic log p(y|x) / p(y)."""
    rng = np.random.default_rng(0)
    variance = 1 - CORRELATION**2
    bounds = []
    for batch in batches:
        x = rng.standard_normal((samples // batch, batch, DIMENSION))
        y = CORRELATION * x + np.sqrt(variance) * rng.standard_normal(x.shape)
        distance = ((y[:, None] - CORRELATION * x[:, :, None]) ** 2).sum(-1)
        scores = (y**2).sum(-1)[:, None] / 2 - distance / (2 * variance)
        bounds.append(infonce_bound(scores).bound)
    return bounds


def train_charts(epsilon: float, seed: int = 0) -> tuple[list[float], list[float]]:
    """True information and InfoNCE bound of two charts at every step of training."""
    generator = torch.Generator().manual_seed(seed)
    D, B = CHART_DIMENSION, CHART_BATCH
    # Charts that begin alike and flat: most of their power in few directions.
    falling = torch.logspace(0, -2, D, dtype=torch.float64)
    shared_DD = torch.randn(D, D, generator=generator, dtype=torch.float64) * falling
    weights = [
        (shared_DD + 0.1 * torch.randn(D, D, generator=generator, dtype=torch.float64) * falling).requires_grad_()
        for _ in range(2)
    ]
    optimizer = torch.optim.Adam(weights, lr=1e-2)
    truths, bounds = [], []
    for _ in range(STEPS):
        w1_DD, w2_DD = (weight * (D**0.5 / weight.norm()) for weight in weights)
        z_BD = torch.randn(B, D, generator=generator, dtype=torch.float64)
        o1_BD, o2_BD = (
            z_BD @ w_DD.T + NOISE * torch.randn(B, D, generator=generator, dtype=torch.float64)
            for w_DD in (w1_DD, w2_DD)
        )
        information, scores_BB = gaussian_critic(w1_DD, w2_DD, o1_BD, o2_BD)
        loss = torch.nn.functional.cross_entropy(scores_BB, torch.arange(B))
        total = loss - epsilon * nuclear_norm(centroids(torch.stack([o1_BD, o2_BD], 1)))
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        truths.append(float(information))
        bounds.append(float(np.log(B) - loss.detach()))
    return truths, bounds


def gaussian_critic(w1_DD: Tensor, w2_DD: Tensor, o1_BD: Tensor, o2_BD: Tensor) -> tuple[Tensor, Tensor]:
    """I[o_1; o_2] = log(|S_1| |S_2| / |S|) / 2, and log p(o_1, o_2) / p(o_1) p(o_2) of all pairs of the batch."""
    D = len(w1_DD)
    noise_DD = NOISE**2 * torch.eye(D, dtype=w1_DD.dtype)
    s1, s2, cross = w1_DD @ w1_DD.T + noise_DD, w2_DD @ w2_DD.T + noise_DD, w1_DD @ w2_DD.T
    joint = torch.cat([torch.cat([s1, cross], 1), torch.cat([cross.T, s2], 1)])
    information = (torch.logdet(s1) + torch.logdet(s2) - torch.logdet(joint)) / 2
    inverse = torch.linalg.inv(joint)
    a, b = inverse[:D, :D] - torch.linalg.inv(s1), inverse[D:, D:] - torch.linalg.inv(s2)
    own1_B = torch.einsum("bd,de,be->b", o1_BD, a, o1_BD)
    own2_B = torch.einsum("bd,de,be->b", o2_BD, b, o2_BD)
    both_BB = o1_BD @ inverse[:D, D:] @ o2_BD.T
    return information.detach(), -(own1_B[:, None] + own2_B) / 2 - both_BB + information


def draw_gaussians(axes: Axes) -> None:
    batches = [2, 4, 8, 16, 32, 64, 128, 256, 512]
    truth = -DIMENSION / 2 * np.log(1 - CORRELATION**2)
    axes.axhline(truth, color="0.3", label=f"truth, {truth:.2f} nats")
    axes.plot(batches, np.log(batches), "--", color="tab:red", label="ceiling log K")
    axes.plot(batches, gaussian_bounds(batches), "o-", color="tab:blue", label="InfoNCE bound, best critic")
    axes.set(xscale="log", xlabel="batch K", ylabel="nats", title="Correlated Gaussians", ylim=(0, 6.5))
    axes.set_xticks(batches, map(str, batches))
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8)


def draw_charts(axes: Axes) -> None:
    for epsilon, color in ((0.0, "tab:blue"), (0.01, "tab:orange"), (0.1, "tab:green")):
        runs = [train_charts(epsilon, seed) for seed in range(3)]
        truth, bound = (np.mean([run[i] for run in runs], axis=0) for i in (0, 1))
        smooth = np.convolve(bound, np.ones(20) / 20, "valid")
        axes.plot(truth, color=color, label=f"truth, epsilon {epsilon:g}")
        axes.plot(np.arange(len(smooth)) + 10, smooth, ":", color=color, label=f"bound, epsilon {epsilon:g}")
        print(f"epsilon {epsilon:g}: truth {truth[0]:.2f} -> {truth[-1]:.2f}, bound {smooth[-1]:.2f} nats (3 seeds)")
    axes.axhline(np.log(CHART_BATCH), ls="--", color="tab:red", label=f"ceiling log {CHART_BATCH}")
    axes.set(xlabel="step", ylabel="nats", title="Two charts of one embedding", ylim=(1.7, 5.6))
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")


def main() -> None:
    torch.set_num_threads(1)
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_gaussians(left)
    draw_charts(right)
    with matplotlib.rc_context({"svg.hashsalt": "manicap", "svg.fonttype": "none"}):
        figure.savefig(OUTPUT, metadata={"Date": None})
    print(f"drawn: {OUTPUT}")


if __name__ == "__main__":
    main()
