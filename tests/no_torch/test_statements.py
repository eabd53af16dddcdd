"""One statement is one run of its line, on every version of Python: also where its bytecode has a loop."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from pytorch_memlab_c import LineProfiler

INLINED = sys.version_info >= (3, 12)


def one(n: int = 1) -> list[int]:
    return [n]


def pairs() -> list[tuple[int, int]]:
    return [(i, i) for i in range(4)]


#: The body of a function, and the hits of its lines.
BODIES: dict[str, tuple[str, list[int]]] = {
    "list": ("xs = [one() for _ in range(20)]", [1]),
    "dict": ("xs = {i: one() for i in range(5)}", [1]),
    "set": ("xs = {i for i in range(5)}", [1]),
    "empty": ("xs = [one() for _ in ()]", [1]),
    "unpacking": ("xs = [a + b for a, b in pairs()]", [1]),
    "two loops": ("xs = [i * k for i in range(3) for k in range(i)]", [1]),
    "nested": ("xs = [[one() for _ in range(3)] for _ in range(4)]", [1]),
    "nested in the iterable": ("xs = [i for i in [k for k in range(4)]]", [1]),
    "condition": ("xs = [i for i in range(9) if i % 2 if i % 3]", [1]),
    "conditional value": ("xs = [one() if i else None for i in range(5)]", [1]),
    "walrus": ("xs = [y for i in range(5) if (y := i + 1)]", [1]),
    "closure": ("xs = [lambda: i for i in range(5)]", [1]),
    "two in a row": ("xs = [one() for _ in range(3)]; ys = [one() for _ in range(4)]", [1]),
    "one after the other": ("xs = [one() for _ in range(3)]\nys = [one() for _ in range(4)]\nzs = 1", [1, 1, 1]),
    "in a call": ("len([one() for _ in range(3)])", [1]),
    "in a condition": ("xs = [a for a in range(3)] if [b for b in range(2)] else None", [1]),
    "returned": ("return [one() for _ in range(3)]", [1]),
    "in a loop": ("for i in range(3):\n    xs = [one() for _ in range(5)]", [4, 3]),
    "in a loop on one line": ("for i in range(3): xs = [one() for _ in range(5)]", [4]),
    "in a while loop on one line": ("n = 0\nwhile n < 3: n += len([i for i in range(1)])", [1, 3]),
    "a while loop on one line": ("n = 0\nwhile n < 4: n += 1", [1, 4]),
    "a for loop on one line": ("for i in range(4): pass", [5]),
    "generator expression": ("xs = sum(i for i in range(5))", [1]),
    "raises": ("try: xs = [1 // (2 - i) for i in range(5)]\nexcept ZeroDivisionError: xs = None", [1, 1]),
    "raises in a nested one": (
        "try: xs = [[1 // (2 - i) for i in range(k)] for k in range(9)]\nexcept ZeroDivisionError: xs = None",
        [1, 1],
    ),
    "in a with block": ("import contextlib\nwith contextlib.nullcontext():\n    xs = [i for i in range(4)]", [1, 2, 1]),
    "in a handler": ("try: one(1, 2)\nexcept TypeError: xs = [i for i in range(4)]", [1, 1]),
    "same name outside": ("i = 7\nxs = [i for i in range(4)]\ny = i", [1, 1, 1]),
}


def hits_of(function: Callable[[], Any], run: Callable[[], Any] | None = None) -> list[int]:
    """Those of the lines below the first, without lines that have none."""
    with LineProfiler(function) as profiler:
        (run or function)()
    (record,) = profiler.records().functions
    return [line.hits for line in record.lines if line.hits]


def make(source: str, name: str = "f") -> Callable[[], Any]:
    namespace: dict[str, Any] = {"one": one, "pairs": pairs}
    exec(compile(source, "<statements>", "exec"), namespace)
    function: Callable[[], Any] = namespace[name]
    return function


@pytest.mark.parametrize("name", BODIES)
def test_hits_are_the_same_on_every_version(name):
    body, hits = BODIES[name]
    assert hits_of(make("def f():\n" + textwrap.indent(body, "    "))) == hits


@pytest.mark.parametrize("name", [name for name in BODIES if "returned" not in name])
def test_hits_in_a_module(name):
    body, hits = BODIES[name]
    profiler = LineProfiler()
    code = compile("one, pairs = two\n" + body, "m", "exec")
    profiler.add_code(code, "<module>")
    with profiler:
        exec(code, {"two": (one, pairs)})
    (record,) = profiler.records().functions
    assert [line.hits for line in record.lines if line.hits] == [1, *hits]
    assert record.calls == 1


def test_a_comprehension_on_several_lines_is_one_run_of_the_line_on_which_it_begins():
    function = make(
        """\
def f():
    xs = [
        one(i)
        for i in range(5)
        if i
    ]
    return xs
"""
    )
    # Before Python 3.12 the line is shown before and after what the comprehension goes through.
    assert hits_of(function) == [1 if INLINED else 2, 1, 1]


def test_asynchronous_comprehensions():
    function = make(
        """\
async def values():
    for i in range(4):
        yield i
async def f():
    xs = [i async for i in values()]
    ys = [i async for i in values() if i]; zs = [k for k in range(9)]
    return xs, ys, zs
"""
    )
    assert hits_of(function, lambda: asyncio.run(function())) == [1, 1, 1]


def test_awaits_in_a_comprehension():
    function = make(
        """\
import asyncio
async def f():
    xs = [await asyncio.sleep(0, i) for i in range(4)]
    return xs
"""
    )
    assert hits_of(function, lambda: asyncio.run(function()))[-1] == 1


@pytest.mark.parametrize(
    "source, hits",
    [
        ("# a comment\n", {}),
        ("", {}),
        ('"""A docstring."""\n', {}),
        ("# a comment\nx = 1\n", {2: 1}),
        ('"""A docstring."""\nx = 1\n', {2: 1}),
        ('"""A docstring\non two lines."""\nx = 1\n', {3: 1}),
        ('# a comment\n\n"""A docstring."""\nx = 1\n', {4: 1}),
        ('"""A docstring."""; x = 1\n', {1: 1}),
        ('"""A docstring."""\nfor i in range(3): pass\n', {2: 4}),
        ("x = 1\n", {1: 1}),
        ("\n\nx = 1\n", {3: 1}),
    ],
)
def test_comments_and_docstrings_of_a_module_are_no_runs(source, hits):
    profiler = LineProfiler()
    code = compile(source, "m", "exec")
    profiler.add_code(code, "<module>")
    with profiler:
        exec(code, {})
    (record,) = profiler.records().functions
    assert {line.line: line.hits for line in record.lines if line.hits} == hits
    assert record.calls == 1


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the bytecode says in which columns it is from Python 3.11 on")
def test_an_assignment_of_the_docstring_is_a_statement():
    profiler = LineProfiler()
    code = compile('__doc__ = "A docstring."\nx = 1\n', "m", "exec")
    profiler.add_code(code, "<module>")
    with profiler:
        exec(code, {})
    (record,) = profiler.records().functions
    assert [line.hits for line in record.lines if line.hits] == [1, 1]


def test_each_round_of_a_loop_that_waits_for_a_generator_on_its_line_is_a_run():
    def values(n):
        yield from range(n)
        return n

    source = "def rounds(n):\n    while n: n -= 1; last = yield from values(n)\n"
    scope: dict[str, Any] = {"values": values}
    exec(source, scope)
    with LineProfiler(scope["rounds"], device="cpu") as profiler:
        list(scope["rounds"](4))
    assert [line.hits for line in profiler.records().functions[0].lines] == [0, 4]
