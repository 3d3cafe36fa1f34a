"""JSD-ST-DIM: the ablation of ST-DIM with the Jensen-Shannon estimator in place of InfoNCE (arXiv 1906.08226)."""

from manicap.algorithms.base import Batch, LossOutput, encode_pair
from manicap.algorithms.st_dim import STDIM


class JSDSTDIM(STDIM):
    """ST-DIM with the softplus loss of arXiv 1808.06670, Eq 4, on each pair of vectors."""

    def loss(self, batch: Batch) -> LossOutput:
        now, y_next_BPC = encode_pair(self.encoder, batch.frames_BTCHW)
        return LossOutput(self.predictors.jsd(self.head(now.features_BF), now.local_BPC, y_next_BPC))
