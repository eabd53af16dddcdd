"""Wrappers that install the trace hook while a profiled function runs, and are otherwise not to be noticed.

The program must free and allocate as without them. A wrapper that held its arguments would keep tensors alive that the
function itself lets go (`del x`, `x = f(x)`); so it hands each argument over and keeps none. Python has no way to say
that for an unknown signature, hence a wrapper is compiled for the signature of each function.

Generators, coroutines and asynchronous generators are wrapped in one of their own kind, with the hook installed for
each stretch that they run.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
import sys
import textwrap
import types
from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

from .. import _native

_HEAD = """\
{prefix}def _pml_wrapper({parameters}):
    _pml_arguments = [{reversed}]
"""
_PLAIN = """\
    _pml_entries = []
    try:
        _pml_enter(_pml_entries)
        return {call}
    finally:
        del _pml_entries[:]
"""
_COUNTED = _PLAIN + "        _pml_left()\n"
_GENERATOR = """\
    try:
        return (yield from _pml_segments({call}))
    finally:
        _pml_finished()
"""
_COROUTINE = """\
    try:
        return await _pml_segments({call})
    finally:
        _pml_finished()
"""
_ASYNC_GENERATOR = """\
    _pml_inner = {call}
    _pml_value = []
    try:
        _pml_value.append(await _pml_segments(_pml_inner.__anext__()))
        while True:
            try:
                _pml_value.append((yield _pml_value.pop()))
            except GeneratorExit:
                await _pml_segments(_pml_inner.aclose())
                raise
            except BaseException as _pml_error:
                _pml_value.append(await _pml_segments(_pml_inner.athrow(_pml_error)))
            else:
                _pml_value.append(await _pml_segments(_pml_inner.asend(_pml_value.pop())))
    except StopAsyncIteration:
        return
    finally:
        _pml_finished()
"""


class ResumableSegments:
    """Runs a generator, coroutine or awaitable of one, with the hook installed for each stretch between suspensions."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __iter__(self) -> ResumableSegments:
        return self

    __await__ = __iter__

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Resume with the hook installed."""
        entries: list[Any] = []
        try:
            _native.enter(entries)
            return self._inner.send(value)
        except BaseException:
            self._inner = _OVER
            raise
        finally:
            del entries[:]

    def throw(self, *error: Any) -> Any:
        """Raise inside, with the hook installed."""
        entries: list[Any] = []
        try:
            _native.enter(entries)
            return self._inner.throw(*error)
        except BaseException:
            self._inner = _OVER
            raise
        finally:
            del error
            del entries[:]

    def close(self) -> None:
        """Close, with the hook installed."""
        entries: list[Any] = []
        try:
            _native.enter(entries)
            self._inner.close()
        finally:
            del entries[:]


#: What wrappers use of these, whatever a program has under their names.
_BUILTINS = ("BaseException", "GeneratorExit", "StopAsyncIteration", "len", "reversed", "tuple")

#: Calls of more arguments are not written out.
_MOST_WRITTEN_OUT = 64

#: In place of what has ended by an exception, whose traceback holds the frames above: it must not be held by them.
_OVER = (_ for _ in ())


def wrap(
    function: FunctionType,
    enter: Callable[[list[Any]], None],
    left: Callable[[], None] | None,
    finished: Callable[[], None],
    registration: object = None,
) -> FunctionType:
    """A function of the same kind, name, signature, defaults and globals that runs `function` under the hook.

    A plain function runs between `enter(entries)`, which appends to the list what installs the engine's hook as long as
    it lives, and `left()`, which is called after that was deleted. The others call `finished` at their end; for each
    stretch between suspensions they enter and leave the engine themselves. Leaving is no call: it cannot be refused at
    the recursion limit, nor interrupted.

    What the wrapper uses is in its closure, with all that the function's own closure has, and `registration`: so
    whatever reads a function's names (TorchScript), or copies it by value (cloudpickle), finds what belongs to it.
    """
    values = {
        **{name: getattr(builtins, name) for name in _BUILTINS},
        "_pml_function": function,
        "_pml_enter": enter,
        "_pml_left": left,
        "_pml_finished": finished,
        "_pml_segments": ResumableSegments,
        "_pml_written_out": _written_out,
        "_pml_registration": registration,
    }
    cells = {name: types.CellType(value) for name, value in values.items()}
    cells.update(zip(function.__code__.co_freevars, function.__closure__ or ()))
    code = _code(function, _COUNTED if left else _PLAIN, list(cells))
    closure = tuple(cells[name] for name in code.co_freevars)
    wrapper: Any = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    wrapper.__kwdefaults__ = function.__kwdefaults__
    if function.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE:
        wrapper = types.coroutine(wrapper)
    functools.update_wrapper(wrapper, function)
    return cast(FunctionType, wrapper)


def _code(function: FunctionType, plain: str, free: list[str]) -> types.CodeType:
    """The wrapper's, with all of `free` among its free variables, used or not."""
    parameters = _Parameters(function).names
    free = [name for name in free if name not in parameters]
    kept = ["_pml_registration", *(name for name in function.__code__.co_freevars if name in free)]
    use = f"    if False: {', '.join(kept)}\n"
    text = _source(function, plain, use)
    outer = f"def _pml_closure({', '.join(free)}):\n{textwrap.indent(text, ' ')}\n"
    (closure,) = _codes_in(compile(outer, "<pytorch_memlab_c wrapper>", "exec"))
    (wrapper,) = _codes_in(closure)
    return wrapper


