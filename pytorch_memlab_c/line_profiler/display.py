"""The object that a notebook or an interactive session shows for a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..data.records import Records
from ..data.tables import build_tables
from ..render.holders import devices_of
from ..render.holders_html import holders_fragment
from ..render.html import render_fragment
from ..render.report import report_text
from ..render.sections import sections_html


class RecordsDisplay:
    """A report that shows itself: HTML with bars in a notebook, text elsewhere."""

    def __init__(
        self,
        records: Records,
        func: Any = None,
        columns: str | Iterable[str] | None = None,
        device: Any = None,
    ) -> None:
        """Arguments and errors as for ``LineRecords.to_dataframe``; all is checked here."""
        self._tables = build_tables(records, func, columns, device)
        self._records, self._func, self._device = records, func, device

    def __str__(self) -> str:
        return report_text(self._records, self._tables, self._func, self._device)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        holders = holders_fragment(self._records.holders, devices_of(self._tables))
        sections = sections_html(self._records, self._func, self._device)
        return render_fragment(self._tables, self._records.notes, below=[holders, sections])
