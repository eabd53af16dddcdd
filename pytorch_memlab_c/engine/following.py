"""The process-wide side of the engine: following PyTorch's allocators, and what a fork changes.

PyTorch is never imported here; what is done waits until the program imports it.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from .. import _native
from . import allocator_stats, failed_lines, seeding
from .torch_import import after_torch_import

_CPU, _CUDA = 1, 2
_followed: int | None = None
_waiting = False
#: Whether the program has chosen the target device (target_device.py); PyTorch may be imported after that.
target_chosen = False


def torch_module() -> ModuleType | None:
    """PyTorch, if the program has imported it (whole), else None."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "Tensor") and hasattr(torch, "_C") else None


def prepare(again: bool = False) -> None:
    """Follow PyTorch's allocators from now on, or from its import on; does nothing the second time.

    Another tool may have led their calls elsewhere since (memray does as its tracker ends): they are followed again,
    with what lives now. `again` repeats it, for when something else has been put under PyTorch.
    """
    global _followed, _waiting
    torch = torch_module()
    if torch is None and not _waiting:
        _waiting = True
        after_torch_import(lambda module: prepare())
    displaced = not again and is_displaced()
    if torch is None or (_followed is not None and not again and not displaced):
        return
    if displaced:
        _native.forget_blocks()
    _followed = _native.install_events()
    allocator_stats.connect(torch)
    _native.use_statistics_only(_statistics_only(torch, _followed))
    if not target_chosen:
        _native.set_target(1 if torch.cuda._is_compiled() else 0)
    failed_lines.observe(torch)
    seeding.seed_accelerators(torch)
    if _followed & _CPU:
        seeding.seed_cpu(torch)


#: Why figures lack something.
UNSEEN = (
    "incomplete: another tool (memray?) took the calls of PyTorch's allocators while this was measured; "
    "what was allocated from then on is not in these figures"
)


def is_displaced() -> bool:
    """Whether another tool has led the calls of PyTorch's allocators elsewhere since they were followed."""
    return _followed is not None and _native.events_displaced()


def is_following() -> bool:
    """Whether PyTorch's allocators are followed now."""
    return _followed is not None


def cpu_is_followed() -> bool:
    """Whether CPU tensors can be measured here (Linux, and a build of PyTorch that is not static)."""
    return _followed is None or bool(_followed & _CPU)


def sampler() -> str:
    """How accelerators are measured: "events" or "statistics"."""
    torch = torch_module()
    return "statistics" if torch and _statistics_only(torch, _followed or 0) else "events"


def _statistics_only(torch: Any, followed: int) -> bool:
    wanted = os.environ.get("PYTORCH_MEMLAB_SAMPLER", "")
    if wanted not in ("", "events", "statistics"):
        raise ValueError(f"PYTORCH_MEMLAB_SAMPLER is {wanted!r}; it must be 'events' or 'statistics', or unset")
    if wanted == "statistics" or not torch.cuda._is_compiled():
        return wanted == "statistics"
    return not followed & _CUDA or torch.cuda.get_allocator_backend() != "native"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.after_fork_child)
