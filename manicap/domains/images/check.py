"""Checks of a method while it trains on images: nearest neighbours and a short linear probe of its features."""

from dataclasses import replace
from pathlib import Path

from manicap.algorithms.base import Method
from manicap.core.seeding import numpy_generator
from manicap.domains.images.config import ImageConfig
from manicap.domains.images.data import open_split
from manicap.domains.images.evaluation import PROTOCOLS, ImageBench, accuracy
from manicap.domains.images.evaluation_config import ProbeName
from manicap.images import hold_out
from manicap.probing.classes import LinearProbeConfig
from manicap.probing.votes import NeighborsConfig

HELD_OUT_FRACTION = 0.1
PROBE_EPOCHS = 20
PROBES: tuple[ProbeName, ...] = ("knn", "linear")


class ImageCheck:
    """Every `check_every` epochs, the accuracies on images whose labels the check may see.

    clean: classifies a held-out tenth of the training images by their neighbours among the others. tsai2021: classifies
    the test images by all training images, as the 2021 code does to choose its weights.
    """

    def __init__(self, config: ImageConfig, data_dir: Path) -> None:
        self.config, self.data_dir = config, data_dir
        self.bench: ImageBench | None = None

    def __call__(self, method: Method, epoch: int) -> dict[str, float]:
        if not self.config.check_every or (epoch + 1) % self.config.check_every:
            return {}
        bench = self.bench = self.bench or self._open()
        encoded = bench.encode(method)
        accuracies: dict[str, float] = {name: accuracy(replace(bench, probe=name), encoded) for name in PROBES}
        return {"error": 1 - accuracies["knn"], **accuracies}

    def _open(self) -> ImageBench:
        train = open_split(self.config, "train", self.data_dir)
        if self.config.protocol == "tsai2021":
            rest, asked = train, open_split(self.config, "test", self.data_dir)
        else:
            rest, asked = hold_out(train, HELD_OUT_FRACTION, numpy_generator(0, "held-out images"))
        return ImageBench(
            train=rest,
            test=asked,
            recipe=self.config.view_recipe,
            protocol=PROTOCOLS["clean"],  # on features: fast, and leaves the method unchanged
            linear=LinearProbeConfig(epochs=PROBE_EPOCHS),
            neighbors=NeighborsConfig(k=min(NeighborsConfig.k, len(rest))),
        )
