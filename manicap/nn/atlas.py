"""An autoencoder whose code is a chart and a point in it (Korman 2018, "Autoencoding topology", arXiv 1803.00156)."""

from typing import NamedTuple

from torch import Tensor, nn

from manicap.nn.heads import Heads, Membership, StackedLinear


class Charted(NamedTuple):
    """A batch of points in all charts."""

    membership_BN: Tensor
    """q_i(x): the probability that x belongs to chart i."""
    coordinates_BND: Tensor
    """phi_i(x): x in the coordinates of chart i."""
    decoded_BNC: Tensor
    """psi_i(phi_i(x)): x as chart i reconstructs it."""


class AtlasAutoencoder(nn.Module):
    """N charts of D dimensions on points of C dimensions.

        phi_i  coordinates   linear, C -> D
        q      membership    two hidden layers with ReLU and a softmax, C -> N
        psi_i  decoder       one hidden layer with tanh, D -> C

    Linear coordinates encourage charts whose intersections are contractible, so that the nerve of the charts has the
    topology of what they cover.
    """

    def __init__(self, num_inputs: int, num_charts: int, num_dimensions: int, num_hidden: int = 32) -> None:
        super().__init__()
        self.num_dimensions = num_dimensions
        self.coordinates = Heads(num_inputs, num_charts, num_dimensions)
        self.features = nn.Sequential(
            nn.Linear(num_inputs, 2 * num_hidden), nn.ReLU(), nn.Linear(2 * num_hidden, 2 * num_hidden), nn.ReLU()
        )
        self.membership = Membership(2 * num_hidden, num_charts)
        self.hidden = StackedLinear(num_charts, num_dimensions, num_hidden)
        self.output = StackedLinear(num_charts, num_hidden, num_inputs)

    def forward(self, points_BC: Tensor) -> Charted:
        coordinates_BND = self.coordinates(points_BC)
        return Charted(self.membership(self.features(points_BC)), coordinates_BND, self.decode(coordinates_BND))

    def decode(self, coordinates_BND: Tensor) -> Tensor:
        """Points `[B, N, C]` from coordinates in every chart."""
        decoded_BNC: Tensor = self.output(self.hidden(coordinates_BND).tanh())
        return decoded_BNC

    def centres(self) -> Tensor:
        """psi_i(0), the centre of every chart: `[N, C]`."""
        origin_BND = self.output.bias.new_zeros(1, self.coordinates.num_heads, self.num_dimensions)
        return self.decode(origin_BND)[0]
