"""Every trained method on Atari, from frames to loss, equals its algorithm as printed, in value and in every gradient.

Frames t and t+1 are drawn apart, weights and biases are moved from their start, and a feature map is 3 x 4: exchanged
frames, a forgotten bias and swapped axes all give another number.
"""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, Method, MethodContext
from tests.algorithms.small import TRAINED
from tests.literal import literal_dim_c, literal_dim_uac, mmcr, norm, ua
from tests.literal_networks import assert_same_loss_and_gradients, head_outputs, nature, scramble

B, HEIGHT, WIDTH = 5, 84, 100
SMALL = {
    "dim-c+": {"num_heads": 3, "units": 6, "hidden_units": 7},
    "dim-uac+": {"num_heads": 3, "units": 6},
    "dim-ua": {"num_heads": 3, "units": 6},
    "dim-ua-weighted": {"num_heads": 3, "units": 6},
    "cpc": {"units": 6, "sequence_frames": 7, "context_units": 4, "first_step": 2, "step_stride": 3, "chunk_rows": 4},
}
"""Everything else, the weights of the terms above all, is the method's default: the paper's."""


def build(name: str, **changes: object) -> Method:
    settings = replace(METHODS[name].settings_type(), **SMALL.get(name, {"units": 6}) | changes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = METHODS[name](settings, MethodContext((1, HEIGHT, WIDTH), num_variables=2))
    return scramble(method.double())


def make_batch(method: Method, seed: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    shape = (B, method.frames_per_sample, 1, HEIGHT, WIDTH)
    frames = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    labels = torch.randint(0, 256, (B, 2), generator=generator)
    return Batch(frames, labels, torch.Generator().manual_seed(seed))


def dim_c(method: Method, x_t: Tensor, x_next: Tensor) -> Tensor:
    (y_t, features), (y_next, _) = (nature(method.encoder, x) for x in (x_t, x_next))
    o_t = head_outputs(method.heads, features)
    return literal_dim_c(o_t, y_t, y_next, method.predictors.from_global, method.predictors.from_local)


def dim_uac(method: Method, x_t: Tensor, x_next: Tensor, epsilon: float = 0.0005) -> Tensor:
    (y_t, features), (y_next, features_next) = (nature(method.encoder, x) for x in (x_t, x_next))
    q_t, q_next = (method.membership.linear(f).softmax(1) for f in (features, features_next))
    c1, c2 = method.predictors.from_global, method.predictors.from_local
    return literal_dim_uac(head_outputs(method.heads, features), y_t, y_next, q_t, q_next, c1, c2, epsilon=epsilon)


def dim_ua_weighted(method: Method, x_t: Tensor, x_next: Tensor) -> Tensor:
    """DIM-UA with sum_i q_i o_i in the place of the mean of the charts."""
    (y_t, features), (y_next, features_next) = (nature(method.encoder, x) for x in (x_t, x_next))
    q_t, q_next = (method.membership.linear(f).softmax(1) for f in (features, features_next))
    o_t = head_outputs(method.heads, features)
    weighted = sum(q_t[:, [n]] * o_t[:, n] for n in range(o_t.shape[1]))
    c1, c2 = method.predictors.from_global, method.predictors.from_local
    return literal_dim_c(weighted[:, None], y_t, y_next, c1, c2, epsilon=0) - 0.05 * (ua(q_t) + ua(q_next))


def st_dim(method: Method, x_t: Tensor, x_next: Tensor) -> Tensor:
    """Algorithm 2 with one linear head and without capacity (arXiv 1906.08226)."""
    (y_t, features), (y_next, _) = (nature(method.encoder, x) for x in (x_t, x_next))
    c1, c2 = method.predictors.from_global, method.predictors.from_local
    return literal_dim_c(head_outputs(method.head, features), y_t, y_next, c1, c2, epsilon=0)


def jsd_st_dim(method: Method, x_t: Tensor, x_next: Tensor) -> Tensor:
    (y_t, features), (y_next, _) = (nature(method.encoder, x) for x in (x_t, x_next))
    c1, c2 = method.predictors.from_global, method.predictors.from_local
    prediction = c1(head_outputs(method.head, features)[:, 0])
    loss = torch.zeros((), dtype=torch.float64)
    _, H, W, _ = y_t.shape
    for h in range(H):
        for w in range(W):
            for a in (prediction, c2(y_t[:, h, w])):
                for b in range(B):
                    for other in range(B):
                        score = a[b] @ y_next[other, h, w]
                        term = softplus(-score) / B if other == b else softplus(score) / (B * (B - 1))
                        loss = loss + term / (H * W)
    return loss


def dim(method: Method, x: Tensor) -> Tensor:
    y, features = nature(method.encoder, x)
    prediction = method.predictor(head_outputs(method.head, features)[:, 0])
    _, H, W, _ = y.shape
    terms = [cross_entropy(prediction @ y[:, h, w].t(), torch.arange(B)) for h in range(H) for w in range(W)]
    return sum(terms) / (H * W)


def global_t_dim(method: Method, x_t: Tensor, x_next: Tensor) -> Tensor:
    o_t, o_next = (head_outputs(method.head, nature(method.encoder, x)[1])[:, 0] for x in (x_t, x_next))
    return cross_entropy(method.predictor(o_t) @ o_next.t(), torch.arange(B))


def gru(network: nn.GRU, x: Tensor) -> Tensor:
    """A sequence [T, D] through the layers, step by step (arXiv 1406.1078, with torch's two biases)."""
    for layer in range(network.num_layers):
        names = (f"{kind}_l{layer}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        from_input, from_state, input_bias, state_bias = (getattr(network, name) for name in names)
        state, states = torch.zeros(network.hidden_size, dtype=x.dtype), []
        for each in x:
            inputs = (from_input @ each + input_bias).chunk(3)
            recurrent = (from_state @ state + state_bias).chunk(3)
            reset, keep = ((a + b).sigmoid() for a, b in zip(inputs[:2], recurrent[:2], strict=True))
            state = (1 - keep) * (inputs[2] + reset * recurrent[2]).tanh() + keep * state
            states.append(state)
        x = torch.stack(states)
    return x


def cpc(method: Method, *frames: Tensor) -> Tensor:
    z = torch.stack([head_outputs(method.head, nature(method.encoder, x)[1])[:, 0] for x in frames], 1)
    context = torch.stack([gru(method.context_network, sequence) for sequence in z])
    T, losses = len(frames), []
    for k in (2, 5):  # from first_step 2 by 3 to the end of 7 frames
        candidates = [(b, t) for b in range(B) for t in range(k, T)]
        pool = torch.stack([z[b, t] for b, t in candidates])
        for b in range(B):
            for t in range(T - k):
                logits = pool @ method.predictors[str(k)](context[b, t])
                own = torch.tensor(candidates.index((b, t + k)))
                losses.append(cross_entropy(logits, own) / (B * (T - k)) / 2)
    return sum(losses)


def vae(method: Method, x: Tensor) -> Tensor:
    mean, log_variance = head_outputs(method.posterior, nature(method.encoder, x)[1]).unbind(1)
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    picture = method.decoder(mean + log_variance.exp().sqrt() * noise)
    loss = torch.zeros((), dtype=torch.float64)
    for b in range(B):
        loss = loss + ((picture[b] - x[b].double() / 255) ** 2).sum() / B
        for m, s2 in zip(mean[b], log_variance[b].exp(), strict=True):
            # KL of N(m, s^2) from N(0, 1), arXiv 1312.6114, appendix B.
            loss = loss + 0.5 * (m**2 + s2 - 1 - s2.log()) / B
    return loss


def pixel_pred(method: Method, x_t: Tensor, x_next: Tensor) -> Tensor:
    output = head_outputs(method.head, nature(method.encoder, x_t)[1])[:, 0]
    return ((method.decoder(output) - x_next.double() / 255) ** 2).sum() / (B * HEIGHT * WIDTH)


LITERAL = {
    "dim-c+": dim_c,
    "dim-uac+": dim_uac,
    "dim-ua": lambda *arguments: dim_uac(*arguments, epsilon=0),
    "dim-ua-weighted": dim_ua_weighted,
    "st-dim": st_dim,
    "jsd-st-dim": jsd_st_dim,
    "dim": dim,
    "global-t-dim": global_t_dim,
    "cpc": cpc,
    "vae": vae,
    "pixel-pred": pixel_pred,
}


@pytest.mark.parametrize("name", LITERAL)
def test_the_method_equals_its_algorithm(name: str) -> None:
    method = build(name)
    batch = make_batch(method)
    literal = LITERAL[name](method, *batch.frames_BTCHW.unbind(1))
    # Pixels are float32 there: a relative rounding of 6e-8 each.
    relative = 1e-7 if name in ("vae", "pixel-pred") else 1e-10
    assert_same_loss_and_gradients(method.loss(batch).total, literal, method, relative)


def test_supervised_equals_a_classifier_a_variable() -> None:
    method = build("supervised")
    batch = make_batch(method)
    output = head_outputs(method.head, nature(method.encoder, batch.frames_BTCHW[:, 0])[1])[:, 0]
    loss = torch.zeros((), dtype=torch.float64)
    for v in range(2):
        weight, bias = (p[256 * v : 256 * (v + 1)] for p in method.classifiers.parameters())
        loss = loss + cross_entropy(output @ weight.t() + bias, batch.labels_BV[:, v]) / 2
    assert_same_loss_and_gradients(method.loss(batch).total, loss, method)


@pytest.mark.parametrize("name", ["dim-c+", "dim-uac+"])
@torch.no_grad()
def test_metrics_are_of_the_outputs_at_t(name: str) -> None:
    method = build(name)
    batch = make_batch(method)
    loss = method.loss(batch)
    _, features = nature(method.encoder, batch.frames_BTCHW[:, 0])
    size = -float(mmcr(norm(head_outputs(method.heads, features))))
    base = float(loss.total - loss.parts["capacity"])
    # 5 centroids in 6 dimensions: at most sqrt(5 * 5).
    expected = {"norm": size, "bound": 5.0, "percent": 20 * size, "weight": 0.0005, "ratio": 0.0005 * size / base}
    if name == "dim-uac+":
        largest = method.membership.linear(features).softmax(1).max(1).values.mean()
        assert float(loss.metrics["membership_max"]) == pytest.approx(float(largest), rel=1e-9)
    for key, value in expected.items():
        assert float(loss.metrics[f"capacity_{key}"]) == pytest.approx(value, rel=1e-9), key


def test_every_method_is_compared() -> None:
    assert {*LITERAL, "supervised"} == set(TRAINED)
