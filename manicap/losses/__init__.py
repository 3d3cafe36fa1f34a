"""Every loss, by name: pure functions, one family per file, usable in any training loop.

    from manicap.losses import CapacityRegularizer, infonce, nt_xent

A tensor's name ends in its axes: B batch, N heads, D units, P positions, C channels, T time or views.
"""

from manicap.losses.atlas import certainty, chart_error, imbalance, unbalance
from manicap.losses.capacity import CapacityRegularizer, centroids
from manicap.losses.contrastive import nt_xent
from manicap.losses.infonce import cpc_infonce, global_local_infonce, infonce, local_local_infonce
from manicap.losses.jsd import global_local_jsd, local_local_jsd
from manicap.losses.mmcr import mmcr
from manicap.losses.nuclear_norm import nuclear_norm
from manicap.losses.reconstruction import gaussian_kl, pixel_prediction, squared_error, unexplained
from manicap.losses.redundancy import BarlowRegularizer, barlow_twins
from manicap.losses.regression import negative_cosine, normalized_regression
from manicap.losses.regularizer import NoRegularizer, Regularizer
from manicap.losses.regularizers import REGULARIZERS
from manicap.losses.sigreg import SIGRegularizer, epps_pulley
from manicap.losses.tico import covariance_contrast
from manicap.losses.uniformity import UniformityRegularizer, uniformity
from manicap.losses.variance import VICRegularizer, covariance_penalty, invariance, variance_hinge

__all__ = [
    "REGULARIZERS",
    "BarlowRegularizer",
    "CapacityRegularizer",
    "NoRegularizer",
    "Regularizer",
    "SIGRegularizer",
    "UniformityRegularizer",
    "VICRegularizer",
    "barlow_twins",
    "centroids",
    "certainty",
    "chart_error",
    "covariance_contrast",
    "covariance_penalty",
    "cpc_infonce",
    "epps_pulley",
    "gaussian_kl",
    "global_local_infonce",
    "global_local_jsd",
    "imbalance",
    "infonce",
    "invariance",
    "local_local_infonce",
    "local_local_jsd",
    "mmcr",
    "negative_cosine",
    "normalized_regression",
    "nt_xent",
    "nuclear_norm",
    "pixel_prediction",
    "squared_error",
    "unbalance",
    "unexplained",
    "uniformity",
    "variance_hinge",
]
