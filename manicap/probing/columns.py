"""The joint weight matrix of all variables' classifiers: which rows belong to which variable and class.

A variable has 256 classes, of which a game shows only some. If the weights of all classes start at zero, the classes
that never occur in the training labels get the same gradient at every step and stay equal, so one row stands for all m
of them: with log m added to its logit the softmax is that of all 256, and the gradient of one of them is 1/m of the
row's probability. This is exact, and in Pong it leaves 613 of 6 x 256 rows.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.probing.metrics import Labels, num_classes

Unseen = Literal["merge", "keep", "drop"]
"""Classes absent from the training labels: one row for all of them, a row each, or none."""


class ClassColumns:
    """Rows C of the weights, grouped by the V variables; K is the largest number of rows of a variable."""

    def __init__(
        self, classes: Sequence[NDArray[np.int64]], merged: Sequence[int], dtype: torch.dtype = torch.uint8
    ) -> None:
        self.classes = list(classes)
        """The class of each row, per variable; the merged row has the lowest class that it stands for."""
        self.merged = list(merged)
        """How many classes the last row of a variable stands for; 1 where none are merged."""
        sizes = [len(found) for found in self.classes]
        self.num_variables, self.num_rows, K = len(sizes), sum(sizes), max(sizes)
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self._positions_VK = torch.zeros(len(sizes), K, dtype=torch.int64)
        self._padding_VK = torch.full((len(sizes), K), -torch.inf)
        self._multiplicity_VK = torch.ones(len(sizes), K)
        self._classes_VK = torch.zeros(len(sizes), K, dtype=dtype)
        for v, (size, found, multiplicity) in enumerate(zip(sizes, self.classes, self.merged, strict=True)):
            self._positions_VK[v, :size] = torch.arange(self.starts[v], self.starts[v + 1])
            self._padding_VK[v, :size] = 0
            self._multiplicity_VK[v, size - 1] = multiplicity
            self._classes_VK[v, :size] = torch.from_numpy(found)
        self._used = (self._padding_VK == 0).flatten().nonzero().flatten()
        self._offsets_VK = self._padding_VK + self._multiplicity_VK.log()
        self._share_C = 1 / self._multiplicity_VK.flatten()[self._used]
        self.variable_of_row = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        """[C]"""

    @classmethod
    def from_labels(cls, labels: Labels, unseen: Unseen) -> "ClassColumns":
        classes, merged = [], []
        everything = np.arange(num_classes(labels))
        for column in labels.T:
            found = np.unique(column).astype(np.int64)
            missing = np.setdiff1d(everything, found)
            multiplicity = 1
            if unseen == "keep":
                found = everything
            elif unseen == "merge" and len(missing):
                found, multiplicity = np.append(found, missing[0]), len(missing)
            classes.append(found)
            merged.append(multiplicity)
        return cls(classes, merged, torch.from_numpy(labels[:0]).dtype)

    def rows(self, variable: int) -> slice:
        return slice(int(self.starts[variable]), int(self.starts[variable + 1]))

    def row_indices(self, variables: Sequence[int]) -> Tensor:
        """The rows of some variables, in their order."""
        return torch.cat([torch.arange(*self.rows(v).indices(self.num_rows)) for v in variables])

    def select(self, variables: Sequence[int]) -> "ClassColumns":
        return ClassColumns(
            [self.classes[v] for v in variables], [self.merged[v] for v in variables], self._classes_VK.dtype
        )

    def targets(self, labels: Labels) -> Tensor:
        """Training labels [n, V] as positions among each variable's rows."""
        places = np.zeros((self.num_variables, 1 + max(int(found.max()) for found in self.classes)), np.int64)
        for v, found in enumerate(self.classes):
            places[v, found] = np.arange(len(found))
        return torch.from_numpy(places[np.arange(self.num_variables), labels])

    def loss_and_residual(
        self, logits_BC: Tensor, targets_BV: Tensor, weights_BV: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Summed cross-entropy per variable [V], and its derivative by the logit of each class of a row.

        Frames may have weights, other ones for each variable.
        """
        log_p_BVK = self._spread(logits_BC, self._offsets_VK).log_softmax(2)
        losses_BV = -log_p_BVK.gather(2, targets_BV[:, :, None])[:, :, 0]
        residual_BC = self._residual(log_p_BVK.exp_(), targets_BV)
        if weights_BV is None:
            return losses_BV.sum(0), residual_BC
        return (losses_BV * weights_BV).sum(0), residual_BC * weights_BV.index_select(1, self.variable_of_row)

    def residual(self, logits_BC: Tensor, targets_BV: Tensor) -> Tensor:
        """Only the derivative."""
        return self._residual(self._spread(logits_BC, self._offsets_VK).softmax(2), targets_BV)

    def predict(self, logits_BC: Tensor) -> Tensor:
        """The most likely class of each variable [B, V]; ties go to the first."""
        best_BV = self._spread(logits_BC, self._padding_VK).argmax(2)
        return self._classes_VK[torch.arange(self.num_variables), best_BV]

    def _residual(self, p_BVK: Tensor, targets_BV: Tensor) -> Tensor:
        """Probability minus the one-hot target, computed in place and gathered by row."""
        p_BVK.scatter_add_(2, targets_BV[:, :, None], -torch.ones(*targets_BV.shape, 1))
        return p_BVK.flatten(1).index_select(1, self._used) * self._share_C

    def _spread(self, logits_BC: Tensor, offsets_VK: Tensor) -> Tensor:
        """Logits by variable [B, V, K], so that one softmax serves variables with different numbers of classes."""
        return logits_BC.index_select(1, self._positions_VK.flatten()).view(-1, *offsets_VK.shape) + offsets_VK
