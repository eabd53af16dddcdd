"""`LineRecords` under its public path."""

from .line_profiler.records import LineRecords as LineRecords
