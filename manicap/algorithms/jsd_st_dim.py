"""JSD-ST-DIM: the ablation of ST-DIM with the Jensen-Shannon estimator in place of InfoNCE (arXiv 1906.08226)."""

from manicap.algorithms.base import Batch, LossOutput
from manicap.algorithms.st_dim import STDIM


class JSDSTDIM(STDIM):
    """ST-DIM with the Jensen-Shannon estimator (arXiv 1808.06670, Eq 4) instead of InfoNCE."""

    def loss(self, batch: Batch) -> LossOutput:
        return self.loss_by(self.predictors.jsd, batch.frames_BTCHW)
