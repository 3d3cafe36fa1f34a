import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from torch import nn

from manicap.core.errors import UserError
from manicap.core.memo import opened_once
from manicap.library import evaluate
from manicap.probing.encoders import FrameEncoder
from manicap.probing.knn import NearestNeighbors
from manicap.probing.linear import LinearConfig, LinearProbes
from manicap.probing.play_bench import Extraction, PlayBench
from manicap.probing.state_result import StateEvaluation, StatePredictions
from tests.probing.conftest import block_contrast


def short_probe(protocol, seed, quiet):
    return LinearProbes(LinearConfig(max_epochs=12, learning_rate=0.03), protocol, seed, quiet)


@pytest.fixture(scope="module")
def bench(probe_store):
    return PlayBench(probe_store)


@pytest.fixture(scope="module")
def evaluation(bench):
    floors = {"majority": "majority", "dark": lambda frames: np.zeros((len(frames), 600))}
    return evaluate(block_contrast, bench=bench, probe=short_probe, floors=floors, quiet=True)


def test_scores_are_those_of_its_predictions(evaluation, probe_store):
    found = evaluation.predictions
    assert len(found.rows) == evaluation.counts["frames_test"]
    assert np.all(np.diff(found.rows) > 0)
    # The corrected table has Pong's ball_x at RAM 49.
    v = found.variables.index("ball_x")
    np.testing.assert_array_equal(found.true[:, v], probe_store.ram[found.rows, 49])
    expected = f1_score(found.true[:, v], found.decoded[:, v], average="weighted")
    assert evaluation.scores.variables["ball_x"].f1 == pytest.approx(expected)
    by_category = [
        np.mean([evaluation.scores.variables[name].f1 for name in names]) for names in evaluation.categories.values()
    ]
    assert evaluation.f1 == pytest.approx(np.mean(by_category))


def test_block_contrasts_beat_the_floors(evaluation):
    assert evaluation.accuracy > evaluation.floors["majority"].accuracy + 0.1
    # A constant encoder leaves the probe its bias: the most frequent class, or what a few steps make of it.
    assert evaluation.floors["dark"].f1 < evaluation.f1 - 0.1


def test_table_dict_and_json(evaluation):
    text = str(evaluation)
    first, second = text.splitlines()[:2]
    assert "protocol fixed, annotations corrected, linear probe on 600 features, seed 0" in first
    assert f"{evaluation.counts['frames_test']:,} test frames of a 3,200-step store" in second
    for word in ("agent_localization", "  ball_x", "mean over categories", "majority", "dark", "F1", "accuracy"):
        assert word in text
    values = json.loads(json.dumps(evaluation.to_dict()))
    assert "predictions" not in values
    again = StateEvaluation.from_dict(values)
    assert again == evaluation
    assert str(again) == text
    with pytest.raises(UserError, match="format 99"):
        StateEvaluation.from_dict(values | {"format": 99})


def test_predictions_survive_the_disk(evaluation, tmp_path):
    sha256 = evaluation.predictions.save(tmp_path / "predictions.npz")
    found = StatePredictions.load(tmp_path / "predictions.npz", sha256)
    assert found.variables == evaluation.predictions.variables
    np.testing.assert_array_equal(found.decoded, evaluation.predictions.decoded)


class CountingProbe(NearestNeighbors):
    fits = 0

    def fit(self, train, val=None):
        CountingProbe.fits += 1
        return super().fit(train, val)


def test_in_a_job_the_same_features_and_labels_are_probed_once(probe_store):
    # On Pong the annotation sets differ in two variables that never vary.
    torch.manual_seed(0)
    encoder = FrameEncoder(nn.Sequential(nn.Conv2d(1, 8, 16, stride=16), nn.Flatten()).eval(), input="float")

    def measure(annotation_set, seed=0, width=None):
        bench, CountingProbe.fits = PlayBench(probe_store, annotation_set=annotation_set, seed=seed), 0
        extraction = Extraction(quiet=True, width=width)
        found = bench.evaluate(encoder, lambda *_: CountingProbe(), floors={}, extraction=extraction)
        return found, CountingProbe.fits

    alone, _ = measure("ari-2019")
    with opened_once():
        assert measure("corrected")[1] == 1
        again, fits = measure("ari-2019")
        assert (again.annotation_set, fits) == ("ari-2019", 0)
        assert measure("ari-2019", seed=1)[1] == 1  # other splits
        assert measure("ari-2019", width=40)[1] == 1
    assert again.scores == alone.scores
    np.testing.assert_array_equal(again.predictions.decoded, alone.predictions.decoded)
    assert measure("corrected")[1] == 1  # no job


def test_a_plain_sequential_and_width(probe_store, tmp_path):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Conv2d(1, 4, 16, 16), nn.ReLU(), nn.Flatten()).eval()  # 4 x 13 x 10 features
    bench = PlayBench(probe_store, seed=3)
    options = {"bench": bench, "probe": "knn", "quiet": True, "cache_dir": tmp_path}
    whole = evaluate(encoder, input="float", **options)
    assert (whole.width, whole.feature_width) == (520, 520)
    narrow = evaluate(encoder, input="float", width=32, **options)
    assert (narrow.width, narrow.feature_width) == (32, 520)
    assert "32 features projected from 520" in str(narrow)
    assert len(list(tmp_path.glob("*.npy"))) == 1  # the projection reads the same features
    assert whole.f1 > narrow.f1 > whole.floors["majority"].f1
    with pytest.raises(UserError, match="width must be between 1 and the encoder's 520"):
        evaluate(encoder, input="float", width=1000, **options)


