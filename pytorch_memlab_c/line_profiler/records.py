"""``LineRecords``: what was counted for each line, and its exports as text, DataFrame, JSON, CSV and HTML."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..data import records_json
from ..data.records import Records
from ..data.tables import build_tables
from ..render.files import write_file
from ..render.frame import build_frame
from ..render.holders import holders_frame
from ..render.kinds import kind_frame
from ..render.report import report_text

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class LineRecords(Records):
    """Records that can be shown and exported."""

    def to_dataframe(
        self,
        func: Any = None,
        columns: str | Iterable[str] | None = None,
        device: Any = None,
        kind: str = "lines",
    ) -> pandas.DataFrame:
        """One row a source line (with ``device="all"``: a line and device that allocated).

        Index ``function`` and ``line``; the columns under their full names (Int64), ``device`` and
        ``code``. A line never run has hits 0 and missing values; so has a column that does not
        apply to the row's device. ``attrs["notes"]`` says what a text report says below its tables.

        Args:
            func: a function, its qualname, or a list of them; None: all.
            columns: names as ``columns.check_columns`` takes them; None: the device's defaults.
            device: "target", "all", "cpu", "cuda:N"; None: the records' own view.
            kind: "lines"; "holders": one row a line that held bytes at a device's peak, with
                ``device``, ``function``, ``file``, ``line``, ``kind``, ``bytes``, ``share`` and ``code``. Those of a
                device add up to its peak; the other arguments do not apply; "growth": a line's first and later runs
                apart, and whether it keeps growing; "saved": what autograd kept for backward. ``columns`` is for
                "lines"
                alone.

        Raises:
            ValueError: unknown kind, function, column or device, or a column that was not recorded.
        """
        if kind == "holders":
            frame = holders_frame(self.holders)
            frame.attrs["notes"] += self.notes
            return frame
        if kind != "lines":
            return kind_frame(self, kind, func, device)
        return build_frame(self, func, columns, device)

    def to_text(self, func: Any = None, columns: str | Iterable[str] | None = None, device: Any = None) -> str:
        """The text report; arguments and errors as for ``to_dataframe``."""
        return report_text(self, build_tables(self, func, columns, device), func, device)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """All records as JSON text with a version field; written to ``path`` too, whole or not."""
        text = records_json.dumps(self)
        if path is not None:
            write_file(path, text)
        return text

    @classmethod
    def from_json(cls, path_or_text: str | os.PathLike[str]) -> LineRecords:
        """What ``to_json`` gave, from the file or the text itself (a str that starts with ``{``).

        Raises:
            ValueError: not such a report, or written by a newer version.
        """
        if isinstance(path_or_text, str) and path_or_text.lstrip().startswith("{"):
            return cls(**records_json.loads(path_or_text))
        with open(path_or_text, encoding="utf-8") as file:
            return cls(**records_json.loads(file.read()))

    def to_csv(
        self,
        path: str | os.PathLike[str] | None = None,
        func: Any = None,
        columns: str | Iterable[str] | None = None,
        device: Any = None,
    ) -> str:
        """The rows of ``to_dataframe`` as CSV text; written to ``path`` too, whole or not."""
        frame = self.to_dataframe(func, columns, device)
        if sys.version_info < (3, 11):  # whose csv module cannot write this character
            frame = frame.replace("\0", r"\\x00", regex=True)
        text: str = frame.to_csv(lineterminator="\n")
        if path is not None:
            write_file(path, text)
        return text

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        func: Any = None,
        columns: str | Iterable[str] | None = None,
        device: Any = None,
    ) -> str:
        """One HTML page that needs no network; written to ``path`` too, whole or not at all.

        Functions are in the order of their peaks. Arguments and errors as for ``to_dataframe``.
        """
        from ..render.page import render_page  # hashlib loads OpenSSL: 5 ms

        text = render_page(self, func, columns, device)
        if path is not None:
            write_file(path, text)
        return text
