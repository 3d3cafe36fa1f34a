"""What an equal share of the loss is in gradient: the table of docs/regularizers.md.

    python docs/scripts/gradient_shares.py runs/pong-dim-c+-s0-... data

Puts every regularizer at 2 % of the rest of the loss of a finished run's method, as it was initialised and after its
last step, and prints the norm of its gradient on the encoder over that of the rest, on four batches of the training
split.
"""

import sys
from pathlib import Path
from statistics import mean

from manicap.algorithms.base import Batch, Method
from manicap.diagnostics.training import regularizer_shares
from manicap.losses import REGULARIZERS
from manicap.train.distributed import Processes
from manicap.train.finished import FinishedRun
from manicap.train.setup import Execution, prepare

RATIO, BATCHES = 0.02, 4


def shares(method: Method, name: str, batches: list[Batch]) -> list[float]:
    """In evaluation mode and before any step, the weight is that of each batch itself."""
    method.regularizer = REGULARIZERS[name](target_ratio=RATIO)
    method.eval()
    return [regularizer_shares(method, batch)["regularizer_gradient_share"] for batch in batches]


def main(run_dir: Path, data_dir: Path) -> None:
    run = FinishedRun(run_dir)
    setup = prepare(run.config, Execution(threads=1, quiet=True), data_dir, Processes())
    rows = [found for _, found in zip(range(BATCHES), setup.train_batches.epoch(0), strict=False)]
    batches = [setup.data.batch(each, "train", number) for number, each in enumerate(rows)]
    trained = run.trained_method()
    assert trained is not None, "training.safetensors was removed"
    methods = {"untrained": setup.method, f"after {run.training.steps} steps": trained.requires_grad_(True)}
    print("| regularizer | " + " | ".join(methods) + " |\n" + "|---" * (1 + len(methods)) + "|")
    for name in REGULARIZERS:
        if name != "none":
            found = [shares(method, name, batches) for method in methods.values()]
            cells = [f"{mean(each):.2g} ({min(each):.2g} to {max(each):.2g})" for each in found]
            print("| " + " | ".join([name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