def _codes_in(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _source(function: FunctionType, plain: str, use: str) -> str:
    body, prefix = _body(function, plain)
    parameters = _Parameters(function)
    delete = f"    del {', '.join(parameters.names)}\n" if parameters.names else ""
    reverse, call = parameters.written_out() if parameters.needs_writing_out() else parameters.passed_on()
    head = _HEAD.format(prefix=prefix, parameters=", ".join(parameters.declared), reversed=reverse)
    return head + delete + use + body.format(call=call)


def _body(function: FunctionType, plain: str) -> tuple[str, str]:
    flags = function.__code__.co_flags  # not what a mark on a plain function says
    if flags & inspect.CO_ASYNC_GENERATOR:
        return _ASYNC_GENERATOR, "async "
    if flags & inspect.CO_COROUTINE:
        return _COROUTINE, "async "
    return (_GENERATOR if flags & inspect.CO_GENERATOR else plain), ""


class _Parameters:
    """A function's parameters, and how a wrapper passes its arguments on.

    They come from a list in reverse order, which the wrapper empties.
    """

    def __init__(self, function: FunctionType) -> None:
        code = function.__code__
        names = list(code.co_varnames)
        self.positional = names[: code.co_argcount]
        self.keyword = names[code.co_argcount :][: code.co_kwonlyargcount]
        rest = names[code.co_argcount + code.co_kwonlyargcount :]
        self.star = [rest.pop(0)] if code.co_flags & inspect.CO_VARARGS else []
        self.double = [rest.pop(0)] if code.co_flags & inspect.CO_VARKEYWORDS else []
        self.names = self.positional + self.star + self.keyword + self.double
        self.declared = self._declared(code.co_posonlyargcount)

    def _declared(self, positional_only: int) -> list[str]:
        declared = self.positional.copy()
        if positional_only:
            declared.insert(positional_only, "/")
        declared += [f"*{name}" for name in self.star] or (["*"] if self.keyword else [])
        return declared + self.keyword + [f"**{name}" for name in self.double]

    def passed_on(self) -> tuple[str, str]:
        """The list's items, and the call."""
        before = [""] * len(self.positional) + ["*"] * len(self.star)
        before += [f"{name}=" for name in self.keyword] + ["**"] * len(self.double)
        call = [f"{prefix}_pml_arguments.pop()" for prefix in before]
        return ", ".join(reversed(self.names)), f"_pml_function({', '.join(call)})"

    def needs_writing_out(self) -> bool:
        """CPython 3.11 alone keeps the tuple and the dict of a call with `*` or `**` until it returns.

        3.12 and later hand their items over, and 3.10 keeps the arguments of every call.
        """
        return sys.version_info[:2] == (3, 11) and bool(self.star or self.double)

    def written_out(self) -> tuple[str, str]:
        """As `passed_on`, with each argument in `*` and `**` by itself."""
        backwards = [f"*reversed({name}.values())" for name in self.double] + self.keyword[::-1]
        backwards += [f"*reversed({name})" for name in self.star] + self.positional[::-1]
        backwards.append(" + ".join([repr(tuple(self.keyword)), *(f"tuple({name})" for name in self.double)]))
        return ", ".join(
            backwards
        ), "_pml_written_out(_pml_arguments.pop(), len(_pml_arguments))(_pml_function, _pml_arguments)"


@functools.lru_cache(maxsize=256)
def _written_out(names: tuple[str, ...], count: int) -> Callable[[Any, list[Any]], Any]:
    """Calls a function with `count` arguments from the end of a list, the last ones by these names."""
    positional = count - len(names)
    if count > _MOST_WRITTEN_OUT or not all(map(_can_be_written, names)):
        return lambda function, arguments: function(
            *[arguments.pop() for _ in range(positional)], **{name: arguments.pop() for name in names}
        )
    call = ["arguments.pop()"] * positional + [f"{name}=arguments.pop()" for name in names]
    namespace: dict[str, Any] = {}
    exec(f"def call(function, arguments):\n    return function({', '.join(call)})\n", namespace)
    written: Callable[[Any, list[Any]], Any] = namespace["call"]
    return written


def _can_be_written(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__"
