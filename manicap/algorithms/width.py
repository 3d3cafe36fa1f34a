"""How many features a method's probe sees, found without its weights."""

from functools import cache

import torch

from manicap.algorithms import find_method
from manicap.algorithms.base import MethodContext, ProbeInput, Settings


@cache
def feature_width(method: str, settings: Settings, probe_input: ProbeInput, context: MethodContext) -> int:
    """Computes shapes only."""
    with torch.device("meta"):
        built = find_method(method)(settings, context).eval()
        frames = torch.zeros((1, *context.input_shape), dtype=torch.uint8)
        return int(built.represent(frames, probe_input).shape[1])
