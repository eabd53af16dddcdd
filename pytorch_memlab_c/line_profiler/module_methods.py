"""Which profiled functions are methods of modules, and of how many.

A line of theirs runs again only when it runs for the same module again (growth.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any

from .. import _native
from ..data.growth import History, growth_of
from ..data.record_types import FunctionRecord, LineRecord, Stats
from . import callables

if TYPE_CHECKING:
    from .records import LineRecords

#: Methods whose loops go through a module's parts.
_OF_PARTS = frozenset({"forward", "__init__"})


def with_modules(records: LineRecords, torch: Any) -> LineRecords:
    """The records with what is known of modules where growth depends on it. `torch`: None where it was not imported."""
    if torch is None or not any(map(_grows, records.functions)):
        return records
    modules = _modules_by_code(torch.nn.Module)
    return replace(records, functions=tuple(_with_modules(function, modules) for function in records.functions))


def _grows(function: FunctionRecord) -> bool:
    return any(growth_of(stats, device) for line in function.lines for device, stats in line.stats.items())


def _with_modules(function: FunctionRecord, modules: Counter[int]) -> FunctionRecord:
    code = function.code
    if code is None or id(code) not in modules:
        return function
    count, parts = modules[id(code)], code.co_name in _OF_PARTS
    return replace(function, lines=tuple(_line_with_modules(line, count, parts) for line in function.lines))


def _line_with_modules(line: LineRecord, count: int, parts: bool) -> LineRecord:
    return replace(line, stats={device: _stats_with(stats, count, parts) for device, stats in line.stats.items()})


def _stats_with(stats: Stats, count: int, parts: bool) -> Stats:
    """Where no module is left, and nothing that the line held, what it held was the modules' own: nothing grew."""
    history: History | None = stats.growth
    if history is None or (count == 0 and history.live == 0):
        return stats._replace(growth=None)
    return stats._replace(growth=history._replace(modules=max(count, 1), parts=parts))


def _modules_by_code(base: type) -> Counter[int]:
    """How many live modules each method belongs to, by the id of its code."""
    live = Counter(map(type, _native.walk_instances(base)))
    found: Counter[int] = Counter()
    for cls in _subclasses(base):
        found.update(dict.fromkeys(_codes(cls), live[cls]))
    return found


def _subclasses(base: type) -> Iterator[type]:
    waiting, seen = [base], {base}
    while waiting:
        cls = waiting.pop()
        yield cls
        derived: list[type] = type.__subclasses__(cls)
        waiting += [one for one in derived if one not in seen]
        seen.update(derived)


def _codes(cls: type) -> set[int]:
    """Of the methods that its objects have, inherited ones included."""
    names: dict[str, Any] = {}
    for owner in reversed(type.mro(cls)):
        names.update(type.__getattribute__(owner, "__dict__"))
    return {id(code) for value in names.values() for code in _codes_of(value)}


def _codes_of(value: Any) -> list[CodeType]:
    functions = callables.functions_if_any(value)  # what a decorator wraps may be code in C
    return [function.__code__ for function in functions if hasattr(function, "__code__")]