@pytest.mark.parametrize("probe", ["logistic", "knn"])
def test_reference_protocol_samples_the_test_set(probe_store, probe):
    found = evaluate(block_contrast, bench=PlayBench(probe_store, "reference", "ari-2019"), probe=probe, quiet=True)
    assert (found.protocol, found.annotation_set, found.probe) == ("reference", "ari-2019", probe)
    # Scored on a sample: not the score of all predictions.
    shares = (found.predictions.true == found.predictions.decoded).mean(0)
    assert not np.allclose(shares, [score.accuracy for score in found.scores.variables.values()], atol=1e-12)
    assert found.f1 > 0.3


def test_the_same_call_gives_the_same_scores(probe_store, evaluation):
    again = evaluate(block_contrast, bench=PlayBench(probe_store), probe=short_probe, quiet=True)
    assert again.scores == evaluation.scores


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probe": "liner"}, "unknown probe 'liner'; did you mean 'linear'"),
        ({"input": "int8"}, "unknown input 'int8'; did you mean 'uint8'"),
        ({"floors": ("untrained",)}, "floors={'untrained': encoder}"),
        ({"game": "freeway"}, "is a store of pong, not of freeway"),
        ({"steps": 7}, "steps must be at least 8, got 7"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"seed": np.int64(3)}, r"seed must be of type int, got 3 \(int64\)"),
        ({"width": 0}, "width must be at least 1, got 0"),
        ({"protocol": "reference"}, "the bench has protocol fixed, not reference: set it when creating the bench"),
        ({"annotation_set": "ari-2019"}, "the bench has annotation_set corrected, not ari-2019"),
        ({"seed": 3}, "the bench has seed 0, not 3"),
        ({"dataset": "cifar10"}, "give only one of game, bench and dataset"),
    ],
)
def test_mistakes_are_named(bench, options, message):
    with pytest.raises(UserError, match=message):
        evaluate(block_contrast, bench=bench, quiet=True, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probe": "liner"}, "unknown probe 'liner'; did you mean 'linear'"),
        ({"protocol": "fix"}, "unknown protocol"),
        ({"annotation_set": "ari"}, "unknown annotation set"),
        ({"game": "pnog"}, "unknown game 'pnog'; did you mean 'pong'"),
        ({"dataset": "cifar10", "width": 8}, "features of images are not projected"),
    ],
)
def test_mistakes_are_named_before_any_game_is_played(tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        evaluate(
            block_contrast,
            data_dir=tmp_path,
            quiet=True,
            **({} if "dataset" in options else {"game": "pong"}) | options,
        )
    assert list(tmp_path.iterdir()) == []


def test_mistakes_in_a_bench_or_an_encoder_are_named(probe_store):
    with pytest.raises(UserError, match="unknown protocol"):
        PlayBench(probe_store, "fix")
    with pytest.raises(UserError, match="unknown annotation set"):
        PlayBench(probe_store, annotation_set="ari")
    with pytest.raises(UserError, match="seed must not be negative, got -1"):
        PlayBench(probe_store, seed=-1)
    with pytest.raises(UserError, match="batch_size must be at least 1, got -1"):
        PlayBench(probe_store).evaluate(FrameEncoder(block_contrast), extraction=Extraction(batch_size=-1))
    with pytest.raises(UserError, match=r"normalization\[1\] must be positive, got 0.0"):
        FrameEncoder(block_contrast, "normalized", (0.5, 0.0))
    with pytest.raises(UserError, match="normalization must have 2 values, got 1"):
        FrameEncoder(block_contrast, "normalized", (0.5,))
    with pytest.raises(UserError, match="unknown arrays 'tensor'"):
        FrameEncoder(block_contrast, arrays="tensor")


def test_a_floor_measured_otherwise_is_refused(evaluation):
    other = StateEvaluation.from_dict(evaluation.to_dict() | {"protocol": "reference", "seed": 7})
    with pytest.raises(UserError, match="the floor 'x' was measured with a different protocol and a different seed"):
        evaluation.add_floor("x", other)


ORDERS = [
    "import manicap; f = manicap.evaluate; from manicap.probing.metrics import Scores; manicap.probing.metrics",
    pytest.param(
        "from manicap.probing.metrics import Scores; import manicap; f = manicap.evaluate", marks=pytest.mark.slow
    ),
    "import manicap.probing.metrics; from manicap import evaluate as f",
]


@pytest.mark.parametrize("imports", ORDERS)
def test_evaluate_is_a_function_whatever_was_imported_before(imports):
    code = f"""
import manicap, sys
assert "torch" not in sys.modules
{imports}
import inspect
assert inspect.isfunction(f)
assert "game" in inspect.signature(f).parameters
from manicap.core.errors import UserError
try:
    f(3, game="pong")
except UserError as error:
    assert "must be a function" in str(error)
    print("called")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "called\n", done.stderr
