import pytest
import torch

from manicap.nn.atlas import AtlasAutoencoder


@pytest.fixture
def model():
    torch.manual_seed(0)
    return AtlasAutoencoder(num_inputs=3, num_charts=4, num_dimensions=2, num_hidden=8).double()


def test_a_point_has_a_membership_coordinates_and_a_copy_in_every_chart(model):
    charted = model(torch.randn(5, 3, dtype=torch.float64))
    assert [x.shape for x in charted] == [(5, 4), (5, 4, 2), (5, 4, 3)]
    assert charted.membership_BN.sum(1).tolist() == pytest.approx([1] * 5, abs=1e-12)


def test_coordinates_are_linear_in_the_point(model):
    x, y = torch.randn(2, 5, 3, dtype=torch.float64)
    of_sum = model(x + y).coordinates_BND
    assert torch.allclose(of_sum, model(x).coordinates_BND + model(y).coordinates_BND, atol=1e-12)


def test_a_chart_decodes_its_own_coordinates_alone(model):
    u = torch.randn(5, 4, 2, dtype=torch.float64)
    moved = u.clone()
    moved[:, 1] += 1
    before, after = model.decode(u), model.decode(moved)
    assert torch.equal(before[:, [0, 2, 3]], after[:, [0, 2, 3]])
    assert not torch.allclose(before[:, 1], after[:, 1])


def test_a_centre_is_what_the_origin_of_a_chart_decodes_to(model):
    assert torch.equal(model.centres(), model.decode(torch.zeros(1, 4, 2, dtype=torch.float64))[0])
