"""A finished run, opened: its config and its encoder's description, each read once."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from manicap.algorithms.base import Method, MethodContext
from manicap.core.config import config_hash
from manicap.core.errors import UserError
from manicap.domains.result import TrainingFacts
from manicap.domains.run_config import RunConfig
from manicap.pretrained.card import training_card
from manicap.pretrained.encoder import PretrainedEncoder
from manicap.pretrained.encoder_files import WeightsName, read_description, read_encoder, read_trained_method
from manicap.pretrained.network import described_context, empty_method, network_of
from manicap.train.config_file import read_run_config
from manicap.train.setup import build_method


class FinishedRun:
    """`run = FinishedRun(run_dir)`; `run.config`, `run.encoder("output")`, `run.untrained("output")`."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir

    @cached_property
    def config(self) -> RunConfig:
        return read_run_config(self.run_dir)

    @cached_property
    def description(self) -> dict[str, Any]:
        """`encoder.json`."""
        return read_description(self.run_dir)

    @property
    def training(self) -> TrainingFacts:
        """What a result records about the training."""
        facts = {key: self.description[key] for key in ("steps", "epochs", "best_epoch", "weights")}
        return TrainingFacts(**facts, precision=str(self.description["identity"]["precision"]).removeprefix("torch."))

    @property
    def context(self) -> MethodContext:
        """What the method knew about its data."""
        return described_context(self.description, f"{self.run_dir}/encoder.json")

    def encoder(self, layer: str = "output", weights: WeightsName = "chosen") -> PretrainedEncoder:
        """The encoder as `manicap.load` returns it, before its scores are known."""
        card = training_card(self.description, self.config)
        return read_encoder(self.run_dir, self.description, layer, weights, card)

    def untrained(self, layer: str = "output") -> PretrainedEncoder:
        """The run's own network with its initial weights; it sees frames as the trained one does."""
        method = build_method(self.config, self.context)
        method.coherence_filter = None  # fitted to samples, so part of the training
        method.encoder.see_as(self.encoder(layer).method.encoder)
        card = replace(training_card(self.description, self.config), steps=0, epochs=0, weights="initial")
        fingerprint = f"untrained-{config_hash(self.config)}-{layer}"
        return PretrainedEncoder(method, layer, fingerprint, card, network_of(self.description))

    def trained_method(self) -> Method | None:
        """The method after its last step, with its training parts; None if they were not saved."""
        return read_trained_method(self.run_dir, self.description)

    def empty_method(self) -> Method:
        """The method as shapes without weights."""
        return empty_method(self.description, f"{self.run_dir}/encoder.json")


def require_runs(run_dirs: tuple[Path, ...]) -> None:
    """Require every directory to hold a finished run; the error names all that do not."""
    missing = [str(path) for path in run_dirs if not (path / "encoder.json").is_file()]
    if missing:
        raise UserError(f"no finished run at {', '.join(missing)}")
