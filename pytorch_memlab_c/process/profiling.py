"""Running a callable under ``torch.profiler``: one profiler at a time, and none left half open."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .. import _native
from .devices import Device

_ACTIVITY = {"cuda": "CUDA", "xpu": "XPU"}
_running = threading.Lock()


@contextlib.contextmanager
def alone(torch: Any) -> Iterator[None]:
    """Be the only profiler in the process.

    Raises:
        RuntimeError: a profiler is running, or prepared to run, in this process. It is not disturbed.
    """
    if not _running.acquire(blocking=False):
        raise RuntimeError(
            "another profile_workload is running in this process, perhaps on another thread; PyTorch has one profiler"
        )
    try:
        if _another_profiler(torch):
            raise RuntimeError(
                "another PyTorch profiler is running in this process; "
                "end it before profile_workload, which would stop it"
            )
        yield
    finally:
        _running.release()


def _another_profiler(torch: Any) -> bool:
    if getattr(torch.autograd.profiler, "_is_profiler_enabled", False) or torch.autograd._profiler_enabled():
        return True
    return any(map(_is_prepared, _native.walk_instances(torch.autograd.profiler.profile)))


def _is_prepared(profile: Any) -> bool:
    """Prepared by a schedule's warm-up but not started yet: a new one would take its place."""
    return bool(getattr(profile, "entered", False)) and getattr(profile, "kineto_results", None) is None


def run_profiled(torch: Any, fn: Callable[[], object], device: Device) -> Any:
    """Call `fn()` once under the profiler and give the finished `torch.profiler.profile`.

    An exception of `fn` passes through with the profiler stopped.

    Raises:
        RuntimeError: `fn` ran a profiler of its own, which ended this one.
    """
    profile = torch.profiler.profile(activities=_activities(torch, device), record_shapes=True, profile_memory=True)
    device.synchronize()
    _start(profile)
    try:
        fn()
        device.synchronize()
    finally:
        interrupted = not _running_still(torch)
        with contextlib.suppress(Exception) if interrupted else contextlib.nullcontext():
            profile.stop()
    if interrupted:
        raise RuntimeError(
            "the workload ran a PyTorch profiler of its own, which ended profile_workload's; there are no rows"
        )
    return profile


def _running_still(torch: Any) -> bool:
    return bool(torch.autograd._profiler_enabled() and getattr(torch.autograd.profiler, "_is_profiler_enabled", True))


def _start(profile: Any) -> None:
    try:
        profile.start()
    except BaseException:
        with contextlib.suppress(Exception):
            profile.stop()
        raise


def _activities(torch: Any, device: Device) -> list[Any]:
    activity = torch.profiler.ProfilerActivity
    wanted = [activity.CPU]
    name = _ACTIVITY.get(device.kind)
    if name is not None and hasattr(activity, name):
        wanted.append(getattr(activity, name))
    supported = torch.profiler.supported_activities()
    return [a for a in wanted if a in supported]
