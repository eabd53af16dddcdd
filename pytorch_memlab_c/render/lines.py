"""Lines of a report as text: each with its look in a terminal, which a pipe or a file does not have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: Legible on light and on dark.
TITLE, ALARM, MARKED, FAINT = "bold", "bold red", "bold magenta", "dim"


class Line(NamedTuple):
    """`style` is one of rich's. A terminal crops a `row` to its width, and wraps other lines."""

    text: str
    style: str = ""
    row: bool = False


Block = list[Line]


def joined(blocks: Iterable[Block], between: int = 1) -> Block:
    """One below the other, with so many empty lines in between; empty ones are left out."""
    lines: Block = []
    for block in filter(None, blocks):
        lines += [Line("")] * (between if lines else 0) + block
    return lines


def plain(lines: Iterable[Line]) -> str:
    """The text alone; each line ends."""
    return "".join(f"{line.text}\n" for line in lines)
