"""Encoders, heads and decoders, by name. Nothing here knows a loss.

    from manicap.nn import Heads, NatureCNN, ResNetEncoder

Construction draws from torch's global generator. For reproducible weights, fork and seed it around the constructor:

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = NatureCNN(1, 210, 160)
"""

from manicap.nn.atlas import AtlasAutoencoder
from manicap.nn.decoders import NatureDecoder
from manicap.nn.encoders import Encoded, Encoder, ImpalaCNN, NatureCNN
from manicap.nn.heads import Heads, Membership, StackedLinear
from manicap.nn.plain import PlainCNN
from manicap.nn.resnet import ResNet, ResNetEncoder

__all__ = [
    "AtlasAutoencoder",
    "Encoded",
    "Encoder",
    "Heads",
    "ImpalaCNN",
    "Membership",
    "NatureCNN",
    "NatureDecoder",
    "PlainCNN",
    "ResNet",
    "ResNetEncoder",
    "StackedLinear",
]
