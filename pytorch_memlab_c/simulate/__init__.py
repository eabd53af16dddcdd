"""A simulated CUDA GPU: PyTorch's own CUDA caching allocator, without a GPU.

:func:`enable` puts a small library in the place of the CUDA runtime. PyTorch's CUDA build then runs on
devices of a chosen size: it allocates, caches, splits, runs out of memory and records its statistics with
the code it uses on hardware. Kernels do nothing. So memory figures are meaningful, times and the values of
results are not. Copies between host and device are real; a tensor that nothing was copied to reads as zeros.

Everything here is simulated and says so (device names begin with ``Simulated``): it is no evidence about hardware.
What a real device adds and this one does not: the memory of the CUDA context (outside PyTorch's allocator),
workspaces of cuDNN and NCCL, and what depends on values (``nonzero`` finds nothing). Each process has the whole of
each simulated device to itself.

In code, before CUDA is first used (before or after ``import torch``)::

    from pytorch_memlab_c import simulate
    simulate.enable("h100-80gb", count=2)
    simulate.enable(memory="24 GB", capability=(8, 9))

For every Python process of an environment, also pytest and the workers of ``torchrun``::

    PYTORCH_MEMLAB_SIMULATE=h100-80gb:2
    PYTORCH_MEMLAB_SIMULATE=24GB@8.9:2

Importing this module does not import torch. Linux on x86-64 and AArch64.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine.torch_import import after_torch_import

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "GpuModel",
    "SimulationUnavailable",
    "describe",
    "enable",
    "enable_named",
    "is_enabled",
    "presets",
]

ENVIRONMENT_VARIABLE = "PYTORCH_MEMLAB_SIMULATE"
MAX_DEVICES = 8

# In this order: the shells that bear the names libcuda.so.1 and libnvidia-ml.so.1 depend on the first.
_LIBRARIES = ("libpml_simcudart.so", "libpml_simcuda.so", "libpml_simnvml.so")
_SUPPORTED_CUDA = (12, 13)  # those whose struct layouts native/simcuda/cuda_abi.h states

_MIB = 1 << 20
_GIB = 1 << 30


class SimulationUnavailable(RuntimeError):
    """The simulated GPU cannot work here: another OS, a PyTorch without CUDA, an incomplete installation."""


@dataclass(frozen=True)
class GpuModel:
    """What a simulated device reports of itself. Sizes are in bytes, `bus_width` in bits."""

    name: str
    total_memory: int
    capability: tuple[int, int]
    sm_count: int
    l2_size: int
    bus_width: int

    @property
    def threads_per_sm(self) -> int:
        """Resident threads of a multiprocessor (CUDA C Programming Guide, compute capabilities)."""
        if self.capability == (7, 5):
            return 1024
        return 2048 if self.capability in _DATA_CENTRE_CAPABILITIES else 1536

    @property
    def shared_per_sm(self) -> int:
        """Shared memory of a multiprocessor, from the same table."""
        return _SHARED_PER_SM.get(self.capability, 100) << 10

    @property
    def shared_per_block_optin(self) -> int:
        """Shared memory a block can ask for; from capability 8.0 on the system keeps 1 KiB of it."""
        return self.shared_per_sm - (1024 if self.capability >= (8, 0) else 0)


_DATA_CENTRE_CAPABILITIES = {(5, 0), (5, 2), (6, 0), (6, 1), (7, 0), (8, 0), (9, 0), (10, 0), (10, 3)}
_SHARED_PER_SM = {(7, 0): 96, (7, 5): 64, (8, 0): 164, (8, 7): 164, (9, 0): 228, (10, 0): 228, (10, 3): 228}


def _card(name: str, gib: float, capability: tuple[int, int], sms: int, l2_mib: int, bus: int) -> GpuModel:
    return GpuModel(f"Simulated NVIDIA {name}", int(gib * 1024) * _MIB, capability, sms, l2_mib * _MIB, bus)


# Memory: what PyTorch reports as the total capacity of such a card in its out-of-memory message. It is less than
# the size on the box; drivers differ by some 0.1 GiB.
_PRESETS: dict[str, GpuModel] = {
    "t4-16gb": _card("T4", 14.74, (7, 5), 40, 4, 256),
    "v100-32gb": _card("V100-SXM2-32GB", 31.73, (7, 0), 80, 6, 4096),
    "a10g-24gb": _card("A10G", 22.06, (8, 6), 80, 6, 384),
    "l4-24gb": _card("L4", 22.03, (8, 9), 58, 48, 192),
    "rtx3090-24gb": _card("GeForce RTX 3090", 23.55, (8, 6), 82, 6, 384),
    "rtx4090-24gb": _card("GeForce RTX 4090", 23.64, (8, 9), 128, 72, 384),
    "rtx5090-32gb": _card("GeForce RTX 5090", 31.36, (12, 0), 170, 96, 512),
    "a100-40gb": _card("A100-SXM4-40GB", 39.49, (8, 0), 108, 40, 5120),
    "a100-80gb": _card("A100-SXM4-80GB", 79.25, (8, 0), 108, 40, 5120),
    "h100-80gb": _card("H100 80GB HBM3", 79.11, (9, 0), 132, 50, 5120),
    "h200-141gb": _card("H200", 139.80, (9, 0), 132, 60, 6144),
    "b200-180gb": _card("B200", 178.35, (10, 0), 148, 126, 8192),
}


def presets() -> dict[str, GpuModel]:
    """The names that :func:`enable` takes, and what each stands for."""
    return dict(_PRESETS)


@dataclass(frozen=True)
class _Configuration:
    model: GpuModel
    count: int


_lock = threading.RLock()
_enabled: _Configuration | None = None
_runtime: ctypes.CDLL | None = None


# ---- what the user asks for ----


def _parse_memory(memory: str | int) -> int:
    """Bytes of ``"24 GB"``, ``"512 MiB"`` or a number of bytes. GB and GiB both mean 2**30, as on GPU boxes."""
    if isinstance(memory, int) and not isinstance(memory, bool):
        size = memory
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([MG])(?:i?B)\s*", memory) if isinstance(memory, str) else None
        if match is None:
            raise ValueError(f'memory={memory!r} is not a size: write it like "24 GB" or "512 MiB", or in bytes')
        size = int(float(match[1]) * (_GIB if match[2] == "G" else _MIB))
    if not 2 * _MIB <= size <= 1 << 44:
        raise ValueError(f"memory={memory!r} is not a device's memory: it must be from 2 MiB to 16384 GiB")
    return size


def _check_capability(capability: Sequence[int]) -> tuple[int, int]:
    numbers = tuple(capability) if isinstance(capability, (tuple, list)) else ()
    if (
        len(numbers) != 2
        or not all(type(n) is int for n in numbers)
        or not (5 <= numbers[0] <= 20 and 0 <= numbers[1] <= 9)
    ):
        raise ValueError(f"capability={capability!r} is not a compute capability: write it like (8, 9)")
    return numbers[0], numbers[1]


def _find_preset(preset: str) -> GpuModel:
    model = _PRESETS.get(preset.strip().lower()) if isinstance(preset, str) else None
    if model is None:
        raise ValueError(f"unknown GPU {preset!r}; there are: {', '.join(_PRESETS)}")
    return model


def _custom_model(memory: str | int, capability: Sequence[int] | None) -> GpuModel:
    size = _parse_memory(memory)
    name = f"Simulated GPU {size / _GIB:g} GB" if size >= _GIB else f"Simulated GPU {size / _MIB:g} MB"
    return GpuModel(name, size, _check_capability(capability or (8, 0)), 100, 40 * _MIB, 384)


def _configuration(
    preset: str | None, count: int, memory: str | int | None, capability: Sequence[int] | None
) -> _Configuration:
    if type(count) is not int or not 1 <= count <= MAX_DEVICES:
        raise ValueError(f"count={count!r}: the number of devices is from 1 to {MAX_DEVICES}")
    if preset is not None and (memory is not None or capability is not None):
        raise ValueError("give a preset, or memory= and capability=, not both")
    if preset is not None:
        return _Configuration(_find_preset(preset), count)
    if memory is None:
        raise ValueError(f'give a preset ({", ".join(_PRESETS)}) or memory="24 GB"')
    return _Configuration(_custom_model(memory, capability), count)


def _parse_environment(text: str) -> _Configuration:
    """``GPU[:COUNT]``, where GPU is a preset, or ``MEMORY[@CAPABILITY]`` such as ``24GB@8.9``."""
    gpu, colon, count = text.partition(":")
    memory, at, capability = gpu.partition("@")
    if colon and not count.strip().isdecimal():
        raise ValueError(f"{count!r} is not a number of devices")
    devices = int(count) if colon else 1
    if not at and not re.match(r"\s*[\d.]+\s*[MG]i?B\s*$", memory):
        return _configuration(gpu, devices, None, None)
    numbers = re.fullmatch(r"\s*(\d+)\.(\d+)\s*", capability) if at else None
    if at and numbers is None:
        raise ValueError(f"{capability!r} is not a compute capability: write it like 8.9")
    return _configuration(None, devices, memory, (int(numbers[1]), int(numbers[2])) if numbers else None)


# ---- the PyTorch it is for ----


def _cuda_version_of_build() -> str | None:
    """The CUDA version PyTorch was built for, or None; read from its files, without importing it."""
    # Not importlib.util.find_spec: that would ask the start-up hook, which would enable what the variable says.
    spec = importlib.machinery.PathFinder.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise SimulationUnavailable("PyTorch is not installed: the simulated GPU needs its CUDA build")
    try:
        text = (Path(list(spec.submodule_search_locations)[0]) / "version.py").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    match = re.search(r"^cuda\s*(?::[^=]*)?=\s*(?:None|['\"]([^'\"]*)['\"])", text, re.MULTILINE)
    return match[1] if match else "unknown"


def _check_platform() -> None:
    if not sys.platform.startswith("linux"):
        raise SimulationUnavailable(f"the simulated GPU needs Linux; this is {sys.platform}")


def _check_build(version: str | None) -> None:
    if version is None:
        raise SimulationUnavailable(
            "this PyTorch is a CPU-only build: the simulated GPU needs the CUDA build of PyTorch "
            "(no driver and no GPU are needed for it); see https://pytorch.org/get-started/locally/"
        )
    major = version.split(".")[0]
    if major.isdecimal() and int(major) not in _SUPPORTED_CUDA:
        known = " and ".join(map(str, _SUPPORTED_CUDA))
        raise SimulationUnavailable(f"this PyTorch is built for CUDA {version}; the simulated GPU knows CUDA {known}")


# ---- the library ----


class _Spec(ctypes.Structure):
    """pml_sim_spec of native/simcuda/sim.h."""

    _fields_ = [
        ("name", ctypes.c_char * 256),
        ("total_memory", ctypes.c_uint64),
        ("major", ctypes.c_int32),
        ("minor", ctypes.c_int32),
        ("sm_count", ctypes.c_int32),
        ("threads_per_sm", ctypes.c_int32),
        ("shared_per_sm", ctypes.c_int32),
        ("shared_per_block_optin", ctypes.c_int32),
        ("l2_size", ctypes.c_int32),
        ("bus_width", ctypes.c_int32),
    ]


def _library_folder() -> Path:
    # An editable installation has the libraries in another folder of the package than this file.
    package = sys.modules.get("pytorch_memlab_c")
    folders = [Path(__file__).parent.parent, *map(Path, getattr(package, "__path__", []))]
    for folder in folders:
        if all((folder / name).exists() for name in _LIBRARIES):
            return folder
    raise SimulationUnavailable(f"{_LIBRARIES[0]} is not beside the package: this installation was built without it")


def _load_runtime(configuration: _Configuration) -> ctypes.CDLL:
    """Loads the libraries into the global scope, where their symbols win over those of libraries loaded later."""
    folder = _library_folder()
    try:
        runtime, *_ = [ctypes.CDLL(str(folder / name), mode=os.RTLD_NOW | os.RTLD_GLOBAL) for name in _LIBRARIES]
    except OSError as error:
        raise SimulationUnavailable(f"the simulated GPU cannot be loaded: {error}") from error
    model = configuration.model
    spec = _Spec(
        name=model.name.encode(),
        total_memory=model.total_memory,
        major=model.capability[0],
        minor=model.capability[1],
        sm_count=model.sm_count,
        threads_per_sm=model.threads_per_sm,
        shared_per_sm=model.shared_per_sm,
        shared_per_block_optin=model.shared_per_block_optin,
        l2_size=model.l2_size,
        bus_width=model.bus_width,
    )
    if runtime.pml_simcuda_configure(ctypes.byref(spec), configuration.count) != 0:
        raise RuntimeError("the simulated GPU was set up before in this process, with other parameters")
    return runtime


def _interpose(runtime: ctypes.CDLL) -> None:
    if runtime.pml_simcuda_interpose() < 0:
        raise RuntimeError("the simulated GPU cannot take the place of the CUDA runtime: the system refuses the change")


# ---- setting PyTorch up ----


def _prepare_torch(torch: Any, runtime: ctypes.CDLL) -> None:
    """The part that needs torch: binds what is loaded to the simulation, and leaves out what it does not simulate."""
    _interpose(runtime)
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.enable_cudnn_sdp(False)
    # A profiler that is already at work had hooks in the places that were just rewritten.
    following = sys.modules.get("pytorch_memlab_c.engine.following")
    if following is not None and following._followed is not None:
        following.prepare(again=True)


def _visible_devices(torch: Any) -> int | None:
    """The number of devices libc10_cuda sees. Asked of it directly: torch.cuda.device_count() may ask NVML."""
    library = Path(torch.__file__).parent / "lib" / "libc10_cuda.so"
    try:
        count = ctypes.CDLL(str(library))["_ZN3c104cuda12device_countEv"]
    except (OSError, AttributeError):
        return None
    count.restype = ctypes.c_int8
    return count()


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


# ---- the API ----


def enable(
    preset: str | None = None,
    *,
    count: int = 1,
    memory: str | int | None = None,
    capability: tuple[int, int] | None = None,
) -> None:
    """Simulate CUDA devices in this process; before CUDA is first used, before or after ``import torch``.

    :param preset: the name of a card, see :func:`presets`.
    :param count: how many devices of that kind, 1 to 8.
    :param memory: instead of a preset, each device's memory: ``"24 GB"``, ``"512 MB"`` (GB is 2**30 bytes, as is GiB),
        or a number of bytes.
    :param capability: with `memory`, the compute capability, ``(8, 0)`` by default. PyTorch chooses by it, among other
        things, the size of its cuBLAS workspace.

    There is no way back: the process keeps the simulated devices until it ends. The same call again does nothing.

    :raises ValueError: an unknown preset, a `count`, `memory` or `capability` that is none.
    :raises SimulationUnavailable: (a RuntimeError) not Linux, PyTorch missing or without CUDA, libraries missing.
    :raises RuntimeError: CUDA is in use in this process already, or other devices were enabled before.
    """
    _enable(_configuration(preset, count, memory, capability))


def enable_named(text: str) -> None:
    """As :func:`enable`, from what the environment variable takes, and set there too: for child processes.

    :raises ValueError: it is not ``GPU[:COUNT]``; other errors as :func:`enable`.
    """
    _enable(_parse_environment(text))
    os.environ[ENVIRONMENT_VARIABLE] = text


def _enable(configuration: _Configuration) -> None:
    global _enabled, _runtime
    with _lock:
        if _enabled == configuration:
            return
        if _enabled is not None:
            raise RuntimeError(f"this process simulates already: {describe()}; it cannot be changed")
        _check_platform()
        torch = sys.modules.get("torch")
        _check_build(_cuda_version_of_build() if torch is None else torch.version.cuda)
        if torch is not None and torch.cuda.is_initialized():
            raise RuntimeError("CUDA is in use in this process already: call simulate.enable() before its first use")
        runtime = _load_runtime(configuration)
        # Kernels compiled at run time are empty here: they must not get into the cache that real devices use.
        os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"
        if torch is None:
            after_torch_import(lambda module: _prepare_torch(module, runtime))
        else:
            _take_over(torch, runtime)
        _enabled, _runtime = configuration, runtime


def _enable_from_environment(text: str) -> None:
    """What the start-up hook calls when torch is about to be imported (startup/ in native/simcuda).

    A wrong value stops the program, since it would run on something else than was asked for. Where there can be no
    simulated GPU at all, one line says so and the program goes on without it.
    """
    try:
        _enable(_parse_environment(text))
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
        f"simulated: {count} x {model.name}, {model.total_memory / _GIB:.2f} GiB{each}, "
        f"compute capability {major}.{minor}; kernels do not run"
    )
