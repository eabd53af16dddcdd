"""A report in a terminal: in its width, with colours. Elsewhere it is plain text, as long as its lines are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TextIO

from .lines import Line, plain
from .text import clean, write_as_it_is, write_text

#: When there are colours: in a terminal, in any case, or never.
COLORS = ("auto", "always", "never")
_NO_WIDTH = 100_000


def write_report(stream: TextIO, lines: Iterable[Line], color: str = "auto") -> None:
    """Write a report. NO_COLOR and TERM=dumb are followed where `color` is "auto"."""
    terminal = _is_terminal(stream)
    if terminal or color == "always":
        write_as_it_is(stream, _rendered(stream, lines, terminal, color))
    else:
        write_text(stream, plain(lines))


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # no real stream, or a closed one
        return False


def _rendered(stream: TextIO, lines: Iterable[Line], terminal: bool, color: str) -> str:
    from rich.console import Console  # half of a tenth of a second, for terminals alone
    from rich.text import Text

    forced = {"always": True, "never": True, "auto": None}[color]
    console = Console(
        file=stream,
        force_terminal=forced,
        no_color={"always": False, "never": True, "auto": None}[color],
        color_system="standard" if color == "always" else "auto",
        width=None if terminal else _NO_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        for line in _in_width(lines, console.width):
            style = line.style if color != "never" else ""
            console.print(Text(line.text, style=style), no_wrap=True, overflow="crop", crop=True)
    return captured.get()


def _in_width(lines: Iterable[Line], width: int) -> Iterator[Line]:
    for line in lines:
        text = clean(line.text)
        if line.row or len(text) <= width:
            yield line._replace(text=text)
        else:
            indent = " " * (len(text) - len(text.lstrip()) + 2)
            wrapped = textwrap.wrap(text, max(width, 20), subsequent_indent=indent, break_on_hyphens=False)
            yield from (line._replace(text=part) for part in wrapped)
