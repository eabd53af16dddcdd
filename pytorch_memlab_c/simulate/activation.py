"""Enabling the simulated GPU in this process, once; and what is enabled."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import Any

from ..data.torch_abi import DEVICE_COUNT
from ..engine import following
from ..engine.torch_import import after_torch_import
from . import environment, program_end
from .availability import SimulationUnavailable, check_build, check_platform, cuda_version_of_build
from .configuration import Configuration, devices_asked_for, parse_environment
from .library import driver_folder, interpose, load_runtime
from .models import GIB

ENVIRONMENT_VARIABLE = "PYTORCH_MEMLAB_SIMULATE"

_lock = threading.RLock()
_enabled: Configuration | None = None
_runtime: ctypes.CDLL | None = None


def _prepare_torch(torch: Any, runtime: ctypes.CDLL) -> None:
    """The part that needs torch: binds what is loaded to the simulation, and leaves out what it does not simulate."""
    interpose(runtime)
    torch.backends.cudnn.enabled = False
    if hasattr(torch.backends.cuda, "enable_cudnn_sdp"):  # since PyTorch 2.3
        torch.backends.cuda.enable_cudnn_sdp(False)
    # A profiler that is already active had its own pointers where these were just written.
    if following.is_following():
        following.prepare(again=True)


def _visible_devices(torch: Any) -> int | None:
    """The number of devices libc10_cuda sees. Asked of it directly: torch.cuda.device_count() may ask NVML."""
    library = Path(torch.__file__).parent / "lib" / "libc10_cuda.so"
    try:
        count = ctypes.CDLL(str(library))[DEVICE_COUNT]
    except (OSError, AttributeError):
        return None
    count.restype = ctypes.c_int8
    seen: int = count()
    return seen


def _take_over(torch: Any, runtime: ctypes.CDLL) -> None:
    """For a torch that is imported already."""
    _prepare_torch(torch, runtime)
    expected = ctypes.c_int(0)
    runtime.cudaGetDeviceCount(ctypes.byref(expected))
    runtime.cudaGetLastError()
    seen = _visible_devices(torch)
    if seen is not None and seen != expected.value:
        raise RuntimeError(
            f"PyTorch has already asked CUDA for its devices in this process (it found {seen}) and keeps the answer: "
            "call simulate.enable() earlier, before torch.cuda.is_available() and the like"
        )


def enable(
    preset: str | None = None,
    *,
    count: int = 1,
    memory: str | int | None = None,
    capability: tuple[int, int] | None = None,
) -> None:
    """Simulate CUDA devices in this process; before CUDA is first used, before or after ``import torch``.

    There is no way back: the process keeps the simulated devices until it ends. The same call again does nothing.

    Args:
        preset: the name of a card, see `presets`; ``"h100"`` is enough where one card has it.
        count: how many devices of that kind, 1 to 8.
        memory: instead of a preset, each device's memory: ``"24 GB"``, ``"512 MB"`` (GB is 2**30 bytes, as is GiB), or
            a number of bytes.
        capability: with `memory`, the compute capability, ``(8, 0)`` by default. PyTorch chooses by it, among other
            things, the size of its cuBLAS workspace.

    Raises:
        ValueError: an unknown preset, or a `count`, `memory` or `capability` that is none.
        SimulationUnavailable: (a RuntimeError) not Linux, PyTorch missing or without CUDA, libraries missing.
        RuntimeError: CUDA is in use in this process already, or other devices were enabled before.
    """
    _enable(devices_asked_for(preset, count, memory, capability))


def enable_named(text: str) -> None:
    """As `enable`, from what the environment variable takes, and set there too: for child processes.

    Raises:
        ValueError: it is not ``GPU[:COUNT]``; other errors as `enable`.
    """
    _enable(parse_environment(text))
    os.environ[ENVIRONMENT_VARIABLE] = text


def _enable(configuration: Configuration) -> None:
    global _enabled, _runtime
    with _lock:
        if _enabled == configuration:
            return
        if _enabled is not None:
            raise RuntimeError(f"this process simulates already: {describe()}; it cannot be changed")
        check_platform()
        torch = sys.modules.get("torch")
        check_build(cuda_version_of_build() if torch is None else torch.version.cuda)
        if torch is not None and torch.cuda.is_initialized():
            raise RuntimeError("CUDA is in use in this process already: call simulate.enable() before its first use")
        runtime = load_runtime(configuration)
        environment.prepare(driver_folder())
        program_end.register()
        if torch is None:
            after_torch_import(lambda module: _prepare_torch(module, runtime))
        else:
            _take_over(torch, runtime)
        _enabled, _runtime = configuration, runtime


def enable_from_environment(text: str) -> None:
    """What the start-up hook calls when torch is about to be imported (startup/ in native/simcuda).

    A wrong value stops the program, since it would run on something else than was asked for. Where there can be no
    simulated GPU at all, one line says so and the program runs without it.
    """
    try:
        _enable(parse_environment(text))
    except SimulationUnavailable as error:
        print(f"pytorch_memlab_c: {ENVIRONMENT_VARIABLE} has no effect: {error}", file=sys.stderr)
    except ValueError as error:
        raise ValueError(f"{ENVIRONMENT_VARIABLE}={text}: {error}") from None


def is_enabled() -> bool:
    """Whether this process runs on simulated devices."""
    return _enabled is not None


def describe() -> str:
    """One line about the devices, which says that they are simulated; or that there are none."""
    if _enabled is None:
        return "no simulated GPU"
    model, count = _enabled.model, _enabled.count
    major, minor = model.capability
    each = " each" if count > 1 else ""
    return (
        f"simulated: {count} x {model.name}, {model.total_memory / GIB:.2f} GiB{each}, "
        f"compute capability {major}.{minor}; kernels do not run"
    )
