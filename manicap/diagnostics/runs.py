"""Shared by all diagnoses of finished runs: the file, the heads, and pairs of samples."""

import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.algorithms.base import Method
from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.results import read_result, write_result
from manicap.diagnostics.alarm import collapse_alarms
from manicap.diagnostics.groups import GroupCapacity
from manicap.diagnostics.heads import head_cka, head_cosine
from manicap.diagnostics.membership import chart_usage
from manicap.diagnostics.summary import measure_heads, measure_membership
from manicap.diagnostics.training import heads_of
from manicap.diagnostics.trend import FEWEST_SIZES
from manicap.domains.base import find_domain
from manicap.nn.heads import Membership
from manicap.train.finished import FinishedRun

BATCH = 64
"""Number of candidates in the InfoNCE bound."""


@dataclass(frozen=True)
class HeadFindings:
    """Similarity of heads and usage of charts."""

    measures: dict[str, float] = field(default_factory=dict)
    matrices: dict[str, Any] = field(default_factory=dict)
    """`head_cka`, `head_cosine`, `chart_usage`; empty if the run has no heads."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RunDiagnosis:
    """`diagnostics.json`: what was measured, on what, and the resulting alarms."""

    domain: str
    subject: str
    method: str
    seed: int
    encoder: str
    width: int
    config: Any
    """What it was measured on: the domain's `diagnosis_type`."""
    measures: dict[str, float]
    capacities: dict[str, GroupCapacity]
    heads: HeadFindings

    @property
    def alarms(self) -> list[str]:
        return collapse_alarms(self.measures)

    @property
    def notes(self) -> list[str]:
        return [*self.heads.notes, *self.trend_notes]

    @property
    def trend_notes(self) -> list[str]:
        """Which variables' capacity still falls with the number of points, or has too few points to tell."""
        trends = {name: found.trend for name, found in self.capacities.items() if not found.trend.has_flattened}
        few = [name for name, trend in trends.items() if len(trend.points) < FEWEST_SIZES]
        falling = [name for name in trends if name not in few]
        notes = []
        if falling:
            notes.append(
                f"WARNING: the capacity of {', '.join(falling)} has not flattened with the number of points: it is that"
                " of these points, not of all; compare it only at equal numbers of points, or raise --points"
            )
        if few:
            notes.append(f"WARNING: too few points for a trend of {', '.join(few)}: their capacity is too high")
        return notes

    def write(self, path: Path) -> None:
        write_result(path, self.to_dict())

    @classmethod
    def read(cls, path: Path) -> Self:
        values = read_result(path)
        try:
            domain = find_domain(values["domain"])
            names = {each.name for each in fields(HeadFindings)}
            return cls(
                **{key: values[key] for key in ("domain", "subject", "method", "seed", "encoder", "width")},
                config=from_dict(domain.diagnosis_type, values["diagnosis_config"], str(path)),
                measures={name: math.nan if x is None else x for name, x in values["measures"].items()},
                capacities={
                    name: GroupCapacity.from_dict(found) for name, found in values["manifold_capacity"].items()
                },
                heads=HeadFindings(**{key: value for key, value in values["heads"].items() if key in names}),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is not a diagnosis of this version ({error!r}); diagnose again") from None

    def to_dict(self) -> dict[str, Any]:
        """JSON has no NaN or infinity: such numbers become null."""
        return {
            "domain": self.domain,
            "subject": self.subject,
            "method": self.method,
            "seed": self.seed,
            "encoder": self.encoder,
            "width": self.width,
            "diagnosis_config": to_dict(self.config),
            "measures": {name: json_number(value) for name, value in self.measures.items()},
            "manifold_capacity": {name: found.to_dict() for name, found in self.capacities.items()},
            "heads": asdict(self.heads),
            "alarms": self.alarms,
        }


def window_pairs(groups: NDArray[Any], batch_size: int = BATCH) -> tuple[NDArray[Any], NDArray[Any]]:
    """Members (t, t+1) of all groups, ordered so that the pairs of a batch come from different groups."""
    usable = groups[: len(groups) // batch_size * batch_size, : groups.shape[1] // 2 * 2]
    first, second = (usable[:, offset::2].swapaxes(0, 1).reshape(-1, groups.shape[2]) for offset in (0, 1))
    return first, second


def measure_run_heads(run: FinishedRun, inputs_BCHW: torch.Tensor) -> HeadFindings:
    """Similarity of heads and usage of charts, if the run has kept them; otherwise a note that explains why not."""
    method, notes = _method_with_heads(run)
    if method is None:
        return HeadFindings(notes=notes)
    heads_module, membership = heads_of(method), getattr(method, "membership", None)
    assert heads_module is not None
    matrices: dict[str, Any] = {}
    with torch.inference_mode():
        features_BF = torch.cat([method.encoder(chunk).features_BF for chunk in inputs_BCHW.split(BATCH)])
        heads_BND = heads_module(features_BF).double().numpy()
        measures = measure_heads(heads_BND)
        if isinstance(membership, Membership):
            q_BN = membership(features_BF).double().numpy()
            measures |= measure_membership(q_BN)
            matrices["chart_usage"] = chart_usage(q_BN).tolist()
    matrices["head_cka"] = [[json_number(x) for x in row] for row in head_cka(heads_BND)]
    matrices["head_cosine"] = np.asarray(head_cosine(heads_BND)).tolist()
    return HeadFindings(measures, matrices, notes)


def _method_with_heads(run: FinishedRun) -> tuple[Method | None, list[str]]:
    encoder = run.encoder()
    if "heads" in encoder.method.inference_parts:
        return encoder.method, []
    if heads_of(run.empty_method()) is None:
        return None, [f"{run.config.method} has no set of heads to compare"]
    trained = run.trained_method()
    if trained is None:
        return None, ["the heads are not part of the encoder, and training.safetensors, which held them, was removed"]
    steps = run.training.steps
    return trained, [f"the heads are not part of the encoder: they are measured as they were after step {steps}"]


def json_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
