"""Probing the encoder of a finished run on images; each way of probing is measured once and kept beside the run.

runs/<name>/results/<hash>.json    scores, and everything they depend on
runs/<name>/results/<hash>.npz     first choices for the test images, and the neighbours of some
runs/<name>/features/              features, while there are probes to come
"""

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from manicap.bench.evaluation import result_path, training_facts
from manicap.bench.same_data import current_result, probe_images_fingerprint
from manicap.core.config import check_config, to_dict
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.core.ranges import Count, VoteTemperature
from manicap.core.results import read_result, write_result
from manicap.evaluate.image_evaluation import PROTOCOLS, ImageBench, ProbeName, evaluate_images
from manicap.evaluate.image_neighbors import NeighborsConfig
from manicap.evaluate.image_probe import LinearProbeConfig
from manicap.methods.base import ProbeInput
from manicap.train.config import read_run_config
from manicap.train.device import choose_device, set_threads
from manicap.train.encoder_files import WeightsName, load_encoder, read_description
from manicap.train.image_config import ImageConfig, ImageProtocolName
from manicap.train.image_data import image_context, open_split
from manicap.train.setup import build_method

NUM_IMAGES = {"cifar10": (50_000, 50_000, 10_000), "stl10": (105_000, 5_000, 8_000)}
"""To learn from, to train a probe on, to test."""


@dataclass(frozen=True)
class ImageEvaluationConfig:
    """How to probe an encoder of images. The defaults are Table 5 of arXiv 2405.13848."""

    protocol: ImageProtocolName = "clean"
    """clean: last weights, statistics frozen, nothing chosen by test images. tsai2021: as the 2021 code behaves."""
    probe: ProbeName = "linear"
    """linear: one layer, trained. knn: weighted votes of the nearest training images."""
    probe_input: ProbeInput = "output"
    """output is what the method's paper probes; backbone the pooled features. The same for most methods on images."""
    probe_epochs: Count = 200
    """Epochs of the linear probe."""
    probe_batch_size: Count = 512
    """Images a step of the linear probe."""
    probe_features: Literal["auto", "cached", "augmented"] = "auto"
    """Features computed once, or of new views in every epoch; auto is the protocol's: cached for clean."""
    neighbors: Count = 200
    """Nearest training images that vote (knn)."""
    neighbor_temperature: VoteTemperature = 0.5
    """By which similarities are divided before the exponential (knn)."""

    @property
    def is_augmented(self) -> bool:
        """Whether the linear probe trains on new views in every epoch."""
        return self.protocol == "tsai2021" if self.probe_features == "auto" else self.probe_features == "augmented"


def read_image_config(run_dir: Path) -> ImageConfig:
    config = read_run_config(run_dir / "config.toml")
    if not isinstance(config, ImageConfig):
        raise UserError(f"{run_dir} is a run on the Atari game {config.subject}, not on images")
    return config


def evaluate_image_run(
    run_dir: Path,
    config: ImageEvaluationConfig,
    data_dir: Path = DATA_DIR,
    threads: int | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """The result of probing a finished run so; read if it was measured before, measured otherwise.

    The floors are the commonest class, and the same network as it was initialised, probed alike.
    """
    check_config(config)
    run_config = read_image_config(run_dir)
    encoder = load_encoder(run_dir, config.probe_input, chosen_weights(run_dir, run_config, config))
    path = result_path(run_dir, config)
    known = current_result(path, encoder.fingerprint, lambda: probe_images_fingerprint(run_config, data_dir))
    if known is not None:
        return known
    set_threads(threads)
    bench = replace(open_bench(run_config, config, data_dir, quiet), cache_dir=run_dir / "features")
    device = choose_device()
    untrained = build_method(run_config, image_context(bench.train, bench.recipe)).to(device)
    evaluation = evaluate_images(bench, encoder.to(device).method, encoder.fingerprint, {"untrained": untrained})
    result = {
        "dataset": run_config.subject,
        "method": run_config.method,
        "seed": run_config.seed,
        "encoder": encoder.fingerprint,
        "evaluation_config": to_dict(config),
        "pretrain_config": to_dict(run_config),
        "training": training_facts(read_description(run_dir)),
        "evaluation": evaluation.to_dict(),
        "versions": {name: version(name) for name in ("manicap", "torch", "numpy")},
    }
    assert evaluation.predictions is not None
    result["predictions_sha256"] = evaluation.predictions.save(path.with_suffix(".npz"))
    write_result(path, result)
    return read_result(path)


def chosen_weights(run_dir: Path, run_config: ImageConfig, config: ImageEvaluationConfig) -> WeightsName:
    """The last weights under clean; under tsai2021 those that scored best on the test images while training."""
    if config.protocol == "clean":
        return "last"
    if run_config.protocol != "tsai2021" or read_description(run_dir)["weights"] != "best":
        raise UserError(
            f"protocol tsai2021 probes the weights that scored best on the test images, which {run_dir} did not keep;"
            " train it so: manicap images --protocol tsai2021"
        )
    return "chosen"


def open_bench(run_config: ImageConfig, config: ImageEvaluationConfig, data_dir: Path, quiet: bool) -> ImageBench:
    protocol = PROTOCOLS[config.protocol]
    if config.probe_features != "auto":
        augmented = config.probe_features == "augmented"
        protocol = replace(protocol, augmented=augmented, moving_statistics=protocol.moving_statistics and augmented)
    return ImageBench(
        train=open_split(run_config, "train", data_dir, quiet),
        test=open_split(run_config, "test", data_dir, quiet),
        recipe=run_config.view_recipe,
        protocol=protocol,
        probe=config.probe,
        probe_input=config.probe_input,
        linear=LinearProbeConfig(config.probe_batch_size, config.probe_epochs),
        neighbors=NeighborsConfig(config.neighbors, config.neighbor_temperature),
        seed=run_config.seed,
        quiet=quiet,
        name=run_config.subject,
    )
