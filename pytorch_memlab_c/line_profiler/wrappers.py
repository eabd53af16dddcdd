"""Wrappers that install the trace hook while a profiled function runs, and are otherwise not to be noticed.

The program must free and allocate as without them. A wrapper that held its arguments would keep tensors alive that the
function itself lets go (`del x`, `x = f(x)`); so it hands each argument over and keeps none. Python has no way to say
that for an unknown signature, hence a wrapper is compiled for the signature of each function.

Generators, coroutines and asynchronous generators are wrapped in one of their own kind, with the hook installed for
each stretch that they run.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

from .. import _native
from . import call_shapes

_HEAD = """\
{prefix}def {name}({parameters}):
    _pml_arguments = [{reversed}]
    {shape}
    del {deleted}
"""
_SHAPE = "_pml_call = _pml_shape({positional}, {names})"
_PLAIN = """\
    _pml_entered = [None]
    try:
        return {entered_call}
    finally:
        _pml_leave(_pml_entered)
"""
_COUNTED = _PLAIN + "        _pml_left(_pml_entered)\n"
_GENERATOR = """\
    try:
        return (yield from _pml_stretches({call}))
    finally:
        _pml_finished()
"""
_COROUTINE = """\
    try:
        return await _pml_stretches({call})
    finally:
        _pml_finished()
"""
_ASYNC_GENERATOR = """\
    _pml_inner = {call}
    _pml_value = []
    try:
        _pml_value.append(await _pml_stretches(_pml_inner.__anext__()))
        while True:
            try:
                _pml_value.append((yield _pml_value.pop()))
            except GeneratorExit:
                await _pml_stretches(_pml_inner.aclose())
                raise
            except BaseException as _pml_error:
                _pml_value.append(await _pml_stretches(_pml_inner.athrow(_pml_error)))
            else:
                _pml_value.append(await _pml_stretches(_pml_inner.asend(_pml_value.pop())))
    except StopAsyncIteration:
        return
    finally:
        _pml_finished()
"""


class Stretches:
    """Runs a generator, coroutine or awaitable of one, with the hook installed for each stretch between suspensions."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __iter__(self) -> Stretches:
        return self

    __await__ = __iter__

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        entered = [None]
        try:
            return _native.enter_call(entered, self._inner).send(value)
        except BaseException:
            self._inner = _OVER
            raise
        finally:
            _native.leave_call(entered)

    def throw(self, *error: Any) -> Any:
        entered = [None]
        try:
            return _native.enter_call(entered, self._inner).throw(*error)
        except BaseException:
            self._inner = _OVER
            raise
        finally:
            del error
            _native.leave_call(entered)

    def close(self) -> None:
        entered = [None]
        try:
            _native.enter_call(entered, self._inner).close()
        finally:
            _native.leave_call(entered)


#: In place of what has ended by an exception, whose traceback holds the frames above: it must not be held by them.
_OVER = (_ for _ in ())


def bracket(
    function: FunctionType,
    enter: Callable[[list[Any], Any], Any],
    left: Callable[[list[Any]], None] | None,
    finished: Callable[[], None],
) -> FunctionType:
    """A function of the same kind, name, signature and defaults that runs `function` under the hook.

    Before a plain function, `enter(entered, argument)` is called last: it enters the engine, with a list of one item, and gives
    the argument back. Afterwards, `left(entered)`. The others call `finished` at their end; what they do between
    suspensions is enclosed by the engine's own pair.
    """
    namespace: dict[str, Any] = {
        "_pml_function": function,
        "_pml_enter": enter,
        "_pml_leave": _native.leave_call,
        "_pml_left": left,
        "_pml_finished": finished,
        "_pml_stretches": Stretches,
        "_pml_shape": call_shapes.call_of_shape,
    }
    exec(
        compile(_on_one_line(_source(function, _COUNTED if left else _PLAIN)), "<pytorch_memlab_c wrapper>", "exec"),
        namespace,
    )
    wrapper: Any = namespace["_pml_wrapper"]
    wrapper.__defaults__ = function.__defaults__
    wrapper.__kwdefaults__ = function.__kwdefaults__
    if function.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE:
        wrapper = cast(FunctionType, types.coroutine(wrapper))
    functools.update_wrapper(wrapper, function)
    return wrapper


def _on_one_line(source: str) -> ast.Module:
    """Its syntax tree with everything on line 1: the wrapper itself then makes no line events."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr, ast.arg, ast.excepthandler, ast.keyword)):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0
    return tree


def _source(function: FunctionType, plain: str) -> str:
    body, prefix = _body(function, plain)
    parameters = _Parameters(function)
    taken = parameters.taken_whole()
    if call_shapes.NEEDED and (parameters.star or parameters.double):
        taken = parameters.taken_apart()
    head = _HEAD if parameters.names else _HEAD.partition("    {shape}")[0]
    return (head + body).format(
        prefix=prefix,
        name="_pml_wrapper",
        parameters=", ".join(parameters.declared),
        deleted=", ".join(parameters.names),
        **taken,
    )


def _body(function: FunctionType, plain: str) -> tuple[str, str]:
    flags = function.__code__.co_flags  # not what a mark on a plain function says
    if flags & inspect.CO_ASYNC_GENERATOR:
        return _ASYNC_GENERATOR, "async "
    if flags & inspect.CO_COROUTINE:
        return _COROUTINE, "async "
    return (_GENERATOR if flags & inspect.CO_GENERATOR else plain), ""


class _Parameters:
    """A function's parameters, and how its arguments are taken from the wrapper: `reversed`, `shape` and `call`."""

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

    def taken_whole(self) -> dict[str, str]:
        take = "_pml_arguments.pop()"
        marks = [""] * len(self.positional) + ["*"] * len(self.star)
        marks += [f"{name}=" for name in self.keyword] + ["**"] * len(self.double)
        call = [mark + take for mark in marks]
        entered = [*call[:-1], f"{marks[-1]}_pml_enter(_pml_entered, {take})"] if call else []
        function = "_pml_function" if call else "_pml_enter(_pml_entered, _pml_function)"
        return {
            "reversed": ", ".join(reversed(self.names)),
            "shape": "",
            "call": f"_pml_function({', '.join(call)})",
            "entered_call": f"{function}({', '.join(entered)})",
        }

    def taken_apart(self) -> dict[str, str]:
        """Each argument inside `*` and `**` by itself (see call_shapes.py)."""
        backwards = [f"*reversed({name}.values())" for name in self.double] + self.keyword[::-1]
        backwards += [f"*reversed({name})" for name in self.star] + self.positional[::-1]
        count = " + ".join([str(len(self.positional)), *(f"len({name})" for name in self.star)])
        names = " + ".join([repr(tuple(self.keyword)), *(f"tuple({name})" for name in self.double)])
        return {
            "reversed": ", ".join(backwards),
            "shape": _SHAPE.format(positional=count, names=names),
            "call": "_pml_call(_pml_function, _pml_arguments)",
            "entered_call": "_pml_call(_pml_function, _pml_arguments, _pml_enter, _pml_entered)",
        }
