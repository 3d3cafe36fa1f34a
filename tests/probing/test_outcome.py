"""Floors are measured once for all runs of a grid."""

import numpy as np
import pytest
import torch
from torch import nn

from manicap.probing.encoders import FrameEncoder
from manicap.probing.outcome import KeptOutcomes, Outcome
from manicap.probing.play_bench import Extraction, PlayBench
from tests.probing.conftest import block_contrast


class Small(nn.Module):
    """An untrained network, which counts the frames that it has encoded, and whose layers are read."""

    def __init__(self, seed: int = 0, sign: float = 1.0) -> None:
        super().__init__()
        self.sign, self.encoded = sign, 0
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(40, 210 * 160 // 25, generator=generator) / 30)

    def forward(self, frames):
        self.encoded += len(frames)
        return self.layers(frames)["output"]

    def layers(self, frames):
        pixels = frames[:, 0, ::5, ::5].flatten(1).float() / 255
        return {"pixels": pixels, "output": self.sign * (pixels @ self.weight.T).relu()}


@pytest.fixture(scope="module")
def bench(probe_store):
    return PlayBench(probe_store)


@pytest.fixture(scope="module")
def measure(bench):
    def evaluate(network, directory, **extraction):
        floors = {"untrained": FrameEncoder(network.eval()), "pixels": "pixels"}
        encoder = FrameEncoder(block_contrast, arrays="numpy")
        how = Extraction(floors_dir=directory, quiet=True, **extraction)
        return bench.evaluate(encoder, "ridge", floors=floors, extraction=how)

    return evaluate


@pytest.fixture(scope="module")
def kept(measure, tmp_path_factory):
    """A directory with the outcomes of three floors, and the evaluation that left them there."""
    directory = tmp_path_factory.mktemp("floors")
    return directory, measure(Small(), directory)


def values(evaluation):
    return {name: value for name, value in evaluation.to_dict().items() if name != "seconds"}


def test_a_second_run_finds_what_the_first_measured(measure, kept):
    directory, first = kept
    files = sorted(directory.iterdir())
    assert len(files) == 2 * len(("untrained", "pixels, random", "pixels, principal"))
    network = Small()
    second = measure(network, directory)
    assert network.encoded == 16  # the frames that identify it
    assert sorted(directory.iterdir()) == files
    # The second reads from files what the first had in memory, and what a run without a directory finds.
    assert values(second) == values(first) == values(measure(Small(), None))


@pytest.mark.parametrize("other", [Small(seed=1), Small(sign=-1.0)])
def test_another_network_is_another_floor(measure, kept, other):
    directory, _ = kept
    measure(other, directory)
    assert other.encoded > 1000


def test_another_width_and_other_threads_are_other_conditions(measure, kept, monkeypatch):
    directory, first = kept
    assert measure(Small(), directory, width=20).floors["untrained"] != first.floors["untrained (40)"]
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads + 1)
    network = Small()
    measure(network, directory)
    assert network.encoded > 1000


@pytest.mark.parametrize("damage", [lambda content: content[:-40], lambda content: b"", lambda content: b"[]"])
@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_damaged_file_is_not_found(tmp_path, damage, suffix):
    kept, outcome = KeptOutcomes(tmp_path), Outcome(3, 4, np.arange(6).reshape(3, 2), np.ones((3, 2)))
    kept.keep(("key",), outcome)
    found = kept.find(("key",))
    np.testing.assert_array_equal(found.decoded, outcome.decoded)
    np.testing.assert_array_equal(found.numbers, outcome.numbers)
    assert found[:2] == (3, 4)
    assert found.reading is None
    assert kept.find(("another",)) is None
    [path] = tmp_path.glob("*" + suffix)
    path.write_bytes(damage(path.read_bytes()))
    assert kept.find(("key",)) is None
    kept.keep(("key",), outcome)
    assert kept.find(("key",)) is not None


def test_an_encoder_is_measured_even_if_it_is_a_known_floor(bench, kept):
    directory, first = kept
    network = FrameEncoder(Small().eval())
    found = bench.evaluate(
        network, floors={"untrained": network}, extraction=Extraction(floors_dir=directory, quiet=True)
    )
    assert found.predictions is not None
    assert found.scores == found.floors["untrained"] == first.floors["untrained (40)"]


def test_layers_do_not_depend_on_how_many_fit_into_memory(bench, monkeypatch):
    encoder = FrameEncoder(Small().eval())
    together = bench._read_layers(encoder.encoder.layers)
    monkeypatch.setattr("manicap.probing.layers.KEPT_BYTES", 1.0)
    assert bench._read_layers(encoder.encoder.layers) == together
    assert list(together) == ["pixels", "output"]
    assert [width for width, _ in together.values()] == [1344, 40]
