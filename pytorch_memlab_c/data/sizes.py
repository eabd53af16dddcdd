"""Sizes as people write them: `"24 GB"`, `"1.5 MiB"`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_UNITS = "B, KB, MB, GB, TB (or KiB, MiB, ...; powers of 1024 both)"


def parse_size(text: Any) -> int:
    """Bytes of `"200 MB"`, `"1.5 GiB"`, `"512 B"`; MB and MiB are both 2**20 bytes, as everywhere in this package.

    Raises:
        ValueError: it is not a size. The message is the end of a sentence that begins with the text: "is negative".
    """
    if not isinstance(text, str):
        raise ValueError('has no unit: write it as text, like "200 MB"')
    match = re.fullmatch(r"([+-]?)(\d+(?:\.\d+)?|\.\d+) ?([^\d\s.]*)", text, re.ASCII)
    if match is None:
        raise ValueError('is not a size: write it like "200 MB"')
    sign, number, unit = match.groups()
    if sign == "-":
        raise ValueError("is negative")
    if not unit:
        raise ValueError(f"has no unit; units are {_UNITS}")
    if not re.fullmatch("B|[KMGT]i?B", unit):
        raise ValueError(f"has the unknown unit {unit!r}; units are {_UNITS}")
    return int(Decimal(number) * 1024 ** _POWERS[unit[0]])


def is_size(text: str) -> bool:
    """Whether `parse_size` takes it."""
    try:
        parse_size(text)
    except ValueError:
        return False
    return True
