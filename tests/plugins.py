"""A method, an encoder and a probe as another package would have them."""

from manicap.algorithms.st_dim import STDIM
from manicap.nn import NatureCNN
from manicap.probing import NearestNeighbors


class Mine(STDIM):
    """ST-DIM under another name."""


class Net(NatureCNN):
    """NatureCNN under another name."""


class Nearest(NearestNeighbors):
    name = "nearest"


def nearest(protocol, seed, quiet):
    return Nearest(quiet=quiet)
