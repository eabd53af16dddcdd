"""`MemReporter`: memory by tensor."""

from .reporter import MemReporter

__all__ = ["MemReporter"]
