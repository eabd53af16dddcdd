"""What messages advise: in terms of the Python API or, where the command line shows them, of its options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_on_command_line = ContextVar("on_command_line", default=False)


@contextmanager
def for_command_line() -> Iterator[None]:
    """Within the block, messages name options of the command line."""
    token = _on_command_line.set(True)
    try:
        yield
    finally:
        _on_command_line.reset(token)


def device(name: str) -> str:
    """How to have another device shown."""
    return f"--device {name}" if _on_command_line.get() else f"device={name!r}"


def other_device(name: str) -> str:
    """How to have the device shown that allocated, in a full phrase."""
    if _on_command_line.get():
        return f"pass {device(name)}"
    index = name.partition(":")[2]
    return f"pass {device(name)}" + (f" or call set_target_gpu({index})" if index else "")


def record_columns(names: Sequence[str]) -> str:
    """How to have columns recorded that need the allocator's statistics."""
    if _on_command_line.get():
        return "with " + " ".join(f"-c {name}" for name in names)
    return f"with LineProfiler(..., columns={list(names)}) or @profile(columns={list(names)})"


def record_saved() -> str:
    """How to have counted what autograd saves."""
    return "--saved" if _on_command_line.get() else "LineProfiler(..., saved=True) or @profile(saved=True)"


def simulated_gpu() -> str:
    """How to have a GPU where there is none."""
    return "the command `simulate`" if _on_command_line.get() else "pytorch_memlab_c.simulate.enable()"
