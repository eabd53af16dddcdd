"""Line-level memory profiler for PyTorch; see README.md. Importing it does not import PyTorch."""

from .decorators import clear_global_line_profiler, profile, profile_every
from .line_profiler import LineProfiler
from .records import LineRecords
from .target_device import set_target_gpu

__version__ = "0.1.0"

__all__ = [
    "LineProfiler",
    "LineRecords",
    "clear_global_line_profiler",
    "profile",
    "profile_every",
    "set_target_gpu",
]
