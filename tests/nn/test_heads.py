"""Heads: as so many separate layers, the two forms of computing them, initialisation, membership, errors."""

import pytest
import torch
from torch import Tensor, nn

from manicap.nn.heads import Heads, Membership, StackedLinear, batched, head_by_head, select_chart


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded_heads(*args: object, seed: int = 0, **kwargs: object) -> Heads:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Heads(*args, **kwargs).double()  # type: ignore[arg-type]


def separate(layer: StackedLinear, n: int) -> nn.Linear:
    """Head n of the stack as a layer of its own."""
    num_outputs, num_inputs = layer.weight.shape[1:]
    linear = nn.Linear(num_inputs, num_outputs).double()
    linear.load_state_dict({"weight": layer.weight[n], "bias": layer.bias[n]})
    return linear


def fill_biases(heads: Heads) -> None:
    for name, parameter in heads.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(5))


def test_linear_heads_equal_separate_layers() -> None:
    heads = seeded_heads(7, 3, 5)
    fill_biases(heads)
    x = randn(4, 7)
    expected = torch.stack([separate(heads.output, n)(x) for n in range(3)], 1)
    torch.testing.assert_close(heads(x), expected, rtol=1e-13, atol=1e-13)


def test_mlp_heads_equal_separate_mlps() -> None:
    heads = seeded_heads(7, 3, 5, num_hidden=6)
    fill_biases(heads)
    assert heads.hidden is not None
    x = randn(4, 7)
    expected = [separate(heads.output, n)(separate(heads.hidden, n)(x).relu()) for n in range(3)]
    torch.testing.assert_close(heads(x), torch.stack(expected, 1), rtol=1e-13, atol=1e-13)


def test_batch_norm_normalises_each_hidden_unit_of_each_head() -> None:
    heads = seeded_heads(7, 3, 5, num_hidden=6, batch_norm=True)
    assert heads.hidden is not None
    x = randn(4, 7)
    expected = []
    for n in range(3):
        hidden = separate(heads.hidden, n)(x)
        hidden = (hidden - hidden.mean(0)) / (hidden.var(0, unbiased=False) + 1e-5).sqrt()
        expected.append(separate(heads.output, n)(hidden.relu()))
    torch.testing.assert_close(heads(x), torch.stack(expected, 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("num_heads", [1, 3])
def test_batched_and_head_by_head_agree_in_value_and_gradient(shared: bool, num_heads: int) -> None:
    leaves = [randn(4, 7) if shared else randn(4, num_heads, 7), randn(num_heads, 5, 7, seed=1)]
    leaves = [leaf.requires_grad_() for leaf in (*leaves, randn(num_heads, 5, seed=2))]
    x_BNF = leaves[0][:, None].expand(-1, num_heads, -1) if shared else leaves[0]
    weighting = randn(4, num_heads, 5, seed=3)
    results = [form(x_BNF, leaves[1], leaves[2]) for form in (batched, head_by_head)]
    torch.testing.assert_close(*results, rtol=1e-13, atol=1e-13)
    one, other = (torch.autograd.grad((result * weighting).sum(), leaves) for result in results)
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13)


def test_head_by_head_gradient_is_right() -> None:
    inputs = (randn(3, 2, 4).requires_grad_(), randn(2, 5, 4, seed=1).requires_grad_(), randn(2, 5).requires_grad_())
    assert torch.autograd.gradcheck(head_by_head, inputs)


def test_frozen_features_and_frozen_heads_train_the_other() -> None:
    heads, x = seeded_heads(7, 3, 5, num_hidden=6), randn(4, 7)
    heads(x).square().sum().backward()
    assert all(p.grad is not None for p in heads.parameters())
    heads.requires_grad_(False)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(heads(x).square().sum(), x)
    assert gradient.abs().sum() > 0


def test_heads_start_orthogonal_and_different() -> None:
    heads = seeded_heads(9, 3, 5)
    for weight in heads.output.weight:
        torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(5).double(), rtol=0, atol=1e-5)
    assert not torch.equal(heads.output.weight[0], heads.output.weight[1])
    assert not heads.output.bias.any()
    assert torch.equal(heads.output.weight, seeded_heads(9, 3, 5).output.weight)


