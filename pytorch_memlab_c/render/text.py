"""What all text of reports shares: sizes, names and code as they can be shown, columns, and writing to a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from ..data.columns import is_bytes
from ..data.device_names import CPU, TARGET
from ..data.sources import file_label
from ..data.tables import Table

NO_FUNCTIONS = "no function was added: give functions to LineProfiler(...), decorate with @profile, or name them by -f"
_UNITS = "BKMGTPE"
#: Control characters and line separators, which would break a row, and marks of the writing direction, which would show
#: other code than what runs, and halves of characters, which no file can hold, as escapes; no form feed.
_CONTROL: dict[int, str] = {
    **{i: f"\\x{i:02x}" for i in (*range(32), *range(127, 160))},
    **{
        i: f"\\u{i:04x}"
        for i in (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000))
    },
    ord("\f"): "",
}
_CONTROL_IN_TEXT = {code: shown for code, shown in _CONTROL.items() if chr(code) not in "\n\t"}


def place_of(filename: str | None, line: int | None, function: str | None) -> str:
    """A line, as all sections name it: ``file.py:12 in function``; a notebook's cell is not named twice."""
    file = file_label(filename or "?")
    return clean(f"{file}:{line}" + ("" if function == file else f" in {function}"))


def readable_size(num_bytes: int | None) -> str:
    """Bytes as ``512.00B``, ``40.00K``, ``2.00M``, ... in powers of 1024; ``""`` for None."""
    if num_bytes is None:
        return ""
    size = float(abs(num_bytes))
    unit = 0
    while round(size, 2) >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{'-' if num_bytes < 0 else ''}{size:.2f}{_UNITS[unit]}"


def clean_code(line: str) -> str:
    """A source line as it can be shown: tabs to columns of 8, no control characters."""
    return clean(line.expandtabs(8)).rstrip()


def clean(text: str) -> str:
    """A name or a note, which may be a stranger's, as it can be shown: in one line, and no terminal obeys it."""
    return text.translate(_CONTROL)


def first_few(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def device_line(table: Table) -> str | None:
    """Which device the table shows, where neither its heading nor its rows name it.

    None for ``cuda:0`` too: a table that says nothing is about the first GPU.
    """
    if table.heading != table.label or len(table.devices) != 1 or table.devices[0] == "cuda:0":
        return None
    scope = " (tensor bytes)" if table.devices[0] == CPU else ""
    return f"device: {table.devices[0]}{scope}"


def shows_device_column(table: Table) -> bool:
    """Whether the table's lines were charged to several devices, so that each must say which."""
    return table.view == TARGET and len(table.devices) > 1


def show_value(column: str, value: int | None) -> str:
    """A cell: a size for byte columns, else the plain number; blank where it is missing."""
    if is_bytes(column):
        return readable_size(value)
    return "" if value is None else str(value)


def titled_notes(table: Table) -> list[str]:
    """The reasons why the table is empty, each with the function's title before it."""
    return [clean(f"{table.label}: {note}") for note in table.notes]


def write_text(stream: TextIO, text: str) -> None:
    r"""Write to ``stream``; what its encoding cannot hold is written as ``\xe9``, ``\u4e2d``.

    Whatever a report took over from a file, no terminal obeys it.
    """
    write_as_it_is(stream, text.translate(_CONTROL_IN_TEXT))


def write_as_it_is(stream: TextIO, text: str) -> None:
    """The same for text that has codes for the terminal, and nothing else that a terminal would obey."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, errors="backslashreplace").decode(encoding))


def right_column(header: Sequence[str], height: int, values: list[str]) -> list[str]:
    """A column under its header rows, padded to ``height`` of them, all right-aligned."""
    cells = [*header, *[""] * (height - len(header)), *values]
    width = max(map(len, cells))
    return [cell.rjust(width) for cell in cells]
