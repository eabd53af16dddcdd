"""Reports from their files, and what is wrong with a file."""

from __future__ import annotations

from ..data.tables import build_tables
from ..line_profiler.records import LineRecords
from .usage import UsageError


def load_records(path: str) -> LineRecords:
    """The records of a report; `UsageError` for a file that is none."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a report of pytorch_memlab_c: no text") from None
    try:  # text that is no object would be taken for a path
        records = LineRecords.from_json(text if text.lstrip().startswith("{") else "{" + text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {error}") from None
    try:
        build_tables(records)
    except Exception as error:  # values of a kind that no report has
        raise UsageError(f"{path}: a damaged report of pytorch_memlab_c: {error!r}") from None
    return records
