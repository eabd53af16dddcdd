"""The libraries that take the place of the CUDA runtime, the driver and NVML."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from .availability import SimulationUnavailable
from .configuration import Configuration

# In this order: libraries with the names libcuda.so.1 and libnvidia-ml.so.1 depend on the first.
_DRIVER_FOLDER = "simulated_driver"
_LIBRARIES = (
    "libpml_simcudart.so",
    f"{_DRIVER_FOLDER}/libcuda.so.1",
    f"{_DRIVER_FOLDER}/libnvidia-ml.so.1",
)


class _Spec(ctypes.Structure):
    """`struct sim_spec` of native/simcuda/sim.h."""

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


def driver_folder() -> Path:
    """The folder with a libcuda.so.1 that programs can be linked to."""
    return _library_folder() / _DRIVER_FOLDER


def load_runtime(configuration: Configuration) -> ctypes.CDLL:
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


def interpose(runtime: ctypes.CDLL) -> None:
    """Bind PyTorch's CUDA calls to the simulation.

    Raises:
        RuntimeError: the system refuses the change.
    """
    if runtime.pml_simcuda_interpose() < 0:
        raise RuntimeError("the simulated GPU cannot take the place of the CUDA runtime: the system refuses the change")
