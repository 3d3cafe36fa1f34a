"""What an encoder sees: colour, stacks of one life, frames shrunk by area; in training, in probes, from one store."""

import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

import manicap
from manicap import load
from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, MethodContext
from manicap.atari.collect import collect
from manicap.atari.store import StoreConfig
from manicap.core.errors import UserError
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.play.samples import FrameSource
from manicap.jobs.run import run_job
from manicap.play.pictures import resize_by_area
from manicap.play.views import View, stacked_rows
from manicap.probing.play_bench import PlayBench
from manicap.report.pages import write_page
from manicap.train.setup import Execution
from tests.algorithms.small import TRAINED, small_config, small_settings

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Breakout: lives are short, so that many stacks meet the beginning of one."""
    return collect(StoreConfig("breakout", steps=800, lanes=2), tmp_path_factory.mktemp("views"), quiet=True)


def test_a_stack_has_the_frames_of_one_life_and_repeats_the_first(store):
    start = int(store.episodes["start"][2])
    rows = np.array([start, start + 1, start + 5])
    assert stacked_rows(store, rows, 4).tolist() == [
        [start] * 4,
        [start, start, start, start + 1],
        [start + 2, start + 3, start + 4, start + 5],
    ]
    seen = View(stack=4).read(store, rows)
    assert seen.shape == (3, 4, 210, 160)
    assert np.array_equal(seen[1], store.frames[[start, start, start, start + 1]])


def test_the_colours_of_a_frame_stay_together_in_a_stack(store):
    rows = np.array([[30, 31]])
    seen = View(colour=True, stack=2).read(store, rows)
    assert seen.shape == (1, 2, 6, 210, 160)
    colour = store.colour_frames(np.array([29, 30, 31])).transpose(0, 3, 1, 2)
    assert np.array_equal(seen[0, 0], colour[[0, 1]].reshape(6, 210, 160))
    assert np.array_equal(seen[0, 1], colour[[1, 2]].reshape(6, 210, 160))


def test_chunks_are_the_same_frames(store):
    rows = np.arange(5, 60)
    for view in (View(), View(colour=True), View(stack=3, size=(84, 84))):
        chunks = list(view.chunks(store, rows, 20))
        assert [len(chunk) for chunk in chunks] == [20, 20, 15]
        assert np.array_equal(np.concatenate(chunks), view.read(store, rows))


def test_frames_shrink_to_the_mean_of_the_area(store):
    # 210 / 84 = 5 / 2 and 160 / 84 = 40 / 21: repeat every pixel 2 x 21 times, then average blocks of 5 x 40.
    frame = store.frames[40]
    fine = frame.repeat(2, 0).repeat(21, 1).astype(np.float64)
    expected = fine.reshape(84, 5, 84, 40).mean((1, 3))
    found = resize_by_area(frame, 84, 84)
    assert found.dtype == np.uint8
    assert np.abs(found - expected).max() <= 0.5 + 1e-4
    assert np.array_equal(resize_by_area(frame, 210, 160), frame)
    assert np.array_equal(resize_by_area(frame[None], 105, 80)[0], np.rint(frame.reshape(105, 2, 80, 2).mean((1, 3))))


def test_a_view_takes_rows_as_frames_do(store):
    last = len(store) - 1
    for view in (View(), View(colour=True), View(stack=4), View(stack=2, size=(84, 84))):
        expected = view.read(store, np.array([last, 7]))
        assert np.array_equal(view.read(store, [-1, 7]), expected)
        assert np.array_equal(view.read(store, store.rows == 7), expected[1:])
        with pytest.raises(IndexError):
            view.read(store, [last + 1])


def test_a_view_that_shows_nothing_is_refused():
    for wrong in ({"stack": 0}, {"stack": -1}, {"size": (0, 0)}, {"size": (84, 5000)}):
        with pytest.raises(UserError, match="stack|size"):
            View(**wrong)


def test_a_view_says_what_it_is():
    assert str(View()) == "gray"
    assert str(View(True, 4, (84, 84))) == "colour, 4 frames, 84 x 84"
    assert View(True, 4, (84, 84)).shape == (12, 84, 84)


@pytest.mark.parametrize("view", [View(), View(colour=True), View(stack=3)], ids=str)
def test_frames_prepared_ahead_or_kept_on_the_device_are_the_same(store, view):
    rows = [np.array([[5, 6], [799, 0]]), np.array([[7, 8], [3, 4]]), np.array([[400, 401], [1, 2]])]
    resident, plain, ahead = (FrameSource(store, CPU, view, resident=each) for each in (True, False, False))
    for each in rows:
        ahead.prepare(each)  # of three, the first is forgotten
    for each in rows:
        expected = torch.from_numpy(view.read(store, each))
        for source in (resident, plain, ahead):
            assert torch.equal(source.take(each), expected)


def test_a_run_in_colour_with_stacks_trains_and_is_probed_as_it_was_trained(data_dir, tmp_path):
    config = small_config("st-dim", colour=True, stack=2, max_steps=2)
    evaluation, execution = AtariEvaluationConfig(probe_steps=640, probe="knn"), Execution(threads=1, quiet=True)
    [run] = run_job(config, evaluation, (0,), execution, tmp_path, data_dir)
    encoder = load(run)
    assert encoder.method.encoder.channels == 6
    result = json.loads((run / "result.json").read_bytes())
    assert result["evaluation"]["view"] == "colour, 2 frames"
    page = write_page(run, data_dir).read_text()
    assert "colour, 2 frames" in page
    # The player shows them in colour: not all of a frame's shades are gray.
    first = re.search(r'"frames": ?\["([A-Za-z0-9+/=]+)"', page).group(1)
    with Image.open(io.BytesIO(base64.b64decode(first))) as image:
        shown = np.asarray(image.convert("RGB"))
    assert (shown.max(-1) != shown.min(-1)).any()


class Agent(torch.nn.Module):
    """Sees what most agents see."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(4, 8, 8, stride=8)
        self.eval()

    def forward(self, frames):
        assert frames.shape[1:] == (4, 84, 84), frames.shape
        return self.convolution(frames).relu().flatten(1)


