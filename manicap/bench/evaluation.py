"""Probing the encoder of a finished run; each way of probing is measured once and kept beside the run.

runs/<name>/results/<hash>.json    scores, and everything they depend on
runs/<name>/results/<hash>.npz     true and decoded labels of the test frames
runs/<name>/features/              cached features
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from manicap.atari.annotations import ANNOTATION_SETS
from manicap.atari.protocol import ProtocolName, find_protocol
from manicap.atari.store import StoreConfig
from manicap.bench.same_data import current_result, store_fingerprint
from manicap.core.config import check_config, config_hash, to_dict
from manicap.core.errors import UserError, unknown_choice
from manicap.core.paths import DATA_DIR
from manicap.core.ranges import PlaySteps, Width
from manicap.core.results import read_result, write_result
from manicap.evaluate.evaluation import evaluate
from manicap.evaluate.probes import ProbeInit
from manicap.methods.base import MethodContext, PresetName, ProbeInput
from manicap.train.config import read_config
from manicap.train.device import set_threads
from manicap.train.encoder_files import FrozenEncoder, load_encoder, read_description
from manicap.train.setup import build_method


@dataclass(frozen=True)
class EvaluationConfig:
    """How to probe an encoder."""

    probe_steps: PlaySteps = 50_000
    """Steps of play for the probe: 70 % of the lives train it, 10 % validate, 20 % test."""
    protocol: ProtocolName = "fixed"
    """fixed, or as the 2019 code behaves (reference), to compare with published numbers."""
    annotation_set: str = "corrected"
    """ari-2019 (behind the published tables), ari-2020 or corrected."""
    probe: Literal["linear", "logistic", "knn"] = "linear"
    """linear is the protocol's; logistic is converged; knn takes the nearest neighbours."""
    probe_input: ProbeInput = "output"
    """output is what the method's paper probes; backbone the convolution features, of one width for all methods."""
    width: Width | None = None
    """Project the features to this width by a random orthogonal map, to compare at equal widths."""
    probe_init: ProbeInit = "auto"
    """Weights that the linear probe starts from; auto: zero under fixed, uniform under reference, as the 2019 code."""
    probe_store: Literal["shared", "per seed"] = "shared"
    """Games that probes are trained and tested on: the same for all seeds, or others for each, as in the 2019 code."""

    @property
    def resolved_init(self) -> ProbeInit:
        """What the linear probe starts from."""
        return find_protocol(self.protocol).probe_init if self.probe_init == "auto" else self.probe_init

    def problems(self) -> list[str]:
        if self.annotation_set not in ANNOTATION_SETS:
            return [str(unknown_choice("annotation set", self.annotation_set, ANNOTATION_SETS))]
        return []

    def store_config(self, game: str, seed: int) -> StoreConfig:
        """The store of play that runs of a seed are probed on."""
        return StoreConfig(game, self.probe_steps, seed if self.probe_store == "per seed" else 0, "probe")


def preset_evaluation(name: PresetName) -> EvaluationConfig:
    return EvaluationConfig(probe_steps={"quick": 12_000, "standard": 30_000, "paper": 50_000}[name])


def evaluate_run(
    run_dir: Path,
    config: EvaluationConfig,
    data_dir: Path = DATA_DIR,
    threads: int | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """The result of probing a finished run so; read if it was measured before, measured otherwise.

    The floors are the commonest value of each variable, and the same network as it was initialised, probed alike.
    """
    check_config(config)
    encoder = load_encoder(run_dir, config.probe_input)
    path = result_path(run_dir, config)
    pretrain_config = read_config(run_dir / "config.toml")
    probe_store = config.store_config(pretrain_config.game, pretrain_config.seed)
    known = current_result(path, encoder.fingerprint, lambda: store_fingerprint(probe_store, data_dir))
    if known is not None:
        return known
    set_threads(threads)
    evaluation = evaluate(
        encoder,
        pretrain_config.game,
        protocol=config.protocol,
        annotation_set=config.annotation_set,
        steps=config.probe_steps,
        seed=pretrain_config.seed,
        store_seed=config.store_config(pretrain_config.game, pretrain_config.seed).seed,
        probe=config.probe,
        probe_init=config.probe_init,
        width=config.width,
        arrays="torch",
        floors={"majority": "majority", "untrained": _untrained(run_dir, config.probe_input)},
        data_dir=data_dir,
        cache_dir=run_dir / "features",
        fingerprint=encoder.fingerprint,
        quiet=quiet,
    )
    training = read_description(run_dir)
    result = {
        "game": pretrain_config.game,
        "method": pretrain_config.method,
        "seed": pretrain_config.seed,
        "encoder": encoder.fingerprint,
        "evaluation_config": to_dict(config),
        "pretrain_config": to_dict(pretrain_config),
        "training": training_facts(training),
        "evaluation": evaluation.to_dict(),
        "versions": {name: version(name) for name in ("manicap", "torch", "numpy", "ale-py")},
    }
    assert evaluation.predictions is not None
    result["predictions_sha256"] = evaluation.predictions.save(path.with_suffix(".npz"))
    write_result(path, result)
    return read_result(path)


def training_facts(description: Mapping[str, Any]) -> dict[str, Any]:
    """What a result tells of the training, from `encoder.json`."""
    facts = {key: description[key] for key in ("steps", "epochs", "best_epoch", "weights")}
    return facts | {"precision": str(description["identity"]["precision"]).removeprefix("torch.")}


def result_path(run_dir: Path, config: Any) -> Path:
    """Where the result of one way of probing is kept."""
    return run_dir / "results" / f"{config_hash(config)}.json"


def _untrained(run_dir: Path, probe_input: ProbeInput) -> FrozenEncoder:
    """The run's own network with its initial weights."""
    config = read_config(run_dir / "config.toml")
    method = build_method(config, MethodContext(num_variables=1))
    return FrozenEncoder(method, probe_input, f"untrained-{config_hash(config)}-{probe_input}")


def require_runs(run_dirs: tuple[Path, ...]) -> None:
    """Every directory must hold a finished run; the error names all that do not."""
    missing = [str(path) for path in run_dirs if not (path / "encoder.json").is_file()]
    if missing:
        raise UserError(f"not a finished run: {', '.join(missing)}")
