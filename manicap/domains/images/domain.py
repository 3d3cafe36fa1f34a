"""Images as a domain: random views to learn from, classes to probe."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.algorithms.base import Method, MethodContext, PresetName
from manicap.core.config import to_dict
from manicap.core.errors import UserError
from manicap.diagnostics.runs import RunDiagnosis
from manicap.domains.base import Check, Domain, PaperSetting, Pictures, ProbeCost, Published
from manicap.domains.evaluation import Probed
from manicap.domains.images import costs
from manicap.domains.images.check import ImageCheck
from manicap.domains.images.config import ImageConfig, ImageProtocolName, image_preset
from manicap.domains.images.data import ImageData, open_split
from manicap.domains.images.diagnosis import ImageDiagnosisConfig, diagnose_images
from manicap.domains.images.evaluation import evaluate_any, evaluate_images, open_bench, require_labels
from manicap.domains.images.evaluation_config import ImageEvaluationConfig, ProbeName
from manicap.domains.published import IMAGE_SOURCE, published_image_scores
from manicap.images.selection import has_images, require_dataset
from manicap.probing.class_result import ClassEvaluation
from manicap.probing.encoders import FrameEncoder
from manicap.train.device import choose_device
from manicap.train.finished import FinishedRun

QUICK_PROBE: ProbeName = "knn"
"""Nothing is fitted."""


class ImageDomain(Domain[ImageConfig, ImageEvaluationConfig]):
    name: ClassVar[str] = "images"
    title: ClassVar[str] = "images"
    kinds = ("views",)
    subject_field: ClassVar[str] = "dataset"
    example_subject: ClassVar[str] = "cifar10"
    default_subject: ClassVar[str | None] = "cifar10"
    subjects_title: ClassVar[str] = "sets"
    default_method: ClassVar[str] = "barlow-twins-c+"
    metrics = ("labels_saved", "accuracy", "top5")
    shared_fields = ("protocol",)
    methods_down: ClassVar[bool] = True
    source: ClassVar[str] = IMAGE_SOURCE
    config_type = ImageConfig
    evaluation_type = ImageEvaluationConfig
    result_type = ClassEvaluation
    diagnosis_type = ImageDiagnosisConfig

    def find_subject(self, name: str) -> str:
        require_dataset(name)
        return name

    def subject_title(self, subject: str) -> str:
        return {"cifar10": "CIFAR10", "stl10": "STL10"}.get(subject) or super().subject_title(subject)

    def preset(self, name: PresetName, subject: str, method: str, chosen: Mapping[str, Any]) -> ImageConfig:
        protocol: ImageProtocolName = "tsai2021" if chosen.get("protocol") == "tsai2021" else "clean"
        return image_preset(name, subject, method, protocol)

    def preset_evaluation(self, name: PresetName) -> ImageEvaluationConfig:
        return ImageEvaluationConfig()

    def problems(self, config: ImageConfig, evaluation: ImageEvaluationConfig, data_dir: Path) -> list[str]:
        if evaluation.protocol == "tsai2021" and (config.protocol, config.weights) != ("tsai2021", "best"):
            return [
                "protocol tsai2021 probes the weights that scored best on the test images:"
                " train with protocol tsai2021 and weights 'best'"
            ]
        return []

    def prepare(
        self,
        config: ImageConfig,
        evaluations: Sequence[ImageEvaluationConfig],
        data_dir: Path,
        workers: int | None,
        quiet: bool,
    ) -> None:
        require_dataset(config.dataset)
        open_split(config, "pretrain", data_dir, quiet)
        for evaluation in evaluations:
            require_labels(open_bench(config, evaluation, data_dir, quiet))

    def open_training(self, config: ImageConfig, data_dir: Path, device: torch.device, rank: int) -> ImageData:
        return ImageData(config, open_split(config, "pretrain", data_dir), device, rank)

    def check(self, config: ImageConfig, data_dir: Path) -> Check:
        return ImageCheck(config, data_dir)

    def context(self, config: ImageConfig) -> MethodContext:
        side = config.view_recipe.output_size or costs.SIDES.get(config.dataset, costs.OTHER_SIDE)
        return MethodContext((3, side, side))

    def weights(self, config: ImageConfig, evaluation: ImageEvaluationConfig, kept: str) -> str:
        """The last weights under clean; under tsai2021 those that scored best on the test images during training."""
        if evaluation.protocol == "clean":
            return "last"
        if config.protocol != "tsai2021" or kept != "best":
            raise UserError(
                f"protocol tsai2021 probes the weights that scored best on the test images, which {config.run_name} did"
                " not keep; train with: manicap run --dataset DATASET --protocol tsai2021"
            )
        return "chosen"

    def evaluate(self, probed: Probed[ImageConfig, ImageEvaluationConfig], data_dir: Path) -> ClassEvaluation:
        config, evaluation = probed.config, probed.evaluation
        bench = replace(open_bench(config, evaluation, data_dir, probed.quiet), cache_dir=probed.cache_dir)
        device = choose_device()
        method, untrained = (each.to(device).method for each in (probed.encoder, probed.untrained))
        assert isinstance(method, Method)
        assert isinstance(untrained, Method)
        return evaluate_images(bench, method, probed.fingerprint, {"untrained": untrained})

    def diagnose(
        self, run: FinishedRun, config: ImageConfig, measured_on: ImageDiagnosisConfig, data_dir: Path, quiet: bool
    ) -> RunDiagnosis:
        return diagnose_images(run, config, measured_on, data_dir, quiet)

    def raw_frames(
        self, config: ImageConfig, evaluation: ImageEvaluationConfig, count: int, data_dir: Path, quiet: bool
    ) -> NDArray[np.uint8]:
        images = open_split(config, "train", data_dir, quiet).images
        return images[np.linspace(0, len(images) - 1, min(count, len(images))).astype(np.int64)]

    def compare_encoders(
        self,
        config: ImageConfig,
        evaluation: ImageEvaluationConfig,
        encoders: Mapping[str, Callable[[Any], Any]],
        data_dir: Path,
        quiet: bool,
    ) -> tuple[str, dict[str, dict[str, float]]]:
        bench = open_bench(config, replace(evaluation, probe=QUICK_PROBE, protocol="clean"), data_dir, quiet)
        bench = replace(bench, neighbors=replace(bench.neighbors, k=min(bench.neighbors.k, len(bench.train))))
        (first, encoder), *others = ((name, FrameEncoder(each)) for name, each in encoders.items())
        found = evaluate_any(bench, encoder, dict(others))
        return QUICK_PROBE, {first: found.metrics, **{name: found.floors[name].metrics for name, _ in others}}

    def pictures(self, config: ImageConfig, data_dir: Path) -> Pictures | None:
        if not has_images(config.dataset, data_dir):
            return None
        train, test = (open_split(config, split, data_dir) for split in ("train", "test"))
        return Pictures(train.images, test.images, test.class_names, f"{train.fingerprint}-{test.fingerprint}")

    def training_fingerprint(self, config: ImageConfig, data_dir: Path) -> str | None:
        if not has_images(config.dataset, data_dir):
            return None
        return open_split(config, "pretrain", data_dir).fingerprint

    def probing_fingerprint(self, config: ImageConfig, evaluation: ImageEvaluationConfig, data_dir: Path) -> str | None:
        if not has_images(config.dataset, data_dir):
            return None
        return "-".join(open_split(config, split, data_dir).fingerprint for split in ("train", "test"))

    def paper_setting(self, subject: str, method: str) -> PaperSetting | None:
        if method not in {entry.method for entry in self.published(subject)}:
            return None
        trained = image_preset("paper", subject, method, "tsai2021")
        return PaperSetting(trained, ImageEvaluationConfig(protocol="tsai2021"), None)

    def published(self, subject: str) -> list[Published]:
        return published_image_scores(subject)

    def run_values(self, config: ImageConfig) -> dict[str, Any]:
        """A number equal to the size of the dataset means all images."""
        values = to_dict(config)
        if values.get("num_images", 0) >= costs.NUM_IMAGES.get(config.dataset, (10**12,))[0]:
            del values["num_images"]
        return values

    def evaluation_values(
        self, evaluation: ImageEvaluationConfig, paper: ImageEvaluationConfig, config: ImageConfig
    ) -> dict[str, Any]:
        return {**to_dict(evaluation), "probe_features": "augmented" if evaluation.is_augmented else "cached"}

    def samples_per_epoch(self, config: ImageConfig, data_dir: Path) -> int:
        return costs.images_per_epoch(config)

    def probe_cost(self, config: ImageConfig, evaluation: ImageEvaluationConfig) -> ProbeCost:
        features = f"{evaluation.probe_input} {evaluation.is_augmented and evaluation.probe == 'linear'}"
        encoded = costs.encoded_images(config, evaluation)
        return ProbeCost(encoded, features, partial(costs.probe_seconds, config, evaluation))
