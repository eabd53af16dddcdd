"""Line-level memory profiler for PyTorch; see README.md. Importing it does not import PyTorch.

PYTEST_DONT_REWRITE: where it is imported before pytest, pytest must not warn that it comes too late.
"""

from .chains import keepers
from .courtesy import Courtesy, YieldedMemory
from .data.version import __version__ as __version__
from .engine.target_device import set_target_gpu
from .line_profiler import LineProfiler
from .line_profiler.decorators import clear_global_line_profiler, print_stats, profile, profile_every
from .line_profiler.records import LineRecords
from .magics import load_ipython_extension, unload_ipython_extension
from .mem_reporter import MemReporter
from .process import MetricResult, measure_peak_memory, measure_peak_rss, peak_memory, profile_workload

__all__ = [
    "Courtesy",
    "LineProfiler",
    "LineRecords",
    "MemReporter",
    "MetricResult",
    "YieldedMemory",
    "clear_global_line_profiler",
    "keepers",
    "load_ipython_extension",
    "measure_peak_memory",
    "measure_peak_rss",
    "peak_memory",
    "print_stats",
    "profile",
    "profile_every",
    "profile_workload",
    "set_target_gpu",
    "unload_ipython_extension",
]
