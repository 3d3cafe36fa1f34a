"""The protocol's linear probe: a classifier of 256 classes per variable, all variables in one matmul per batch.

    probes = LinearProbes(protocol=FIXED, seed=0).fit(train, val)
    probes.predict(test.features)                            # uint8 [n, V]

Each variable has its own early stopping, learning rate and best weights; one that has stopped leaves the matmul.

Deviations from one `nn.Linear` + Adam per variable, as in the 2019 code:
1. Under `fixed`, weights start at zero, not uniform in +-1/sqrt(F), because then two savings are exact: the classes
   absent from training share a row (see `columns`), and features that are 0 in all training frames, whose weights never
   move, are left out. A step takes a fifth of the time. The problem is convex, but early stopping is not: on equal
   features (Pong, 64 dimensions, 40 epochs) the 2019 code has mean F1 0.673, this probe 0.669 from uniform weights and
   0.659 from zero. `reference` therefore starts from uniform weights, with all rows and features.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.adam import adam

from manicap.core.config import check_config
from manicap.core.progress import Tracker
from manicap.core.ranges import Count, Fraction, NonNegative, Positive, Range
from manicap.core.seeding import numpy_generator
from manicap.play.protocol import FIXED, Protocol
from manicap.probing.columns import ClassColumns
from manicap.probing.metrics import Labels
from manicap.probing.sampling import ProbeData, scored_rows, training_batches
from manicap.probing.schedules import EarlyStopping, Plateau

PREDICT_ROWS = 4096
"""Rows at a time where no gradient is needed: bounds the memory of the logits."""
ALIGNMENT = 16
"""The joint matrices are padded to whole cache lines with zeros, which stay zero: the gradient's matmul then takes two
thirds of the time."""
ProbeInit = Literal["auto", "zero", "uniform"]


@dataclass(frozen=True)
class LinearConfig:
    """AtariARI's probe."""

    learning_rate: Positive = 3e-4
    batch_size: Count = 64
    max_epochs: Count = 100
    passes: Count = 1
    """Passes over the training frames per epoch. The protocol's 1 suits its 35,000 frames (547 batches); on a small
    store the accuracy may not exceed the most frequent class before the plateau has lowered the learning rate."""
    patience: Count = 15
    """Epochs without a new best validation accuracy after which a variable stops."""
    plateau_factor: Fraction = 0.2
    plateau_patience: Annotated[int, Range(0, 10**9)] = 5
    min_learning_rate: NonNegative = 1e-5
    adam_epsilon: NonNegative = 1e-5
    init: ProbeInit = "auto"
    """`auto`: zero under `fixed`, uniform (like `nn.Linear` and the 2019 code) under `reference`."""


class LinearProbes:
    """All variables' linear classifiers, trained by the protocol."""

    name = "linear"

    def __init__(
        self, config: LinearConfig | None = None, protocol: Protocol = FIXED, seed: int = 0, quiet: bool = True
    ) -> None:
        config = config or LinearConfig()
        check_config(config)
        self.config = replace(config, init=protocol.probe_init) if config.init == "auto" else config
        self.protocol, self.seed, self.quiet = protocol, seed, quiet

    def fit(self, train: ProbeData, val: ProbeData) -> Self:
        """Train until every variable has stopped.

        Sets `weights_` [C, F] of the features in `features_`, `bias_` [C] (rows as in `columns_`), and by variable
        `epochs_`, `val_accuracy_` (the best) and `learning_rates_` (the last).
        """
        exact_savings = self.config.init == "zero"
        self.features_ = _live_features(train.features) if exact_savings else np.arange(train.features.shape[1])
        self.columns_ = ClassColumns.from_labels(train.labels, "merge" if exact_savings else "keep")
        num_variables = train.labels.shape[1]
        self.epochs_ = np.zeros(num_variables, np.int64)
        self._weights = self._initial_weights()
        stopping = EarlyStopping(num_variables, self.config.patience)
        plateau = Plateau(
            num_variables,
            self.config.learning_rate,
            self.config.plateau_factor,
            self.config.plateau_patience,
            self.config.min_learning_rate,
        )
        run = _Training(self.columns_, self._weights.clone(), make_design(train.features, self.features_), train.labels)
        val_design = make_design(val.features, self.features_)
        with Tracker("probing", self.config.max_epochs, "epochs", self.quiet) as tracker:
            for epoch in range(self.config.max_epochs):
                for index in range(epoch * self.config.passes, (epoch + 1) * self.config.passes):
                    for batch in training_batches(train, self.protocol, self.config.batch_size, self.seed, index):
                        run.step(batch, plateau.learning_rates[run.active], self.config.adam_epsilon)
                self.epochs_[run.active] += 1
                accuracy = self._validate(run, val, val_design, epoch)
                improved = stopping.step(run.active, accuracy)
                plateau.step(run.active, accuracy)
                keep_last = self.protocol.probe_weights == "last"
                self._keep_weights(run, np.ones_like(improved) if keep_last else improved)
                run.drop(stopping.stopped[run.active])
                detail = f"{len(run.active)} of {num_variables} variables training"
                tracker.advance(detail=detail)
                if not len(run.active):
                    break
        self.val_accuracy_, self.learning_rates_ = stopping.best, plateau.learning_rates
        self.weights_, self.bias_ = self._weights[:, : len(self.features_)], self._weights[:, len(self.features_)]
        return self

    def predict(self, features: NDArray[np.float32]) -> Labels:
        """Decoded labels [n, V]."""
        starts = range(0, len(features), PREDICT_ROWS)
        designs = (make_design(features[start : start + PREDICT_ROWS], self.features_) for start in starts)
        return np.concatenate([_decode(self.columns_, self._weights, design) for design in designs])

    def _initial_weights(self) -> Tensor:
        """One column per feature, the bias, and the padding."""
        num_inputs = len(self.features_) + 1
        weights = torch.zeros(self.columns_.num_rows, _padded(num_inputs))
        if self.config.init == "uniform":
            bound = max(len(self.features_), 1) ** -0.5  # nn.Linear's
            drawn = numpy_generator(self.seed, "probe", "init").uniform(-bound, bound, (len(weights), num_inputs))
            weights[:, :num_inputs] = torch.from_numpy(drawn)
        return weights

    def _validate(self, run: "_Training", val: ProbeData, val_design: Tensor, epoch: int) -> NDArray[np.float64]:
        rows = scored_rows(val, self.protocol, self.config.batch_size, self.seed, "validation", epoch)
        correct = _decode(run.columns, run.weights, val_design) == val.labels[:, run.active]
        return correct[rows].mean(0)

    def _keep_weights(self, run: "_Training", chosen: NDArray[np.bool_]) -> None:
        for place in np.flatnonzero(chosen).tolist():
            self._weights[self.columns_.rows(run.active[place])] = run.weights[run.columns.rows(place)]


