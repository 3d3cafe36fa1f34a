"""Pure loss functions, one family a file. The capacity regularizer is meant for anyone's training loop:

from manicap.losses import CapacityRegularizer, nuclear_norm
"""

from manicap.losses.capacity import CapacityRegularizer, nuclear_norm

__all__ = ["CapacityRegularizer", "nuclear_norm"]
