"""Which functions of a report are meant: by a function, its name, or a list of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from .callables import parts_of
from .hints import did_you_mean
from .record_types import FunctionRecord
from .sources import file_label

#: Against objects whose ``__getattr__`` invents a new ``__wrapped__`` each time.
_MOST_LAYERS = 200


def labels(functions: Sequence[FunctionRecord]) -> tuple[str, ...]:
    """One distinct title a function: its qualname, longer only where two would be the same."""
    titles = [function.qualname for function in functions]
    for longer in (_with_module, _with_place, _with_path, _with_position):
        counts = Counter(titles)
        if len(counts) == len(titles):
            break
        titles = [
            title if counts[title] == 1 else longer(function, position)
            for position, (title, function) in enumerate(zip(titles, functions))
        ]
    return tuple(titles)


def _with_module(function: FunctionRecord, _position: int) -> str:
    return f"{function.module}.{function.qualname}" if function.module else function.qualname


def _with_place(function: FunctionRecord, position: int) -> str:
    place = f"{file_label(function.filename)}:{function.first_line}"
    return f"{_with_module(function, position)} ({place})"


def _with_path(function: FunctionRecord, position: int) -> str:
    return f"{_with_module(function, position)} ({function.filename}:{function.first_line})"


def _with_position(function: FunctionRecord, position: int) -> str:
    return f"{_with_path(function, position)} #{position + 1}"


def codes_of(func: Any) -> list[CodeType]:
    """The code objects behind a callable, outermost first; empty where there is none.

    Follows ``__wrapped__``, bound methods, ``classmethod``, ``staticmethod``, ``property``,
    ``cached_property``, ``partial``, ``partialmethod``, and objects whose class has a ``forward``
    (``nn.Module``) or ``__call__``.
    """
    codes: list[CodeType] = []
    seen: dict[int, Any] = {}  # keeps what it has seen alive: ids stay distinct
    waiting = [func]
    while waiting and len(seen) < _MOST_LAYERS:
        layer = waiting.pop(0)
        if id(layer) in seen:
            continue
        seen[id(layer)] = layer
        if isinstance(layer, CodeType):
            codes.append(layer)
        else:
            waiting.extend(_inner_layers(layer))
    return codes


def _inner_layers(layer: Any) -> Iterator[Any]:
    """What ``layer`` wraps, one step in."""
    if isinstance(layer, FunctionType):
        yield layer.__code__
    wrapped = (getattr(layer, name, None) for name in ("__wrapped__", "__func__"))
    found = [*parts_of(layer), *(value for value in wrapped if value is not None)]
    yield from found
    if not found and not isinstance(layer, (type, FunctionType, property)):
        for name in ("forward", "__call__"):
            method = getattr(type(layer), name, None)
            if isinstance(method, FunctionType):
                yield method


def select(functions: Sequence[FunctionRecord], func: Any = None) -> list[int]:
    """The positions in ``functions`` of those meant by ``func``, in the order asked for.

    ``func``: a function, a qualname (also with its module before it, or a report's title), or an
    iterable of them; None: all. A qualname that several functions share means all of them.

    Raises:
        ValueError: one is unknown; the message lists the known ones.
    """
    if func is None:
        return list(range(len(functions)))
    many = isinstance(func, Iterable) and not isinstance(func, str) and not callable(func)
    chosen: dict[int, None] = {}
    for wanted in func if many else (func,):
        found = _find(functions, wanted)
        if not found:
            raise ValueError(_unknown(functions, wanted))
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _find(functions: Sequence[FunctionRecord], wanted: Any) -> list[int]:
    matches: Callable[[int], bool]
    if isinstance(wanted, str):
        titles = labels(functions)

        def matches(i: int) -> bool:
            return wanted in (titles[i], functions[i].qualname, _with_module(functions[i], i))
    else:
        codes = codes_of(wanted)

        def matches(i: int) -> bool:
            return any(_is_code_of(functions[i], code) for code in codes)

    return [i for i in range(len(functions)) if matches(i)]


def _is_code_of(function: FunctionRecord, code: CodeType) -> bool:
    """By identity; for loaded records, which have no code object, by file, line and name."""
    if function.code is not None:
        return function.code is code
    return (function.filename, function.first_line, function.qualname.rpartition(".")[2]) == (
        code.co_filename,
        code.co_firstlineno,
        code.co_name,
    )


def _unknown(functions: Sequence[FunctionRecord], wanted: Any) -> str:
    known = labels(functions)
    name = wanted if isinstance(wanted, str) else getattr(wanted, "__qualname__", repr(wanted))
    hint = did_you_mean(str(name), known)
    listed = ", ".join(known) if known else "none was added"
    return f"no function {name!r} was profiled.{hint} Known functions: {listed}"
