"""Calls with `*` and `**` that keep none of their arguments, for CPython 3.11.

A call written out hands its arguments over to the function. A call with `*` or `**` keeps the tuple and the dict until
it returns, on 3.11 alone: 3.12 and later hand them over too, and 3.10 keeps the arguments of every call. So the call is
written out here, for each number of arguments and each set of names.
"""

from __future__ import annotations

import functools
import keyword
import sys
from collections.abc import Callable
from typing import Any

#: Whether a call with `*` or `**` is to be written out.
NEEDED = sys.version_info[:2] == (3, 11)
_MOST_ARGUMENTS = 64


def _pass_on(entered: Any, argument: Any) -> Any:
    return argument


@functools.lru_cache(maxsize=256)
def call_of_shape(positional: int, names: tuple[str, ...]) -> Callable[..., Any]:
    """Calls its first argument with those in a list, which it empties: positional ones first, from the end.

    Two more arguments, `enter` and `entered`: as for `wrappers.bracket`.
    """
    if positional + len(names) > _MOST_ARGUMENTS or not all(map(_can_be_written, names)):
        return functools.partial(_call_anyhow, positional, names)
    arguments = ["arguments.pop()"] * positional + [f"{name}=arguments.pop()" for name in names]
    function = "function" if arguments else "enter(entered, function)"
    if arguments:
        arguments[-1] = arguments[-1].replace("arguments.pop()", "enter(entered, arguments.pop())")
    namespace: dict[str, Any] = {"pass_on": _pass_on}
    head = "def call(function, arguments, enter=pass_on, entered=None):\n"
    source = f"{head}    return {function}({', '.join(arguments)})\n"
    exec(compile(source, "<pytorch_memlab_c wrapper>", "exec"), namespace)
    call: Callable[..., Any] = namespace["call"]
    return call


def _can_be_written(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__"


def _call_anyhow(
    positional: int,
    names: tuple[str, ...],
    function: Any,
    arguments: list[Any],
    enter: Callable[[Any, Any], Any] = _pass_on,
    entered: Any = None,
) -> Any:
    rest = [arguments.pop() for _ in range(positional)]
    named = {name: arguments.pop() for name in names}
    return enter(entered, function)(*rest, **named)
