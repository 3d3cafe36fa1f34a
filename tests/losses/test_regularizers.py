"""What every regularizer promises, checked over the whole of REGULARIZERS. Each has its values in its own file."""

import pytest
import torch
from torch import Tensor

from manicap.core.errors import UserError
from manicap.losses import REGULARIZERS, CapacityRegularizer, NoRegularizer, Regularizer

ACTIVE = [name for name in REGULARIZERS if name != "none"]


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def build(name: str, *weight: float, **options: float) -> Regularizer:
    return REGULARIZERS[name](*weight, **options)


@pytest.mark.parametrize("name", ACTIVE)
def test_the_term_is_the_weight_times_the_penalty(name: str) -> None:
    heads, regularizer = randn(6, 3, 5), build(name, 0.25)
    penalty = regularizer.penalty(heads)
    term, parts = regularizer(heads, torch.tensor(8.0, dtype=torch.float64))
    assert penalty.shape == ()
    assert term.item() == pytest.approx(0.25 * penalty.item(), rel=1e-13)
    assert parts["weight"] == 0.25
    assert parts["ratio"] == pytest.approx(0.25 * abs(penalty.item()) / 8, rel=1e-13)


@pytest.mark.parametrize("name", ACTIVE)
@pytest.mark.parametrize("base", [8.0, -8.0])
def test_the_term_has_the_asked_size_relative_to_the_base_loss(name: str, base: float) -> None:
    regularizer = build(name, target_ratio=0.02)
    term, parts = regularizer(randn(6, 3, 5), torch.tensor(base))
    assert abs(term.item()) == pytest.approx(0.02 * 8, rel=1e-6)
    assert parts["ratio"] == pytest.approx(0.02, rel=1e-6)
    assert parts["weight"] > 0


@pytest.mark.parametrize("name", ACTIVE)
def test_the_gradient_is_right_and_descending_it_lowers_the_penalty(name: str) -> None:
    regularizer = build(name, 1.0).eval()  # whose directions, if any, stay
    heads = randn(4, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: regularizer(x)[0], (heads,))
    term = regularizer(heads)[0]
    (gradient,) = torch.autograd.grad(term, heads)
    assert regularizer(heads - 1e-3 * gradient)[0] < term


@pytest.mark.parametrize("name", ACTIVE)
def test_the_order_of_samples_and_heads_changes_nothing(name: str) -> None:
    regularizer, heads = build(name, 1.0).eval(), randn(6, 3, 5)
    expected = regularizer(heads)[0]
    for other in (heads.flip(0), heads.flip(1)):
        torch.testing.assert_close(regularizer(other)[0], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ACTIVE)
def test_two_stacks_of_heads_count_by_their_mean(name: str) -> None:
    regularizer, one, two = build(name, 1.0).eval(), randn(6, 3, 5), 0.1 * randn(6, 3, 5, seed=1)
    expected = (regularizer(one)[0] + regularizer(two)[0]) / 2
    torch.testing.assert_close(regularizer(one, other_BND=two)[0], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ACTIVE)
def test_any_number_of_stacks_counts_by_the_mean(name: str) -> None:
    regularizer, stacks = build(name, 1.0).eval(), [(1 + i) * randn(6, 3, 5, seed=i) for i in range(4)]
    expected = sum(regularizer(stack)[0] for stack in stacks) / 4
    torch.testing.assert_close(regularizer(stacks[0], other_BND=stacks[1:])[0], expected, rtol=1e-12, atol=0)
    assert torch.equal(regularizer(stacks[0], other_BND=[])[0], regularizer(stacks[0])[0])
    with pytest.raises(ValueError, match=r"of one shape, got \[6, 3, 5\] and \[6, 3, 4\]"):
        regularizer(stacks[0], other_BND=[stacks[1], randn(6, 3, 4)])


@pytest.mark.parametrize("name", ACTIVE)
def test_a_saved_and_loaded_regularizer_continues_as_the_first(name: str) -> None:
    one, other = build(name, target_ratio=0.1), build(name, target_ratio=0.1)
    for seed, base in enumerate((2.0, 3.0)):
        one(randn(6, 3, 5, seed=seed), torch.tensor(base))
    other.load_state_dict(one.state_dict())
    heads, base_loss = randn(6, 3, 5, seed=9), torch.tensor(5.0)
    assert torch.equal(one(heads, base_loss)[0], other(heads, base_loss)[0])