class _Training:
    """Weights and Adam moments [C, inputs] of the variables still training; their rows are adjacent."""

    def __init__(self, columns: ClassColumns, weights: Tensor, design: Tensor, labels: Labels) -> None:
        self.active = np.arange(columns.num_variables)
        """Which of the original variables the rows belong to."""
        self.columns, self.weights, self.design = columns, weights, design
        self.first_moments, self.second_moments = torch.zeros_like(weights), torch.zeros_like(weights)
        self.targets = columns.targets(labels)
        self._gradient = torch.empty_like(weights)
        self._steps_done = 0

    def step(self, batch: NDArray[np.int64], learning_rates: NDArray[np.float64], epsilon: float) -> None:
        """One step of Adam on the mean cross-entropy of a batch, each variable with its own learning rate.

        dL/dW = (softmax(x W^T) - onehot)^T x / B
        """
        rows = torch.from_numpy(batch)
        x = self.design.index_select(0, rows)
        residual = self.columns.residual(x @ self.weights.T, self.targets.index_select(0, rows))
        torch.mm(residual.T / len(batch), x, out=self._gradient)
        for rate in np.unique(learning_rates):  # at most four: 3e-4, 6e-5, 1.2e-5, 1e-5
            parts = [self.columns.rows(v) for v in np.flatnonzero(learning_rates == rate).tolist()]
            adam(
                [self.weights[part] for part in parts],
                [self._gradient[part] for part in parts],
                [self.first_moments[part] for part in parts],
                [self.second_moments[part] for part in parts],
                [],
                [torch.tensor(float(self._steps_done)) for _ in parts],
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=float(rate),
                weight_decay=0.0,
                eps=epsilon,
                maximize=False,
            )
        self._steps_done += 1

    def drop(self, stopped: NDArray[np.bool_]) -> None:
        """Drop the variables that have stopped, so that the matmul shrinks."""
        if not stopped.any():
            return
        kept = np.flatnonzero(~stopped).tolist()
        self.active = self.active[kept]
        if not kept:
            return
        rows = self.columns.row_indices(kept)
        self.weights, self.first_moments = self.weights[rows], self.first_moments[rows]
        self.second_moments, self.targets = self.second_moments[rows], self.targets[:, kept].contiguous()
        self._gradient = torch.empty_like(self.weights)
        self.columns = self.columns.select(kept)


def make_design(features: NDArray[np.float32], chosen: NDArray[np.int64]) -> Tensor:
    """The chosen features, a column of ones, which makes the bias one more weight, and the padding."""
    design = torch.zeros(len(features), _padded(len(chosen) + 1))
    for start in range(0, len(features), PREDICT_ROWS):
        piece = slice(start, start + PREDICT_ROWS)
        design[piece, : len(chosen)] = torch.from_numpy(features[piece][:, chosen])
    design[:, len(chosen)] = 1
    return design


def _padded(num_inputs: int) -> int:
    return -(-num_inputs // ALIGNMENT) * ALIGNMENT


def _live_features(features: NDArray[np.float32]) -> NDArray[np.int64]:
    """Features that are not 0 in every row."""
    live = np.zeros(features.shape[1], bool)
    for start in range(0, len(features), PREDICT_ROWS):
        live |= features[start : start + PREDICT_ROWS].any(0)
    return np.flatnonzero(live)


def _decode(columns: ClassColumns, weights: Tensor, design: Tensor) -> Labels:
    return np.concatenate([columns.predict(piece @ weights.T).numpy() for piece in design.split(PREDICT_ROWS)])
