"""Settings that the paper speaks of and leaves off: charts with a hidden layer, capacity on both outputs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, MethodContext
from tests.algorithms.small import small_settings
from tests.algorithms.small_images import IMAGE_C_PLUS, build_small, make_views
from tests.literal import mmcr, norm


def build(name, **changes):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return METHODS[name](replace(small_settings(name), **changes), MethodContext())


def frame_pairs(size=5):
    shape = (size, 2, 1, 210, 160)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["dim-ua", "dim-ua-weighted", "dim-uac+"])
def test_charts_with_a_hidden_layer_are_two_linear_maps_with_relu_between(name):
    method = build(name, hidden_units=6)
    frames = frame_pairs()[:, 0]
    with torch.no_grad():
        features = method.encoder(frames).features_BF
        chart = method.membership.linear(features).argmax(1)
        hidden, output = method.heads.hidden, method.heads.output
        assert hidden.weight.shape == (2, 6, 3456)
        rows = [
            torch.relu(x @ hidden.weight[i].T + hidden.bias[i]) @ output.weight[i].T + output.bias[i]
            for x, i in zip(features, chart.tolist(), strict=True)
        ]
        torch.testing.assert_close(method.represent(frames), torch.stack(rows), rtol=1e-5, atol=1e-5)
    method.loss(Batch(frame_pairs())).total.backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in method.heads.parameters())


def test_charts_are_linear_by_default():
    assert METHODS["dim-ua"].settings_type().hidden_units is None
    assert build("dim-ua").heads.hidden is None


@pytest.mark.parametrize("name", ["dim-c+", "dim-uac+"])
def test_capacity_on_both_frames_is_the_mean_of_the_two(name):
    batch = Batch(frame_pairs())
    first, both = build(name), build(name, capacity_on="both")
    parts, parts_of_both = first.loss(batch).parts, both.loss(batch).parts
    with torch.no_grad():
        now, after = (
            0.01 * mmcr(norm(first.heads(first.encoder(frames).features_BF))) for frames in batch.frames_BTCHW.unbind(1)
        )
    torch.testing.assert_close(parts.pop("capacity").detach(), now, rtol=1e-5, atol=0)
    torch.testing.assert_close(parts_of_both.pop("capacity").detach(), (now + after) / 2, rtol=1e-5, atol=0)
    assert float(now) != pytest.approx(float(after), rel=1e-3)  # so that exchanging the frames would be seen
    torch.testing.assert_close(parts, parts_of_both, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", IMAGE_C_PLUS)
@pytest.mark.parametrize("num_views", [2, 3])
def test_capacity_on_both_views_is_the_mean_of_all(name, num_views):
    first = build_small(name, num_views=num_views)
    both = build_small(name, num_views=num_views, capacity_on="both")
    batch = make_views(first)
    parts, parts_of_both = first.loss(batch).parts, both.loss(batch).parts
    fresh = build_small(name)  # batch statistics as at the first call
    with torch.no_grad():
        one, *others = (
            0.01 * mmcr(norm(fresh.charts(fresh.encoder(view).features_BF))) for view in batch.frames_BTCHW.unbind(1)
        )
    torch.testing.assert_close(parts.pop("capacity").detach(), one, rtol=1e-4, atol=0)
    mean = (one + sum(others)) / num_views
    torch.testing.assert_close(parts_of_both.pop("capacity").detach(), mean, rtol=1e-4, atol=0)
    for other in others:
        assert float(one) != pytest.approx(float(other), rel=1e-3)
    torch.testing.assert_close(parts, parts_of_both, rtol=1e-5, atol=1e-6)


def test_the_other_reading_of_section_4_has_256_hidden_units_in_each_chart():
    # 8 x (features -> 256 -> 256): 2048 hidden units and 2048 outputs over all charts, as Table 5's "2048 -- 2048".
    heads = build_small("simclr-c+", num_heads=8, units=256, hidden_units=256).charts.heads
    assert heads.hidden.weight.shape[:2] == heads.output.weight.shape[:2] == (8, 256)
    assert heads.output.weight.shape[2] == 256


ON_PAIRS = ["st-dim", "jsd-st-dim", "global-t-dim", "dim-ua", "dim-ua-weighted", "dim-uac+", "dim-c+"]


@pytest.mark.parametrize("name", ON_PAIRS)
def test_both_directions_are_the_mean_over_pairs_and_exchanged_pairs(name):
    """Value and gradient of every term of prediction; the others keep their frame."""
    both, forward = (build(name, directions=directions) for directions in ("both", "forward"))
    pairs = frame_pairs()
    found, ahead, back = both.loss(Batch(pairs)), forward.loss(Batch(pairs)), forward.loss(Batch(pairs.flip(1)))
    predicted = [part for part in ("global", "local") if part in found.parts]
    assert predicted
    for part in predicted:
        expected = (ahead.parts[part] + back.parts[part]) / 2
        torch.testing.assert_close(found.parts[part], expected, rtol=1e-5, atol=1e-6)
        assert not torch.isclose(ahead.parts[part], back.parts[part], rtol=1e-5, atol=0)
    for part in found.parts.keys() - set(predicted):
        torch.testing.assert_close(found.parts[part], ahead.parts[part], rtol=1e-5, atol=1e-6)
    sum(found.parts[part] for part in predicted).backward()
    sum((ahead.parts[part] + back.parts[part]) / 2 for part in predicted).backward()
    for ours, theirs in zip(both.encoder.parameters(), forward.encoder.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5)


def test_every_method_on_pairs_that_predicts_can_predict_both_ways():
    having = [name for name, method in METHODS.items() if hasattr(method.settings_type(), "directions")]
    assert sorted(having) == sorted(ON_PAIRS)
    assert {METHODS[name].settings_type().directions for name in having} == {"forward"}


def test_the_ceiling_is_the_mean_over_gaps_of_the_logarithm_of_the_candidates():
    # Of 5 samples: 5 frames for one pair; of triples, 10 one step apart and 5 two; of four frames, 15, 10 and 5.
    for horizon, candidates in ((1, [5]), (2, [10, 5]), (3, [15, 10, 5])):
        found = METHODS["st-dim"].settings_type(horizon=horizon).infonce_ceiling(5)
        assert found == pytest.approx(np.log(candidates).mean(), rel=1e-14)


@pytest.mark.parametrize("directions", ["forward", "both"])
def test_a_horizon_of_two_means_all_pairs_of_three_frames_that_lie_one_or_two_steps_apart(directions):
    """Pair by pair and position by position. Pairs equally far apart are one batch: the negatives of each other."""
    method, B = build("st-dim", directions=directions, horizon=2), 4
    assert method.frames_per_sample == 3
    frames = torch.randint(0, 256, (B, 3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = method.loss(Batch(frames)).parts
        encoded = [method.encoder(frames[:, t]) for t in range(3)]
        terms = {"global": [], "local": []}
        for gap in (1, 2):
            ways = [[(t, t + gap) for t in range(3 - gap)], [(t + gap, t) for t in range(3 - gap)]]
            for pairs in ways if directions == "both" else ways[:1]:
                targets = torch.cat([encoded[there].local_BPC for _, there in pairs])
                heads = method.head(torch.cat([encoded[here].features_BF for here, _ in pairs]))[:, 0]
                here = torch.cat([encoded[here].local_BPC for here, _ in pairs])
                own = torch.arange(len(targets))
                position_losses = {"global": [], "local": []}
                for p in range(88):
                    scores = method.predictors.from_global(heads) @ targets[:, p].T
                    position_losses["global"].append(cross_entropy(scores, own))
                    scores = method.predictors.from_local(here[:, p]) @ targets[:, p].T
                    position_losses["local"].append(cross_entropy(scores, own))
                for name, losses in position_losses.items():
                    terms[name].append(torch.stack(losses).mean())
    for name, losses in terms.items():
        assert len(losses) == (4 if directions == "both" else 2)
        torch.testing.assert_close(found[name], torch.stack(losses).mean(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ON_PAIRS)
def test_every_method_on_pairs_learns_from_triples(name):
    method = build(name, directions="both", horizon=2)
    frames = torch.randint(0, 256, (4, 3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    method.loss(Batch(frames)).total.backward()
    assert all(parameter.grad is not None for parameter in method.encoder.parameters())


@pytest.mark.parametrize("name", ["dim-c+", "dim-uac+"])
def test_capacity_on_both_frames_leaves_a_third_one_alone(name):
    method = build(name, directions="both", horizon=2, capacity_on="both")
    frames = torch.randint(0, 256, (4, 3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = method.loss(Batch(frames)).parts["capacity"]
        now, after = (0.01 * mmcr(norm(method.heads(method.encoder(frames[:, t]).features_BF))) for t in (0, 1))
    torch.testing.assert_close(found, (now + after) / 2, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("directions", "num_drawn"), [("forward", 2), ("both", 3)])
@pytest.mark.parametrize("name", ON_PAIRS)
def test_a_reconstruction_draws_coarse_frames_from_the_features_that_are_computed(name, directions, num_drawn):
    """By NumPy: cells of 5 x 4 normalised pixels; what is left of their squares, times the weight."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (4, 3, 1, 210, 160), np.uint8)
    mean, deviation = rng.random((210, 160), np.float32), rng.random((210, 160), np.float32)
    statistics = tuple(torch.from_numpy(each)[None] for each in (mean, deviation))
    changes = {"directions": directions, "horizon": 2, "reconstruction": 0.5}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        settings = replace(small_settings(name), **changes)
        method = METHODS[name](settings, MethodContext(pixel_statistics=statistics))
    if name in ("dim-ua", "dim-ua-weighted", "dim-uac+", "global-t-dim"):
        num_drawn = 3  # they encode all frames in any case
    shown = np.concatenate([frames[:, t, 0] for t in range(num_drawn)])
    normalised = (shown / 255 - mean) / np.maximum(deviation, 0.1)
    cells = normalised.reshape(-1, 42, 5, 40, 4).mean((2, 4)).reshape(len(shown), -1)
    with torch.no_grad():
        drawn_by_zeros = method.loss(Batch(torch.from_numpy(frames))).parts["reconstruction"]
        torch.nn.init.normal_(method.pixels.weight, std=0.01, generator=torch.Generator().manual_seed(0))
        method.pixels.bias.fill_(0.3)
        drawn = method.loss(Batch(torch.from_numpy(frames))).parts["reconstruction"]
        features = method.encoder(torch.from_numpy(shown)[:, None]).features_BF.numpy().astype(np.float64)
    assert float(drawn_by_zeros) == pytest.approx(0.5, rel=1e-6)
    left = features @ method.pixels.weight.detach().numpy().T.astype(np.float64) + 0.3 - cells
    assert float(drawn) == pytest.approx(0.5 * (left**2).sum() / (cells**2).sum(), rel=1e-4)


