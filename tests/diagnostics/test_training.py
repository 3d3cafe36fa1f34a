import pytest
import torch

from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, MethodContext
from manicap.diagnostics.geometry import alignment
from manicap.diagnostics.training import heads_of, measure_batch, regularizer_of
from tests.algorithms.small import small_settings


@pytest.fixture(scope="module")
def frames():
    return torch.randint(0, 256, (6, 2, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def build(name):
    torch.manual_seed(0)
    return METHODS[name](small_settings(name), MethodContext()).eval()


@torch.no_grad()
def test_heads_and_charts_are_measured_where_a_method_has_them(frames):
    atlas, single = (measure_batch(build(name), Batch(frames)) for name in ("dim-uac+", "st-dim"))
    assert {"head_cosine", "centroid_percent_error", "usage_entropy", "largest_chart"} <= set(atlas)
    assert not {"head_cosine", "usage_entropy"} & set(single)
    assert {"effective_rank", "alignment", "information_bound", "information_ceiling"} <= set(single)


@torch.no_grad()
def test_the_measures_are_those_of_the_backbone_features(frames):
    method = build("st-dim")
    now, after = (method.represent(frames[:, t], "backbone").numpy() for t in (0, 1))
    assert measure_batch(method, Batch(frames))["alignment"] == pytest.approx(alignment(now, after), rel=1e-5)


@torch.no_grad()
def test_equal_frames_raise_the_alarm_in_words(frames):
    same = frames[:1].expand_as(frames).contiguous()
    assert "rank collapse" in measure_batch(build("st-dim"), Batch(same))["alarm"]


@torch.no_grad()
def test_a_method_of_single_frames_has_no_pairs(frames):
    assert "alignment" not in measure_batch(build("dim"), Batch(frames[:, :1]))


@torch.no_grad()
@pytest.mark.parametrize("name", ["simclr-c+", "simclr-ua"])
def test_methods_on_images_are_measured_on_their_views(name):
    torch.manual_seed(0)
    settings = METHODS[name].settings_type.preset("quick")
    method = METHODS[name](settings, MethodContext((3, 32, 32), mean=(0.5,) * 3, std=(0.25,) * 3)).eval()
    found = measure_batch(method, Batch(torch.randn(6, 2, 3, 32, 32)))
    assert {"alignment", "head_cosine", "centroid_percent_error"} <= set(found)
    assert ("usage_entropy" in found) == (name == "simclr-ua")


def test_the_heads_of_charts_are_found():
    settings = METHODS["simclr-c+"].settings_type.preset("quick")
    method = METHODS["simclr-c+"](settings, MethodContext((3, 32, 32)))
    assert heads_of(method) is method.charts.heads
    assert heads_of(build("st-dim")) is None


@torch.no_grad()
def test_the_shares_of_the_regularizer_are_those_of_two_backward_passes(frames):
    method = build("dim-c+")
    found = measure_batch(method, Batch(frames))
    norms, sizes = [], []
    for names in (["capacity"], ["global", "local"]):
        method.zero_grad()
        with torch.enable_grad():
            loss = sum(method.loss(Batch(frames)).parts[name] for name in names)
            loss.backward()
        sizes.append(abs(loss.item()))
        norms.append(sum(weight.grad.square().sum().item() for weight in method.encoder.parameters()) ** 0.5)
    assert found["regularizer_loss_share"] == pytest.approx(sizes[0] / sizes[1], rel=1e-5)
    assert found["regularizer_gradient_share"] == pytest.approx(norms[0] / norms[1], rel=1e-4)
    method.zero_grad()
    measure_batch(method, Batch(frames))
    assert all(weight.grad is None for weight in method.parameters())


@torch.no_grad()
def test_a_method_without_a_regularizer_has_no_shares(frames):
    found = measure_batch(build("st-dim"), Batch(frames))
    assert not {"regularizer_loss_share", "regularizer_gradient_share"} & set(found)


def test_the_regularizer_of_charts_is_found():
    settings = METHODS["simclr-c+"].settings_type.preset("quick")
    method = METHODS["simclr-c+"](settings, MethodContext((3, 32, 32)))
    assert regularizer_of(method) is method.charts.regularizer
    assert regularizer_of(build("st-dim")) is None
