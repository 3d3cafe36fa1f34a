"""Charts: N heads on one encoder as one module, and the membership that chooses among them."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from manicap.nn.initialization import ORTHOGONAL_GAIN, orthogonal


class Heads(nn.Module):
    """N heads of D units: linear F -> D (DIM-UA), or F -> hidden -> D with ReLU between (DIM-C+).

    The heads' weights are stacked, `[N, D, F]`, and each head is initialised like ST-DIM's last layer: orthogonal with
    gain sqrt(2), zero bias. `batch_norm` adds batch normalisation before the ReLU (Algorithm 3 of arXiv 2405.13848).
    """

    def __init__(
        self, num_features: int, num_heads: int, num_units: int, num_hidden: int | None = None, batch_norm: bool = False
    ) -> None:
        super().__init__()
        sizes = {"num_features": num_features, "num_heads": num_heads, "num_units": num_units}
        if num_hidden is not None:
            sizes["num_hidden"] = num_hidden
        if bad := {name: size for name, size in sizes.items() if size < 1}:
            raise ValueError(f"Heads needs positive sizes, got {bad}")
        if batch_norm and num_hidden is None:
            raise ValueError("Heads needs a hidden layer for batch normalisation; pass num_hidden")
        self.num_features, self.num_heads, self.num_units = num_features, num_heads, num_units
        self.hidden = StackedLinear(num_heads, num_features, num_hidden) if num_hidden else None
        self.norm = nn.BatchNorm1d(num_heads * num_hidden) if num_hidden and batch_norm else None
        self.output = StackedLinear(num_heads, num_hidden or num_features, num_units)

    def forward(self, features: Tensor) -> Tensor:
        """`[B, F]`, shared by all heads, or `[B, N, F]`, one input per head -> `[B, N, D]`."""
        if features.shape[1:] not in ((self.num_features,), (self.num_heads, self.num_features)):
            raise ValueError(
                f"Heads needs features_BF of shape [B, {self.num_features}], or "
                f"[B, {self.num_heads}, {self.num_features}] with one input per head, got {list(features.shape)}"
            )
        x_BNF = features if features.ndim == 3 else features[:, None].expand(-1, self.num_heads, -1)
        if self.hidden is not None:
            x_BNF = self.hidden(x_BNF)
            if self.norm is not None:
                x_BNF = self.norm(x_BNF.flatten(1)).view(x_BNF.shape)
            x_BNF = x_BNF.relu()
        heads_BND: Tensor = self.output(x_BNF)
        return heads_BND


class StackedLinear(nn.Module):
    """N linear layers with stacked weights `[N, D, F]`: `[B, N, F] -> [B, N, D]`."""

    def __init__(self, num_heads: int, num_inputs: int, num_outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, num_outputs, num_inputs))
        self.bias = nn.Parameter(torch.zeros(num_heads, num_outputs))
        for weight_DF in self.weight.detach():
            nn.init.orthogonal_(weight_DF, ORTHOGONAL_GAIN)

    def forward(self, x_BNF: Tensor) -> Tensor:
        # Measured on two threads, 4 x (3456 -> 2048 -> 4096), batch 64, forward and backward: 267 ms head by head,
        # 475 batched. Under autocast the batched form is used, because autocast handles its types; so it is when the
        # module is compiled or exported, because a gradient of our own cannot be traced.
        by_head = x_BNF.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
        if by_head and not torch.compiler.is_compiling():
            return head_by_head(x_BNF, self.weight, self.bias)
        return batched(x_BNF, self.weight, self.bias)


def batched(x_BNF: Tensor, weight_NDF: Tensor, bias_ND: Tensor) -> Tensor:
    """All heads in one call: one matrix multiplication if there is one input for all, otherwise a batched one."""
    if x_BNF.shape[1] == 1 or x_BNF.stride(1) == 0:
        return F.linear(x_BNF[:, 0], weight_NDF.flatten(0, 1), bias_ND.flatten()).unflatten(1, bias_ND.shape)
    return torch.baddbmm(bias_ND[:, None], x_BNF.transpose(0, 1), weight_NDF.mT).transpose(0, 1)


def head_by_head(x_BNF: Tensor, weight_NDF: Tensor, bias_ND: Tensor) -> Tensor:
    """The same, one head at a time, with each gradient written directly into its place in the stack."""
    heads_BND: Tensor = _HeadByHead.apply(x_BNF, weight_NDF, bias_ND)
    return heads_BND


class _HeadByHead(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BNF: Tensor, weight_NDF: Tensor, bias_ND: Tensor) -> Tensor:
        ctx.save_for_backward(x_BNF, weight_NDF)
        N, D = bias_ND.shape
        heads_NBD = x_BNF.new_empty(N, len(x_BNF), D)
        for n in range(N):
            torch.addmm(bias_ND[n], x_BNF[:, n], weight_NDF[n].mT, out=heads_NBD[n])
        return heads_NBD.transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor]:
        (grad_BND,) = grads
        x_BNF, weight_NDF = ctx.saved_tensors
        B, N, num_inputs = x_BNF.shape
        grad_x_NBF = x_BNF.new_empty(N, B, num_inputs) if ctx.needs_input_grad[0] else None
        grad_weight_NDF = torch.empty_like(weight_NDF) if ctx.needs_input_grad[1] else None
        for n in range(N):
            if grad_x_NBF is not None:
                torch.mm(grad_BND[:, n], weight_NDF[n], out=grad_x_NBF[n])
            if grad_weight_NDF is not None:
                torch.mm(grad_BND[:, n].mT, x_BNF[:, n], out=grad_weight_NDF[n])
        grad_x_BNF = None if grad_x_NBF is None else grad_x_NBF.transpose(0, 1)
        return grad_x_BNF, grad_weight_NDF, grad_BND.sum(0)


class Membership(nn.Module):
    """Chart membership q(z) = softmax(Linear(F, N)) (arXiv 2405.13848, section 3.2)."""

    def __init__(self, num_features: int, num_heads: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_features, num_heads)
        orthogonal(self)

    def forward(self, features_BF: Tensor) -> Tensor:
        """`[B, F]` -> probabilities `[B, N]`."""
        return torch.softmax(self.linear(features_BF), dim=1)


def select_chart(heads_BND: Tensor, membership_BN: Tensor) -> Tensor:
    """Each sample's head with the highest membership, as at inference (arXiv 2405.13848, section 3.2): `[B, D]`."""
    if heads_BND.ndim != 3 or heads_BND.shape[:2] != membership_BN.shape:
        raise ValueError(
            "select_chart needs heads_BND [B, N, D] and membership_BN [B, N], "
            f"got {list(heads_BND.shape)} and {list(membership_BN.shape)}"
        )
    rows = torch.arange(heads_BND.shape[0], device=heads_BND.device)  # len() would fix the batch of an exported module
    return heads_BND[rows, membership_BN.argmax(1)]
