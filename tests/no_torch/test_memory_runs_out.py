"""Each allocation of Python's fails once in each public call: there is an error, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_program import run_program

pytest.importorskip("_testcapi", reason="this Python has no _testcapi, which lets allocations fail")

PROGRAM = """
import sys
import threading
import _testcapi
from pytorch_memlab_c import LineProfiler, LineRecords, _native
from program_support import Block, report

def f():
    return Block(100)

def g():
    yield Block(5)
    yield Block(6)

def enabled():
    profiler = LineProfiler(f)
    profiler.enable()
    try:
        f()
    finally:
        profiler.disable()

def in_a_block():
    with LineProfiler(f, g) as profiler:
        f()
        list(g())
    return profiler

def again(profiler=LineProfiler(f)):
    with profiler:
        f()

records = in_a_block().records()
CALLS = {
    "enabled": enabled,
    "in a block": in_a_block,
    "again": again,
    "records": in_a_block().records,
    "text": records.to_text,
    "json": records.to_json,
    "clear": in_a_block().clear,
}

def failing(call, number):
    try:
        _testcapi.set_nomemory(number, number + 1)
        try:
            call()
        finally:
            _testcapi.remove_mem_hooks()
    except MemoryError:
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
    assert all(values["failed"][name] for name in ("enabled", "in a block", "records", "text", "json")), values
    assert values["calls"] == 3 and values["hits"] == [0, 3]
