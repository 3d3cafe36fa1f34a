"""Probe any frozen encoder: `manicap.evaluate(encoder, game="pong")`, and the parts it is made of.

    evaluation = manicap.evaluate(encoder, game="pong")        # uint8 frames [B, 1, 210, 160] -> features [B, F]
    print(evaluation)
    evaluation.to_dict()

The folder has the name of its main function, so the module is callable and forwards to
`manicap.evaluate.evaluation.evaluate`, where the arguments are described.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manicap.evaluate.evaluation import Evaluation


class _CallableModule(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> "Evaluation":
        # Loaded on the first call: a report that reads scores does not load torch.
        result: Evaluation = import_module("manicap.evaluate.evaluation").evaluate(*arguments, **options)
        return result

    @property
    def evaluate(self) -> ModuleType:
        """The module itself, so that a lazy `getattr(import_module("manicap.evaluate"), "evaluate")` finds it."""
        return self


sys.modules[__name__].__class__ = _CallableModule
