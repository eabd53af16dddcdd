"""Showing records: text and HTML, and the object a notebook displays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..data.tables import build_tables
from .files import write_file
from .holders import devices_of, render_holders
from .text import readable_size, render_text, write_text

if TYPE_CHECKING:
    from ..line_profiler.records import LineRecords

__all__ = ["RecordsDisplay", "readable_size", "render_text", "write_file", "write_text"]


class RecordsDisplay:
    """A report that shows itself: HTML with bars in a notebook, text elsewhere."""

    def __init__(
        self,
        records: LineRecords,
        func: Any = None,
        columns: str | Iterable[str] | None = None,
        device: Any = None,
    ) -> None:
        """Arguments and errors as for ``LineRecords.to_dataframe``; all is checked here."""
        self._tables = build_tables(records, func, columns, device)
        self._notes = records.notes
        self._records, self._func, self._device = records, func, device

    def __str__(self) -> str:
        from .sections import sections_text

        text = render_text(self._tables, self._notes, render_holders(self._records.holders, devices_of(self._tables)))
        return text + sections_text(self._records, func=self._func, device=self._device)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .holders_html import holders_fragment
        from .html import render_fragment
        from .sections import sections_html

        holders = holders_fragment(self._records.holders, devices_of(self._tables))
        sections = sections_html(self._records, self._func, self._device)
        return render_fragment(self._tables, self._notes, below=[holders, sections])