def test_the_encoder_of_an_agent_is_probed_as_it_was_trained(pong_store):
    bench = PlayBench(pong_store, view=View(stack=4, size=(84, 84)))
    found = manicap.evaluate(Agent(), bench=bench, input="float", probe="knn", quiet=True)
    assert (found.view, found.width) == ("gray, 4 frames, 84 x 84", 8 * 10 * 10)
    assert "seen as gray, 4 frames, 84 x 84" in str(found)


def test_an_encoder_for_other_frames_is_told_which_arguments_to_give(pong_store):
    encoder = torch.nn.Sequential(torch.nn.Conv2d(4, 8, 8), torch.nn.Flatten()).eval()
    with pytest.raises(manicap.UserError, match=r"frames are gray \(1 x 210 x 160\).*stack=4, size=\(84, 84\)"):
        manicap.evaluate(encoder, bench=PlayBench(pong_store), input="float", quiet=True)


def _wants_four(frames):
    assert frames.shape[1] == 4
    return np.ones((len(frames), 1), np.float32)


@pytest.mark.parametrize("encoder", [lambda frames: frames[:, 3].reshape(len(frames), -1), _wants_four])
def test_it_is_told_before_anything_is_played_whatever_it_raises(encoder, tmp_path):
    with pytest.raises(manicap.UserError, match="for an encoder that sees others give colour, stack and size"):
        manicap.evaluate(encoder, game="pong", data_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_views_that_cannot_be_are_one_sentence(pong_store):
    for wrong in ({"stack": 0}, {"size": (0, 84)}, {"stack": 4.5}):
        with pytest.raises(manicap.UserError):
            manicap.evaluate(Agent(), game="pong", **wrong)
    with pytest.raises(manicap.UserError, match="games only"):
        manicap.evaluate(Agent(), dataset="cifar10", stack=4)
    with pytest.raises(manicap.UserError, match="shows frames as gray, not gray, 4 frames"):
        manicap.evaluate(Agent(), bench=PlayBench(pong_store), stack=4)


@pytest.mark.parametrize("name", TRAINED)
def test_every_method_learns_from_colour(name):
    torch.manual_seed(0)
    method = METHODS[name](small_settings(name), MethodContext(View(colour=True).shape, num_variables=3))
    frames = torch.randint(0, 256, (4, method.frames_per_sample, 3, 210, 160), dtype=torch.uint8)
    labels = torch.randint(0, 256, (4, 3)) if method.needs_labels else None
    method.loss(Batch(frames, labels, torch.Generator().manual_seed(0))).total.backward()
    gradient = next(method.encoder.parameters()).grad
    assert (gradient.abs().sum((0, 2, 3)) > 0).tolist() == [True] * 3  # all three channels matter