def test_a_reconstruction_changes_no_other_weight_and_is_not_part_of_the_encoder():
    without, having = build("dim-c+"), build("dim-c+", reconstruction=1.0)
    assert without.pixels is None
    expected = {key: value for key, value in having.state_dict().items() if not key.startswith("pixels.")}
    torch.testing.assert_close(without.state_dict(), expected, rtol=0, atol=0)
    assert "pixels" not in having.inference_parts


def test_equal_frames_have_a_finite_reconstruction():
    method = build("st-dim", reconstruction=1.0)
    loss = method.loss(Batch(torch.full((4, 2, 1, 210, 160), 7, dtype=torch.uint8)))
    assert torch.isfinite(loss.parts["reconstruction"])


def test_the_atlas_of_three_frames_is_unbalanced_in_all_of_them():
    method = build("dim-ua", horizon=2)
    frames = torch.randint(0, 256, (4, 3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        q = torch.stack([method.membership(method.encoder(frames[:, t]).features_BF) for t in range(3)])
        # tau of the mean over frames; Eq 3 for each.
        expected = -0.1 * ((q - 1 / 2) ** 2).sum(-1).mean()
        torch.testing.assert_close(method.loss(Batch(frames)).parts["unbalance"], expected, rtol=1e-4, atol=1e-7)
