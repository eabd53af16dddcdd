"""`gpus` and `columns`: the names that other commands take."""

from __future__ import annotations

import argparse

from ..data.columns import (
    CPU_FIELDS,
    DEFAULT_COLUMNS,
    DEFAULT_CPU_COLUMNS,
    MEMORY_STATS_KEYS,
    OWN_FIELDS,
    SAVED_FIELDS,
)
from ..simulate.models import GIB, PRESETS, GpuModel
from .outputs import print_text

_ROW = "{:13} {:>10}  {:>10}  {}"


def gpus(options: argparse.Namespace) -> int:
    """The GPUs that can be simulated; the exit status is returned."""
    rows = [_ROW.format("name", "memory", "capability", "card"), *(_row(*item) for item in PRESETS.items())]
    print_text("\n".join(rows) + "\n\nThe part before the hyphen is enough where one card has it: rtx4090.\n")
    return 0


def _row(name: str, card: GpuModel) -> str:
    capability = ".".join(map(str, card.capability))
    return _ROW.format(name, f"{card.total_memory / GIB:.2f} GiB", capability, card.name.removeprefix("Simulated "))


def columns(options: argparse.Namespace) -> int:
    """The columns that `-c` takes; the exit status is returned."""
    groups = {
        "shown by default on a GPU": DEFAULT_COLUMNS,
        "shown by default on the CPU": DEFAULT_CPU_COLUMNS,
        "of every device": ("hits", *OWN_FIELDS),
        "of the CPU": CPU_FIELDS,
        "of what autograd keeps for backward (run --saved)": SAVED_FIELDS,
        "of CUDA devices: the keys of torch.cuda.memory_stats()": MEMORY_STATS_KEYS,
    }
    parts = ["\n".join([f"{title}:", *(f"  {name}" for name in names)]) for title, names in groups.items()]
    print_text("\n\n".join(parts) + "\n\ndocs/columns.md says what each means.\n")
    return 0
