"""Measuring one test's call: a window for each limit, the lines of the functions under test, and what they say."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any

from ..engine import following
from ..engine.target_device import target_name
from ..line_profiler import LineProfiler, callables
from ..process.peak import peak_memory, peaks_of_devices
from .functions import Project, functions_under_test
from .limits import Limit
from .text import describe_excess, scope


class Measurement:
    """A context manager around a test's call. Afterwards `peaks()` has the figures, and `complaint()` what is wrong.

    Nothing that goes wrong in here is raised: the test runs as without.
    """

    def __init__(
        self, limits: Sequence[Limit], functions: Sequence[FunctionType], profilers: Profilers, whole: bool
    ) -> None:
        """`whole`: measure all devices, also those without a limit."""
        self._blocks: dict[str, tuple[Limit, peak_memory]] = {}
        self._problems: list[str] = []
        for limit in limits:
            self._add(limit)
        self._devices = peaks_of_devices() if whole else None
        self._profiler = profilers.of(functions, self._blocks)
        self._stack = contextlib.ExitStack()

    def _add(self, limit: Limit) -> None:
        """A block for the limit, unless a nearer mark has one for its device."""
        try:
            block = peak_memory(default_device() if limit.device is None else limit.device)
        except (NotImplementedError, RuntimeError) as error:
            self._problems.append(f"the limit {limit.text!r} cannot be checked: {error}")
            return
        self._blocks.setdefault(block.device, (limit, block))

    def __enter__(self) -> Measurement:
        if self._profiler is not None:
            self._stack.enter_context(self._profiler)
        if self._devices is not None:
            self._stack.enter_context(self._devices)
        for _, block in self._blocks.values():
            self._stack.enter_context(block)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def peaks(self) -> list[dict[str, Any]]:
        """`device`, `scope` of the bytes, `peak` (above the start) and `limit` (or None), ready for JSON."""
        found = {} if self._devices is None else self._devices.deltas()
        found.update({device: block.delta_bytes for device, (_, block) in self._blocks.items()})
        limits = {device: limit.size for device, (limit, _) in self._blocks.items()}
        return [
            {"device": device, "scope": scope(device), "peak": peak, "limit": limits.get(device)}
            for device, peak in found.items()
        ]

    def complaint(self) -> str | None:
        """Which limits were exceeded, or could not be checked; None if all is well."""
        unseen = [limit for limit, block in self._blocks.values() if block.incomplete]
        self._problems += [f"the limit {limit.text!r} cannot be checked: {following.UNSEEN}" for limit in unseen]
        over = [(limit, block) for limit, block in self._blocks.values() if block.delta_bytes > limit.size]
        if not over:
            return "\n".join(self._problems) or None
        records = None if self._profiler is None else self._profiler.records()
        parts = [describe_excess(limit, block, records) for limit, block in over]
        return "\n\n".join([*parts, *self._problems])


def default_device() -> str:
    """The target GPU where CUDA is there, otherwise the CPU. PyTorch is imported: only it knows."""
    if following.torch_module() is None and importlib.util.find_spec("torch") is not None:
        import torch  # noqa: F401
    if following.torch_module() is None:
        return "cpu"
    return target_name()


class Profilers:
    """The line profiler for some functions.

    That of the last test is taken again for the same functions: a test has often many parameters, and reading the
    source takes time.
    """

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._profiler: LineProfiler | None = None

    def of(self, functions: Sequence[FunctionType], devices: Iterable[str]) -> LineProfiler | None:
        """None where no line can have figures. All devices are recorded, whichever is named."""
        followed = [device for device in devices if device.partition(":")[0] in ("cpu", "cuda")]
        if not followed:
            return None
        key = (followed[0], *(id(function.__code__) for function in functions))
        if self._profiler is None or self._key != key:
            self._profiler, self._key = LineProfiler(*functions, device=followed[0], columns="hits"), key
        self._profiler.clear()
        return self._profiler


def functions_to_show(item: Any, limits: Sequence[Limit], project: Project) -> list[FunctionType]:
    """The test's own function first, then those that its marks name, or those that it calls."""
    function = _test_function(item)
    own = [] if function is None else [function]
    named = [given for limit in limits for given in limit.functions or ()]
    if any(limit.functions is not None for limit in limits):
        return own + [plain for given in named for plain in callables.functions_of(given)]
    if function is None:
        return []
    arguments = {name: value for name, value in getattr(item, "funcargs", {}).items() if name != "request"}
    try:
        return functions_under_test(function, arguments, getattr(item, "instance", None), project)
    except Exception:  # an object of the program that does not let itself be looked at
        return own


def _test_function(item: Any) -> FunctionType | None:
    """The function that a test was written as; None for items that are none (doctests)."""
    test = getattr(item, "obj", None)
    test = getattr(getattr(test, "hypothesis", None), "inner_test", test)  # below @given
    try:
        return next(callables.functions_of(test), None)
    except TypeError:
        return None
