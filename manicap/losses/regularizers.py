"""Every regularizer, by its command-line name. To add yours: one class, one line in REGULARIZERS, a section in
docs/regularizers.md."""

from manicap.core.registry import Registry
from manicap.losses.capacity import CapacityRegularizer
from manicap.losses.redundancy import BarlowRegularizer
from manicap.losses.regularizer import NoRegularizer, Regularizer
from manicap.losses.sigreg import SIGRegularizer
from manicap.losses.uniformity import UniformityRegularizer
from manicap.losses.variance import VICRegularizer

REGULARIZERS: Registry[type[Regularizer]] = Registry(
    "regularizer",
    Regularizer,
    {
        "capacity": CapacityRegularizer,
        "vicreg": VICRegularizer,
        "barlow": BarlowRegularizer,
        "sigreg": SIGRegularizer,
        "uniformity": UniformityRegularizer,
        "none": NoRegularizer,
    },
)
