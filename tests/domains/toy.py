"""The smallest domain: 20 gray pictures with two labels. What a new domain needs is in this file and nowhere else."""

from dataclasses import dataclass

import numpy as np
import torch

from manicap.algorithms import find_method
from manicap.algorithms.base import Batch, MethodContext
from manicap.core.seeding import numpy_generator, stream_seed
from manicap.diagnostics.runs import HeadFindings, RunDiagnosis
from manicap.diagnostics.summary import measure_features
from manicap.domains.base import Domain, ProbeCost
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.run_config import RunConfig, Subject
from manicap.domains.samples import EachOnce
from manicap.probing.class_result import ClassEvaluation, ClassPredictions, score_classes
from manicap.train.device import noise_generator

NAME = "tests.domains.toy:Toy"
SIDE = 16
LABELS = np.arange(20) % 2
"""0: dark on the left; 1: dark on the right."""


def pictures():
    """uint8 [20, 1, 16, 16]"""
    noise = numpy_generator(0, "toy").integers(0, 40, (20, 1, SIDE, SIDE))
    noise[LABELS == 0, :, :, : SIDE // 2] += 150
    noise[LABELS == 1, :, :, SIDE // 2 :] += 150
    return noise.astype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class Shades(Subject):
    shade: str = "gray"
    """The only one there is."""


@dataclass(frozen=True, kw_only=True)
class ToyConfig(RunConfig, Shades):
    domain: str = NAME
    method: str = "simclr"
    batch_size: int = 10
    learning_rate: float = 1e-3
    adam_epsilon: float = 1e-8
    max_epochs: int = 3
    weights: str = "last"

    @property
    def subject(self):
        return self.shade


@dataclass(frozen=True)
class ToyEvaluationConfig(EvaluationConfig):
    nearest: int = 3
    """Pictures that vote."""


@dataclass(frozen=True)
class ToyDiagnosisConfig:
    probe_input: str = "output"


class ToyData:
    def __init__(self, config, device, rank):
        self.config, self.device, self.rank = config, device, rank
        self.images, self.fingerprint = torch.from_numpy(pictures()), "20 gray pictures"
        self.context = MethodContext((1, SIDE, SIDE))

    def splits(self, frames_per_sample):
        self.num_views = frames_per_sample
        return {"train": EachOnce(20, "pictures")}

    def batch(self, rows, *stream):
        generator = torch.Generator().manual_seed(stream_seed(self.config.seed, "views", *stream))
        images = self.images[rows][:, None].expand(-1, self.num_views, -1, -1, -1) / 255
        views = images + 0.1 * torch.randn(images.shape, generator=generator)
        return Batch(views, None, noise_generator(self.config.seed, self.device, self.rank, *stream))


class Toy(Domain):
    name, title, kinds = NAME, "gray pictures", ("views",)
    subject_field, example_subject, default_subject, subjects_title = "shade", "gray", "gray", "shades"
    default_method, metrics = "simclr", ("accuracy",)
    config_type, evaluation_type, diagnosis_type = ToyConfig, ToyEvaluationConfig, ToyDiagnosisConfig
    result_type = ClassEvaluation

    def find_subject(self, name):
        return name

    def preset(self, name, subject, method, chosen):
        return ToyConfig(method=method, settings=find_method(method).settings_type.preset("quick"))

    def preset_evaluation(self, name):
        return ToyEvaluationConfig()

    def prepare(self, config, evaluations, data_dir, workers, quiet):
        pass

    def open_training(self, config, data_dir, device, rank):
        return ToyData(config, device, rank)

    def context(self, config):
        return MethodContext((1, SIDE, SIDE))

    def evaluate(self, probed, data_dir):
        """Each picture's label by its nearest others."""
        scores = {name: self._votes(net, probed.evaluation.nearest) for name, net in self._networks(probed).items()}
        measured = {name: score_classes(votes, LABELS, ("left", "right")) for name, votes in scores.items()}
        majority = score_classes(np.ones((20, 2)), LABELS, ("left", "right"))
        nobody = np.zeros((0, 1), np.int64)
        return ClassEvaluation(
            subject="gray",
            protocol="toy",
            probe="knn",
            probe_options={"k": probed.evaluation.nearest},
            width=probed.encoder.num_features,
            seed=probed.config.seed,
            store="20 gray pictures",
            encoder=probed.fingerprint,
            threads=torch.get_num_threads(),
            counts={"train": 20, "test": 20},
            scores=measured["encoder"],
            seconds={},
            floors={"majority": majority, "untrained": measured["untrained"]},
            predictions=ClassPredictions(LABELS, scores["encoder"].argmax(1), nobody[:, 0], nobody, nobody),
        )

    def _networks(self, probed):
        return {"encoder": probed.encoder, "untrained": probed.untrained}

    def _votes(self, network, nearest):
        features = torch.nn.functional.normalize(network(torch.from_numpy(pictures()).float() / 255), dim=1)
        alike = features @ features.T - 2 * torch.eye(20)  # a picture does not vote for itself
        return np.eye(2)[LABELS[alike.topk(nearest).indices.numpy()]].sum(1)

    def diagnose(self, run, run_config, config, data_dir, quiet):
        encoder = run.encoder(config.probe_input)
        features = encoder(torch.from_numpy(pictures()).float() / 255).numpy()
        return RunDiagnosis(
            domain=NAME,
            subject="gray",
            method=run_config.method,
            seed=run_config.seed,
            encoder=encoder.fingerprint,
            width=features.shape[1],
            config=config,
            measures=measure_features(features),
            capacities={},
            heads=HeadFindings(),
        )

    def training_fingerprint(self, config, data_dir):
        return "20 gray pictures"

    def probing_fingerprint(self, config, evaluation, data_dir):
        return "20 gray pictures"

    def samples_per_epoch(self, config, data_dir):
        return 20

    def probe_cost(self, config, evaluation):
        return ProbeCost(20, evaluation.probe_input, lambda width: 0.0)
