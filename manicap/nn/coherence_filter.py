"""A last linear layer that amplifies what consecutive frames have in common: slow feature analysis, variance kept.

A probe with few labels reads directions of large variance first. After training, the state is linear in the features
but has little of their variance: most of it does not persist from one frame to the next. Persistent directions can be
found without labels (slow feature analysis; Wiskott and Sejnowski 2002, Neural Computation 14, 715).
"""

import torch
from torch import Tensor, nn

NUM_DIRECTIONS = 256
"""Directions that are amplified; the others have hardly anything in common from one frame to the next."""
POWER = 8
"""Exponent of the autocorrelation: 0.9 counts 0.43, 0.5 counts 0.004."""
FLOOR = 0.3
"""Weight that every direction keeps, so that a probe with many labels loses little. It is not saved with encoders: a
new value would change all of them."""
SHRINKAGE = 0.01
"""Added to all variances, as a share of their mean: in directions with less, autocorrelations are noise."""
LEAST_DEVIATION = 0.3
"""Features are divided by their deviation, or by this share of the median deviation if that is larger."""


class CoherenceFilter(nn.Module):
    """Features `[B, F]` -> features `[B, F]`, each direction weighted by its autocorrelation.

        z     = (f - mean) * scale                                  standardised features
        C     = E z z^T + s tr(E z z^T) / F                         over frames, s = SHRINKAGE
        C'    = E (z_t z_{t+1}^T + z_{t+1} z_t^T) / 2               over consecutive frames
        C' a_k = rho_k C a_k,   a_j^T C a_k = [j = k]               autocorrelations rho, largest first
        out   = FLOOR z + sum over k of rho_k^POWER (a_k . z) C a_k

    If all rho were 1, out would be (1 + FLOOR) z: directions keep their variance, times their weight. Before `fit`,
    the filter is FLOOR times the identity.
    """

    mean: Tensor
    scale: Tensor
    reading: Tensor
    """a_k, [F, K]"""
    writing: Tensor
    """rho_k^POWER C a_k, [K, F]"""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        num_directions = min(NUM_DIRECTIONS, num_features)
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("scale", torch.ones(num_features))
        self.register_buffer("reading", torch.zeros(num_features, num_directions))
        self.register_buffer("writing", torch.zeros(num_directions, num_features))

    def forward(self, features_BF: Tensor) -> Tensor:
        z_BF = (features_BF - self.mean) * self.scale
        return torch.addmm(z_BF, z_BF @ self.reading, self.writing, beta=FLOOR)

    def fit(self, features_BF: Tensor, next_BF: Tensor) -> Tensor:
        """Set the buffers from the features of frames and of the next frames.

        Returns the autocorrelations of the directions that are kept, largest first.
        """
        if features_BF.shape != next_BF.shape or not len(features_BF):
            raise ValueError(
                "a coherence filter needs the features of at least one frame and of the next, "
                f"got {list(features_BF.shape)} and {list(next_BF.shape)}"
            )
        both_BF = torch.cat([features_BF, next_BF])
        mean_F = both_BF.mean(0, dtype=torch.float64)
        scale_F = _scale(both_BF.std(0, correction=0).double())
        self.mean.copy_(mean_F)
        self.scale.copy_(scale_F)
        z_BF = (both_BF - self.mean.to(both_BF)) * self.scale.to(both_BF)
        # With fewer frames than features, all that varies lies in the span of the frames: R directions instead of F.
        basis_FR = torch.linalg.qr(z_BF.mT)[0] if len(z_BF) < z_BF.shape[1] else None
        x_BR = z_BF if basis_FR is None else z_BF @ basis_FR
        now_BR, after_BR = x_BR.chunk(2)
        covariance_RR = (x_BR.mT @ x_BR).double().cpu() / len(x_BR)
        lagged_RR = (now_BR.mT @ after_BR).double().cpu() / len(now_BR)
        shrinkage = SHRINKAGE * covariance_RR.trace() / z_BF.shape[1]
        covariance_RR.diagonal().add_(shrinkage if shrinkage > 0 else 1)
        rho_R, a_RR = _generalized_eigh((lagged_RR + lagged_RR.mT) / 2, covariance_RR)
        rho_K, a_RK = rho_R[: len(self.writing)].clamp(0, 1), a_RR[:, : len(self.writing)]
        reading, writing = a_RK, covariance_RR @ a_RK * rho_K**POWER
        if basis_FR is not None:
            reading, writing = (basis_FR.double().cpu() @ each for each in (reading, writing))
        self.reading.zero_()[:, : len(rho_K)] = reading
        self.writing.zero_()[: len(rho_K)] = writing.mT
        return rho_K


def _scale(deviation_F: Tensor) -> Tensor:
    """1 / deviation, limited by the median of those that vary; 0 for a feature that does not."""
    varies_F = deviation_F > 0
    if not varies_F.any():
        return torch.zeros_like(deviation_F)
    floor = LEAST_DEVIATION * deviation_F[varies_F].median()
    return torch.where(varies_F, 1 / torch.maximum(deviation_F, floor), 0)


def _generalized_eigh(matrix_RR: Tensor, metric_RR: Tensor) -> tuple[Tensor, Tensor]:
    """rho and a of  matrix a = rho metric a,  a^T metric a = 1,  the largest rho first."""
    root_RR = torch.linalg.cholesky(metric_RR)
    half_RR = torch.linalg.solve_triangular(root_RR, matrix_RR, upper=False)
    rho_R, vectors_RR = torch.linalg.eigh(torch.linalg.solve_triangular(root_RR, half_RR.mT, upper=False))
    return rho_R.flip(0), torch.linalg.solve_triangular(root_RR.mT, vectors_RR.flip(1), upper=True)
