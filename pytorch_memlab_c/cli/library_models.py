"""The parts of a training step that libraries define: `forward` of their modules, and the steps of their trainers.

A program of a few lines calls these (transformers, torchvision, Lightning), and would have one line that holds all.

PyTorch's own modules are none of them: their lines would hold what the lines that call them should.
"""

from __future__ import annotations

import sys
from types import CodeType

_OWN = __name__.partition(".")[0]
#: PyTorch, and large libraries that define no such classes.
_OTHERS = frozenset(("torch", "functorch", "triton", "numpy", "pandas", "sympy", "scipy", "pyarrow", _OWN))


_PARTS = frozenset(("forward", "backward", "training_step", "optimizer_step"))


def may_define_models(module: str) -> bool:
    """Whether such classes can be defined there."""
    root = module.partition(".")[0]
    return root not in _OTHERS and root not in sys.stdlib_module_names


def is_step_part(qualname: str, code: CodeType) -> bool:
    """Whether it is written as `forward` of a PyTorch module, or as what a trainer or its optimizer does in a step."""
    owner, _, name = qualname.rpartition(".")
    is_method = bool(owner) and code.co_argcount > 0 and code.co_varnames[0] == "self"
    return is_method and (name in _PARTS or (name == "step" and owner.endswith("Optimizer")))
