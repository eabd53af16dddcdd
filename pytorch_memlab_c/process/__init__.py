"""Whole-workload figures: the peak of a block, a callable, a command, and a profile of its operators."""

from .metrics import MetricResult
from .peak import PeakMeasurement, measure_peak_memory, peak_memory
from .report import WorkloadReport
from .rss import measure_peak_rss
from .workload import profile_workload

__all__ = [
    "MetricResult",
    "PeakMeasurement",
    "WorkloadReport",
    "measure_peak_memory",
    "measure_peak_rss",
    "peak_memory",
    "profile_workload",
]
