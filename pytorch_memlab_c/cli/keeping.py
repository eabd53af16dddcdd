"""`run`: what kept the largest tensors alive when memory ran out, or at the end of a program with lines that grow."""

from __future__ import annotations

from typing import Any

from ..chains.groups import keepers_by_device
from ..chains.keepers import census_of_now
from ..data.device_names import CPU, device_order
from ..data.growth import growth_of
from ..data.keeper_types import AT_THE_END, OUT_OF_MEMORY, KeeperRecords, KeptBy
from ..engine import following
from ..line_profiler.records import LineRecords
from ..line_profiler.uncaught import is_out_of_memory

_MOST_ROWS = 10


def when_memory_ran_out(error: BaseException) -> KeeperRecords:
    """The keepers now, if this error, which nothing has caught, says that memory ran out."""
    return _keepers(OUT_OF_MEMORY, None) if is_out_of_memory(error) else KeeperRecords()


def of_growing_lines(records: LineRecords) -> KeeperRecords:
    """The keepers now, on the devices on which lines grow."""
    growing = {
        device
        for function in records.functions
        for line in function.lines
        for device, stats in line.stats.items()
        if growth_of(stats, device) is not None
    }
    return _keepers(AT_THE_END, growing) if growing else KeeperRecords()


def _keepers(when: str, devices: set[str] | None) -> KeeperRecords:
    """On these devices; None: on all but the CPU, or on the CPU where there is no other."""
    torch = following.torch_module()
    try:
        return KeeperRecords() if torch is None else KeeperRecords(when, _rows(torch, devices))
    except Exception:  # the report is worth more than this part of it
        return KeeperRecords()


def _rows(torch: Any, devices: set[str] | None) -> tuple[KeptBy, ...]:
    with census_of_now(torch) as census:
        by_device = {name: [one for one in held if one.counted] for name, held in census.by_device().items()}
        used = {name for name, held in by_device.items() if held}
        wanted = devices if devices is not None else used - {CPU} or used
        chosen = {name: by_device[name] for name in sorted(used & wanted, key=device_order)}
        found = keepers_by_device(torch, census, chosen, _MOST_ROWS)
        return tuple(
            KeptBy(name, row.nbytes, row.number, row.text) for name, kept in found.items() for row in kept.rows
        )
