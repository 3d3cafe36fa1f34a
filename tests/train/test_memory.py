import pytest

from manicap.algorithms.base import MethodContext
from manicap.algorithms.dim_c_plus import DIMCPlusSettings
from manicap.algorithms.st_dim import STDIMSettings
from manicap.core.errors import UserError
from manicap.domains.atari.config import AtariConfig
from manicap.train import memory
from manicap.train.memory import require_memory
from manicap.train.setup import build_method


def config(units, method="st-dim"):
    return AtariConfig(game="pong", method=method, settings=STDIMSettings(units=units))


def test_weights_that_fit_are_built(monkeypatch):
    # 4 bytes for each weight, its gradient and the two moments of Adam.
    exact = sum(parameter.numel() for parameter in build_method(config(8), MethodContext()).parameters()) * 16
    monkeypatch.setattr(memory, "memory_bytes", lambda: exact)
    require_memory(config(8), MethodContext())
    monkeypatch.setattr(memory, "memory_bytes", lambda: exact - 1)
    with pytest.raises(UserError, match="st-dim with these settings has .* weights"):
        require_memory(config(8), MethodContext())
    require_memory(config(8, "random-cnn"), MethodContext())  # is not trained: no gradient and no moments


def test_weights_beyond_any_machine_are_refused_before_they_are_made():
    # 1,024 heads of 65,536 units on 65,536 hidden units: 4.4e12 weights.
    settings = DIMCPlusSettings(num_heads=1024, units=65_536, hidden_units=65_536)
    with pytest.raises(UserError, match="use fewer units or heads"):
        build_method(AtariConfig(game="pong", method="dim-c+", settings=settings), MethodContext())


def test_the_machine_has_memory():
    assert 2**28 < memory.memory_bytes() < 2**50
