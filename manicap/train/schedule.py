"""The learning rate of each step: a function of the step, so that a resumed run needs no state for it.

constant    1
cosine      (1 + cos(pi s / S)) / 2      from 1 to 0 over the S steps that the budgets allow
warm-up     times (s + 1) / W            over the first W steps
"""

import math

from manicap.domains.run_config import ScheduleName


def rate_factor(schedule: ScheduleName, warmup_steps: int, step: int, max_steps: int) -> float:
    """What to multiply the learning rate with at a step, counted from 0."""
    factor = min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0
    if schedule == "cosine":
        factor *= (1 + math.cos(math.pi * step / max_steps)) / 2
    return factor