@pytest.mark.parametrize("name", ACTIVE)
def test_what_is_logged_has_no_gradient(name: str) -> None:
    _, parts = build(name, target_ratio=0.1)(randn(4, 2, 6).requires_grad_(), torch.tensor(3.0))
    assert {"weight", "ratio"} < set(parts)
    assert not any(part.requires_grad for part in parts.values() if isinstance(part, Tensor))


@pytest.mark.parametrize("name", ACTIVE)
def test_errors_name_the_regularizer_and_what_it_needs(name: str) -> None:
    with pytest.raises(ValueError, match="exactly one of epsilon and target_ratio"):
        build(name)
    own = type(build(name, 0.1)).__name__
    with pytest.raises(ValueError, match=f"{own} with a target_ratio needs base_loss"):
        build(name, target_ratio=0.1)(randn(4, 2, 6))
    for shape in ((4, 6), (0, 2, 6)):
        with pytest.raises(ValueError, match=rf"{own} needs heads_BND of shape \[B, N, D\], got \{list(shape)}"):
            build(name, 0.1)(torch.zeros(shape))
    with pytest.raises(ValueError, match=rf"{own} needs .* of one shape, got \[4, 2, 6\] and \[4, 3, 6\]"):
        build(name, 0.1)(randn(4, 2, 6), other_BND=randn(4, 3, 6))


@pytest.mark.parametrize("name", ACTIVE)
def test_a_penalty_of_zero_leaves_the_automatic_weight_usable(name: str) -> None:
    class Silent(REGULARIZERS[name]):  # type: ignore[misc]
        is_silent = True

        def penalty(self, heads_BND: Tensor) -> Tensor:
            return torch.zeros((), dtype=torch.float64) if self.is_silent else super().penalty(heads_BND)

    regularizer = Silent(target_ratio=0.1)
    term, parts = regularizer(randn(4, 2, 6), torch.tensor(3.0))
    assert (term.item(), parts["weight"]) == (0, 0)
    regularizer.is_silent = False
    assert abs(regularizer(randn(4, 2, 6), torch.tensor(3.0))[0].item()) == pytest.approx(0.3, rel=1e-6)


def test_the_weight_moves_by_a_hundredth_per_step_by_default() -> None:
    class Length(Regularizer):
        term = "length"

        def penalty(self, heads_BND: Tensor) -> Tensor:
            return heads_BND.norm()

    # Length 2, bases 2 and 4: the quotients are 1 and 2, their average 0.99 + 0.02.
    regularizer, heads = Length(target_ratio=0.5), torch.full((4, 1, 1), 1.0)
    weights = [regularizer(heads, torch.tensor(base))[1]["weight"] for base in (2.0, 4.0)]
    assert weights == pytest.approx([0.5, 0.505], rel=1e-6)
    assert regularizer(heads, torch.tensor(4.0))[1]["penalty"] == 2


def test_none_is_a_term_of_zero_whatever_its_weight() -> None:
    for weight in ({}, {"epsilon": 3.0}, {"target_ratio": 0.5}):
        assert NoRegularizer(**weight)(randn(4, 2, 6), torch.tensor(3.0))[0] == 0


def test_names_are_unique_and_an_unknown_one_suggests_the_nearest() -> None:
    assert len({regularizer.term for regularizer in REGULARIZERS.values()}) == len(REGULARIZERS)
    assert REGULARIZERS["capacity"] is CapacityRegularizer
    with pytest.raises(UserError, match="unknown regularizer 'sigrag'; did you mean 'sigreg'"):
        REGULARIZERS["sigrag"]


@pytest.mark.parametrize("name", list(REGULARIZERS))
def test_every_regularizer_has_a_section_with_its_command(name: str, request: pytest.FixtureRequest) -> None:
    page = (request.config.rootpath / "docs" / "regularizers.md").read_text()
    assert f"\n### {name}\n" in page
    assert f"--regularizer {name}" in page
