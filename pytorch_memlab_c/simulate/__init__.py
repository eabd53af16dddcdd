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

from .activation import ENVIRONMENT_VARIABLE, describe, enable, enable_from_environment, enable_named, is_enabled
from .availability import SimulationUnavailable
from .models import GpuModel, presets

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "GpuModel",
    "SimulationUnavailable",
    "describe",
    "enable",
    "enable_from_environment",
    "enable_named",
    "is_enabled",
    "presets",
]
