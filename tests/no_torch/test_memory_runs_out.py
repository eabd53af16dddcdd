"""Each allocation of Python's fails once in what the engine does: there is an error, and nothing is left behind.

Not in Python code such as that of reports: the interpreter itself does not survive all of it (3.10, 3.12 and 3.13).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from run_program import run_program

pytest.importorskip("_testcapi", reason="this Python has no _testcapi, which lets allocations fail")

PROGRAM = """
import sys
import threading
import _testcapi
from pytorch_memlab_c import LineProfiler, _native
from program_support import Block, report

def f():
    return Block(100)

def g():
    yield Block(5)
    yield Block(6)

profiler = LineProfiler(f, g)

def in_a_block():
    with profiler:
        f()
        list(g())

def counts():
    return profiler._tracer.snapshot()

in_a_block()
held = [[object()]]
cycle = [[]]
cycle.append(cycle)
garbage = cycle[0]
del cycle

def chains():
    _native.find_chains([held[0], garbage, object()], ([held],), [], [], 4, 1_000_000)

CALLS = {"in a block": in_a_block, "counts": counts, "clear": profiler.clear, "chains": chains}

def failing(call, number):
    try:
        _testcapi.set_nomemory(number, number + 1)
        try:
            call()
        finally:
            _testcapi.remove_mem_hooks()
    except MemoryError:
        return True
    except SystemError as error:  # as Python 3.12 and 3.13 say it where no frame object can be made for a tracer
        assert "Missing frame" in str(error), error
        return True
    return False

def sweep(call):
    for _ in range(3):  # what is made once only
        call()
    failed = number = calm = 0
    while calm < 20:  # then no allocation is left to fail
        one = failing(call, number)
        failed, calm, number = failed + one, 0 if one else calm + 1, number + 1
        assert sys.gettrace() is None and threading.gettrace() is None and not _native.any_enabled(), number
    return failed

failed = {name: sweep(call) for name, call in CALLS.items()}
with LineProfiler(f) as profiler:
    for _ in range(3):
        f()
(function,) = profiler.records().functions
report(failed=failed, calls=function.calls, hits=[line.hits for line in function.lines])
"""


def test_each_allocation_fails_once(tmp_path: Path) -> None:
    values = run_program(PROGRAM, tmp_path, check=True).values
    assert all(values["failed"][name] for name in ("in a block", "counts", "chains")), values
    assert values["calls"] == 3 and values["hits"] == [0, 3]
