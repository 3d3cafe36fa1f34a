"""Label curves of a grid's columns: the mean over its datasets, of the encoders and of the same networks untrained."""

from collections.abc import Sequence

import numpy as np

from manicap.bench.scores import RunScore
from manicap.report.grid_summary import Summary


def label_curves(part: Summary) -> dict[str, dict[str, dict[int, float]]]:
    """By column, then of its encoder and of the same network untrained: score by number of labels, averaged over
    seeds, then over datasets. Columns that were not run on all datasets are left out: they would not be comparable.
    """
    by_column = {}
    for column in part.grid.columns:
        by_dataset = [list(part.scores.get((d, column.label), {}).values()) for d in part.grid.datasets]
        if all(runs and all(run.labels for run in runs) for runs in by_dataset):
            by_column[column.label] = by_dataset
    everything = [run for by_dataset in by_column.values() for runs in by_dataset for run in runs]
    if not everything:
        return {}
    counts = sorted(set.intersection(*(set(curve) for run in everything for curve in run.labels.values())))
    return {
        label: {name: _mean_over_datasets(by_dataset, name, counts) for name in everything[0].labels}
        for label, by_dataset in by_column.items()
    }


def _mean_over_datasets(by_dataset: Sequence[Sequence[RunScore]], name: str, counts: Sequence[int]) -> dict[int, float]:
    return {
        count: float(np.mean([np.mean([run.labels[name][count] for run in runs]) for runs in by_dataset]))
        for count in counts
    }
