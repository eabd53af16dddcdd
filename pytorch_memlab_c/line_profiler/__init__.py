"""`LineProfiler`, the decorators and `LineRecords`: memory by source line."""

from .profiler import LineProfiler

__all__ = ["LineProfiler"]
