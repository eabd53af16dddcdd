"""The layout of the rows that the reader in C hands over as buffers (native/snapshot/rows.h, replay.h)."""

from __future__ import annotations

import numpy

ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
    "other",
)
ALLOC, OOM = ACTIONS.index("alloc"), ACTIONS.index("oom")
SETTING_BITS = 24
NEVER = 0xFFFFFFFF

EVENT = numpy.dtype([("address", "u8"), ("size", "u8"), ("time", "i8"), ("stack", "u4"), ("packed", "u4")])
ALLOCATION = numpy.dtype(
    [("address", "u8"), ("size", "u8"), ("requested", "u8")]
    + [(name, "u4") for name in ("made", "released", "freed", "stack", "setting", "flags")]
)
FRAME = numpy.dtype([("function", "u4"), ("file", "u4"), ("line", "i4")])
STACK = numpy.dtype([("first", "u8"), ("count", "u4"), ("unused", "u4")])
SPAN = numpy.dtype([("start", "u8"), ("end", "u8"), ("setting", "u4"), ("expandable", "u4")])
STRETCH = numpy.dtype(
    [("allocated", "u8"), ("active", "u8"), ("reserved", "u8"), ("least_active", "u8"), ("most_reserved", "u8")]
    + [("moment", "u4"), ("unused", "u4")]
)
FIGURES = numpy.dtype(
    [(name, "u8") for name in ("allocated", "times", "peak", "live", "live_blocks", "freed")]
    + [("median_life", "i8"), ("peak_moment", "u4"), ("unused", "u4"), ("before", "u8")]
)