def test_autocast_takes_the_batched_form(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its types are autocast's to choose. No half-precision product is computed here: not every CPU survives one.
    monkeypatch.setattr("manicap.nn.heads.batched", lambda x, weight, bias: torch.tensor(42))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Heads(7, 3, 5)(torch.zeros(4, 7)) == 42


def test_membership_is_a_distribution() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        membership = Membership(7, 4).double()
    q = membership(randn(5, 7))
    assert q.shape == (5, 4)
    assert (q > 0).all()
    torch.testing.assert_close(q.sum(1), torch.ones(5).double())


def test_select_chart_takes_each_samples_likeliest_head() -> None:
    heads = torch.arange(12.0).reshape(2, 3, 2)
    membership = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    assert select_chart(heads, membership).tolist() == [[4, 5], [6, 7]]


def test_errors_say_what_is_needed_and_what_came() -> None:
    with pytest.raises(ValueError, match=r"positive sizes, got \{'num_heads': 0\}"):
        Heads(7, 0, 5)
    with pytest.raises(ValueError, match=r"positive sizes, got \{'num_hidden': 0\}"):
        Heads(7, 2, 5, num_hidden=0)
    with pytest.raises(ValueError, match="pass num_hidden"):
        Heads(7, 2, 5, batch_norm=True)
    with pytest.raises(ValueError, match=r"shape \[B, 7\], or \[B, 2, 7\] with one input per head, got \[4, 8\]"):
        Heads(7, 2, 5)(torch.zeros(4, 8))
    with pytest.raises(ValueError, match=r"membership_BN \[B, N\], got \[4, 2, 5\] and \[4, 3\]"):
        select_chart(torch.zeros(4, 2, 5), torch.zeros(4, 3))


def test_heads_with_an_input_each_equal_separate_layers() -> None:
    # As BYOL's predictors: head n sees its own features.
    torch.manual_seed(0)
    heads = Heads(5, num_heads=3, num_units=4, num_hidden=6, batch_norm=True).double()
    x_BNF = randn(7, 3, 5)
    hidden, norm, output = heads.hidden, heads.norm, heads.output
    assert hidden is not None and norm is not None  # noqa: PT018
    for n in range(3):
        h = x_BNF[:, n] @ hidden.weight[n].T + hidden.bias[n]
        h = ((h - h.mean(0)) / (h.var(0, correction=0) + norm.eps).sqrt()).relu()
        expected = h @ output.weight[n].T + output.bias[n]
        torch.testing.assert_close(heads(x_BNF)[:, n], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_a_frozen_part_gets_no_gradient_and_the_other_its_own(frozen: str) -> None:
    layer, x = StackedLinear(3, 5, 4), torch.randn(6, 3, 5, generator=torch.Generator().manual_seed(0))
    expected = torch.autograd.grad(layer(x).square().sum(), list(layer.parameters()))
    getattr(layer, frozen).requires_grad_(False)
    layer(x).square().sum().backward()
    for (name, parameter), gradient in zip(layer.named_parameters(), expected, strict=True):
        if name == frozen:
            assert parameter.grad is None
        else:
            torch.testing.assert_close(parameter.grad, gradient)


def test_features_that_are_views_of_one_number_are_still_each_heads_own():
    x_BNF = torch.randn(3, 2, 1, generator=torch.Generator().manual_seed(0)).expand(-1, -1, 5)
    layer = StackedLinear(2, 5, 4)
    expected = torch.stack([x_BNF[:, n] @ layer.weight[n].T + layer.bias[n] for n in range(2)], 1)
    torch.testing.assert_close(batched(x_BNF, layer.weight, layer.bias), expected)


def test_the_membership_starts_orthogonal_and_without_bias():
    # Rows of a 4 x 12 weight: orthogonal, of length sqrt(2).
    layer = next(module for module in Membership(12, 4).modules() if isinstance(module, nn.Linear))
    torch.testing.assert_close(layer.weight @ layer.weight.T, 2 * torch.eye(4), rtol=0, atol=1e-5)
    assert not layer.bias.any()
