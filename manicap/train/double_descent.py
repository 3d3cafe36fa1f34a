"""A warning where theory puts the peak of the pretraining error of a capacity term."""

from manicap.algorithms.base import Method
from manicap.algorithms.mmcr import MMCR
from manicap.domains.run_config import RunConfig
from manicap.losses.capacity import CapacityRegularizer


def capacity_warning(config: RunConfig, method: Method) -> str | None:
    """What to say if the batch is as large as the heads are wide, and the run maximises a capacity; otherwise None.

    The pretraining percentage error, (bound - norm) / bound, has a double descent with its peak at B = D (arXiv
    2406.09366), where B is the global batch and D the heads' width.
    """
    width = getattr(config.settings, "units", None)
    terms = [part for part in method.modules() if isinstance(part, CapacityRegularizer)]
    maximised = isinstance(method, MMCR) or any(term.epsilon != 0 for term in terms)
    if width != config.batch_size or not maximised:
        return None
    return (
        f"warning: the batch has as many samples as the heads have units ({width}), where the capacity's pretraining"
        " percentage error peaks (arXiv 2406.09366); change --batch-size or --units to leave the peak"
    )
