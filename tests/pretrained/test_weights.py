"""Weights by name, those of earlier versions too."""

from pathlib import Path

import pytest
import torch

from manicap.algorithms import METHODS
from manicap.algorithms.base import MethodContext
from manicap.core.errors import UserError
from manicap.pretrained.weights import load_weights, with_current_names
from tests.algorithms.small import small_settings
from tests.algorithms.small_images import build_small


@pytest.mark.parametrize("name", ["dim-c+", "simclr-c+"])
def test_weights_from_before_there_were_several_regularizers_are_read(name):
    method = METHODS[name](small_settings(name), MethodContext()) if name == "dim-c+" else build_small(name)
    former = {key.replace("regularizer.", "capacity."): torch.ones_like(x) for key, x in method.state_dict().items()}
    assert set(former) != set(method.state_dict())
    with pytest.raises(UserError, match=r"capacity\.average is unexpected"):
        load_weights(method, former, Path("training.safetensors"))
    load_weights(method, with_current_names(former), Path("training.safetensors"))
    assert all(x.eq(1).all() for x in method.state_dict().values())
