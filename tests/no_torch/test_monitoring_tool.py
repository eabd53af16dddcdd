"""The tool of sys.monitoring: its id is never somebody else's, and its callbacks survive whatever they are given."""

from __future__ import annotations

import sys

import pytest
from run_program import run_program

from pytorch_memlab_c import LineProfiler, _native

pytestmark = pytest.mark.skipif(_native.engine() != "monitoring", reason="events come from a trace function here")
NAME = "pytorch_memlab_c"


def f() -> int:
    x = 1
    return x


def g() -> None:
    pass


def tools() -> list[str | None]:
    return [sys.monitoring.get_tool(number) for number in range(6)]


def hits(profiler: LineProfiler) -> list[int]:
    return [line.hits for line in profiler.records().functions[0].lines if line.hits]


@pytest.fixture
def no_tool_of_ours() -> None:
    """Functions that other tests have decorated are recorded all the time."""
    if NAME in tools():
        pytest.skip("a profiler of another test still records")


def test_the_id_is_free_again_afterwards(no_tool_of_ours):
    before = tools()
    for _ in range(3):
        with LineProfiler(f, device="cpu"):
            f()
            assert tools().count(NAME) == 1
        assert tools() == before


@pytest.mark.parametrize("taken", [3, 4])
def test_another_id_is_taken_where_one_is_in_use(no_tool_of_ours, taken):
    monitoring = sys.monitoring
    monitoring.use_tool_id(taken, "another")
    try:
        with LineProfiler(f, device="cpu") as profiler:
            f()
            assert tools()[taken] == "another" and tools()[7 - taken] == NAME
        assert hits(profiler) == [1, 1] and tools()[taken] == "another"
    finally:
        monitoring.free_tool_id(taken)


CROWDED = """
import sys, warnings
from program_support import report, report_lines
from pytorch_memlab_c import LineProfiler

for number in (3, 4):
    sys.monitoring.use_tool_id(number, f"tool {number}")
    sys.monitoring.set_events(number, sys.monitoring.events.PY_START)

def f():
    x = 1
    return x

with LineProfiler(f, device="cpu") as profiler:
    f()
    traced = sys.gettrace() is not None
M = sys.monitoring
report(traced=traced, after=sys.gettrace() is None, notes=profiler.records().notes,
       others=[[M.get_tool(number), M.get_events(number)] for number in (3, 4)])
report_lines(f=profiler)
"""


def test_where_no_id_is_free_the_trace_function_is_used_and_the_report_says_so(tmp_path):
    run = run_program(CROWDED, tmp_path)
    assert run.values["traced"] and run.values["after"]
    assert run.values["others"] == [["tool 3", 1], ["tool 4", 1]]
    assert any("ids 3 and 4 of sys.monitoring" in note for note in run.values["notes"])
    assert run.values["f"] == {"x = 1": [1, 0, 0], "return x": [1, 0, 0]}


def test_an_id_that_was_given_to_another_tool_is_left_alone(no_tool_of_ours):
    monitoring, seen = sys.monitoring, []
    with LineProfiler(f, device="cpu") as profiler:
        f()
        ours = tools().index(NAME)
        monitoring.free_tool_id(ours)
        monitoring.use_tool_id(ours, "another")
        monitoring.register_callback(ours, monitoring.events.PY_START, lambda code, offset: seen.append(code))
        monitoring.set_events(ours, monitoring.events.PY_START)
        with LineProfiler(f, device="cpu") as second, LineProfiler(g, device="cpu") as third:
            f()
            g()
    try:
        assert tools()[ours] == "another" and monitoring.get_events(ours) == monitoring.events.PY_START
        del seen[:]
        f()
        assert f.__code__ in seen
        assert hits(third) == [1] and tools().count(NAME) == 0
        for each in (profiler, second):
            assert any(note.startswith("interrupted") for note in each.records().notes)
    finally:
        monitoring.set_events(ours, 0)
        monitoring.register_callback(ours, monitoring.events.PY_START, None)
        monitoring.free_tool_id(ours)


CALLED = """
import itertools, sys
from program_support import report
from pytorch_memlab_c import LineProfiler

def f():
    x = 1
    return x

with LineProfiler(f, device="cpu") as profiler:
    M = sys.monitoring
    number = [M.get_tool(number) for number in range(6)].index("pytorch_memlab_c")
    callbacks = [M.register_callback(number, event, None) for event in (1 << bit for bit in range(15))]
    callbacks = [callback for callback in callbacks if callback is not None]
    values = [f.__code__, f, "x", -1, 0, 2**31 - 1, 2**31, 2**80, None, compile("1", "x", "eval")]
    for callback in callbacks:
        for count in range(4):
            for args in itertools.product(values, repeat=count):
                assert callback(*args) in (None, M.DISABLE)
    f()
report(callbacks=len(callbacks), alive=profiler.records().functions[0].qualname)
"""


def test_callbacks_take_whatever_a_program_gives_them(tmp_path):
    values = run_program(CALLED, tmp_path).values
    assert values == {"callbacks": 9, "alive": "f"}


NO_MEMORY = """
import _testcapi, itertools, sys
from program_support import report
from pytorch_memlab_c import LineProfiler

def f():
    x = 1
    return x

def g():
    yield 1

profiler = LineProfiler(f, g, device="cpu")
errors = 0
for number, size in itertools.product(range(80), (1, 2, 4, 8)):
    try:
        _testcapi.set_nomemory(number, number + size)
        try:
            with profiler:
                f()
                next(g())
        finally:
            _testcapi.remove_mem_hooks()
    except MemoryError:
        errors += 1
    assert not profiler.enabled, number
with LineProfiler(f, device="cpu") as after:
    f()
hits = [line.hits for line in after.records().functions[0].lines if line.hits]
report(errors=errors, hits=hits, tools=[sys.monitoring.get_tool(number) for number in range(6)])
"""


def test_memory_that_is_out_for_some_allocations_stops_nothing(tmp_path):
    pytest.importorskip("_testcapi", reason="this Python has no _testcapi, which lets allocations fail")
    values = run_program(NO_MEMORY, tmp_path).values
    assert values["errors"] > 3 and values["hits"] == [1, 1] and values["tools"] == [None] * 6


def test_events_that_another_tool_restarts_are_not_counted_twice(no_tool_of_ours):
    def loop() -> None:
        for _ in range(3):
            sys.monitoring.restart_events()
            for _ in range(2):
                f()  # noqa: E701

    with LineProfiler(loop, device="cpu") as profiler:
        loop()
    assert hits(profiler) == [4, 3, 9]


def test_the_next_tool_of_the_id_gets_all_events_of_the_same_code(no_tool_of_ours):
    def loop() -> None:
        for _ in range(3):
            f()

    with LineProfiler(loop, device="cpu"):
        loop()
    monitoring, seen = sys.monitoring, []
    monitoring.use_tool_id(4, "another")
    try:
        monitoring.register_callback(4, monitoring.events.JUMP, lambda *event: seen.append(event))
        monitoring.set_local_events(4, loop.__code__, monitoring.events.JUMP)
        loop()
        assert len(seen) == 3
    finally:
        monitoring.set_local_events(4, loop.__code__, 0)
        monitoring.register_callback(4, monitoring.events.JUMP, None)
        monitoring.free_tool_id(4)
