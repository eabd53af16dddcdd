"""DataFrames other than the lines' peaks: growth, and what autograd kept. See ``LineRecords.to_dataframe``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..data import advice
from ..data.columns import SAVED_FIELDS
from ..data.growth import growth_of
from ..data.line_devices import LineOnDevice, lines_on_devices
from ..data.records import Records

if TYPE_CHECKING:
    import pandas


_GROWTH_COLUMNS = {
    "runs": "runs",
    "net.first": "net_first",
    "net.later": "net_later",
    "net.later.max": "net_later_max",
    "net.later.last": "net_later_last",
}


def kind_frame(records: Records, kind: str, func: Any, device: Any) -> pandas.DataFrame:
    """The DataFrame of a kind other than "lines" and "holders".

    Raises:
        ValueError: there is no such kind, or it was not recorded.
    """
    if kind not in _KINDS:
        known = ", ".join(map(repr, ("lines", "holders", *_KINDS)))
        raise ValueError(f"unknown kind of table {kind!r}: one of {known} is meant")
    if kind == "saved" and not records.saved:
        raise ValueError(f"what autograd saves was not counted: ask for it with {advice.record_saved()}")
    frame: pandas.DataFrame = _KINDS[kind](list(lines_on_devices(records, func, device)))
    frame.attrs["notes"] = list(records.notes)
    return frame


def _growth_frame(found: Sequence[LineOnDevice]) -> pandas.DataFrame:
    ran = [place for place in found if place.record.on(place.device) is not None]
    stats: list[Any] = [place.record.on(place.device) for place in ran]
    growths = [growth_of(one, place.device) for place, one in zip(ran, stats)]
    columns: dict[str, list[Any]] = {
        column: [getattr(one, field) for one in stats] for column, field in _GROWTH_COLUMNS.items()
    }
    columns["bytes_per_run"] = [growth and growth.bytes_per_run for growth in growths]
    columns["held"] = [growth and growth.held for growth in growths]
    return _frame(ran, columns)


def _saved_frame(found: Sequence[LineOnDevice]) -> pandas.DataFrame:
    kept = [place for place in found if place.device in place.record.saved]
    return _frame(
        kept,
        {
            column: [getattr(place.record.saved[place.device], field) for place in kept]
            for column, field in SAVED_FIELDS.items()
        },
    )


def _frame(found: Sequence[LineOnDevice], numbers: dict[str, list[Any]]) -> pandas.DataFrame:
    import pandas

    functions = pandas.Index([place.label for place in found], dtype=object)
    lines = pandas.Index([place.record.line for place in found], dtype="int64")
    index = pandas.MultiIndex.from_arrays([functions, lines], names=["function", "line"])
    data: dict[str, Any] = {name: pandas.array(values, dtype="Int64") for name, values in numbers.items()}
    texts = {"device": [place.device for place in found], "code": [place.code for place in found]}
    data.update({name: pandas.array(values, dtype="string") for name, values in texts.items()})
    frame: pandas.DataFrame = pandas.DataFrame(data, index=index)
    return frame


_KINDS: dict[str, Callable[[Sequence[LineOnDevice]], Any]] = {"growth": _growth_frame, "saved": _saved_frame}
