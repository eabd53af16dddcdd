"""The tool of sys.monitoring: its id is never somebody else's, and its callbacks survive whatever they are given."""

from __future__ import annotations

import pytest
from run_program import SETTRACE, run_program

from pytorch_memlab_c import _native

pytestmark = pytest.mark.skipif(_native.engine() != "monitoring", reason="events come from a trace function here")

HEAD = """
import sys
from program_support import report
from pytorch_memlab_c import LineProfiler

monitoring, NAME = sys.monitoring, "pytorch_memlab_c"

def f():
    x = 1
    return x

def g():
    pass

def tools():
    return [monitoring.get_tool(number) for number in range(6)]

def hits(profiler):
    return [line.hits for line in profiler.records().functions[0].lines if line.hits]
"""

FREE_AGAIN = """
held = []
for _ in range(3):
    with LineProfiler(f, device="cpu"):
        f()
        held.append(tools().count(NAME))
report(held=held, after=tools(), trace=sys.gettrace() is None)
"""


def test_the_id_is_free_again_afterwards(tmp_path):
    values = run_program(HEAD + FREE_AGAIN, tmp_path).values
    assert values == {"held": [1, 1, 1], "after": [None] * 6, "trace": True}


IN_USE = """
taken = int(sys.argv[1])
monitoring.use_tool_id(taken, "another")
with LineProfiler(f, device="cpu") as profiler:
    f()
    while_enabled = tools()
report(hits=hits(profiler), while_enabled=[while_enabled[taken], while_enabled[7 - taken]], after=tools()[taken])
"""


@pytest.mark.parametrize("taken", [3, 4])
def test_another_id_is_taken_where_one_is_in_use(tmp_path, taken):
    values = run_program(HEAD + IN_USE, tmp_path, command=["program.py", str(taken)]).values
    assert values == {"hits": [1, 1], "while_enabled": ["another", "pytorch_memlab_c"], "after": "another"}


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


GIVEN_AWAY = """
seen = []
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
del seen[:]
f()
report(other=[tools()[ours], monitoring.get_events(ours), f.__code__ in seen], ours=tools().count(NAME),
       third=hits(third), notes=[" ".join(each.records().notes) for each in (profiler, second)])
"""


def test_an_id_that_was_given_to_another_tool_is_left_alone(tmp_path):
    values = run_program(HEAD + GIVEN_AWAY, tmp_path).values
    assert values["other"] == ["another", 1, True] and values["ours"] == 0
    assert values["third"] == [1]
    assert all("interrupted" in note for note in values["notes"])


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


RESTARTED = """
def loop():
    for _ in range(3):
        monitoring.restart_events()
        for _ in range(2): f()

with LineProfiler(loop, device="cpu") as profiler:
    loop()
report(hits=hits(profiler))
"""


def test_events_that_another_tool_restarts_are_counted_as_without(tmp_path):
    (tmp_path / "trace").mkdir()
    values = [run_program(HEAD + RESTARTED, path, env=env).values for path, env in runs_of_both(tmp_path)]
    assert values[0] == values[1] and values[0]["hits"][:2] == [4, 3]


def runs_of_both(tmp_path):
    """A directory and an environment for each engine."""
    return [(tmp_path, {}), (tmp_path / "trace", SETTRACE)]


NEXT_TOOL = """
def loop():
    for _ in range(3):
        f()

with LineProfiler(loop, device="cpu"):
    loop()
seen = []
monitoring.use_tool_id(4, "another")
monitoring.register_callback(4, monitoring.events.JUMP, lambda *event: seen.append(event))
monitoring.set_local_events(4, loop.__code__, monitoring.events.JUMP)
loop()
report(jumps=len(seen))
"""


def test_the_next_tool_of_the_id_gets_all_events_of_the_same_code(tmp_path):
    assert run_program(HEAD + NEXT_TOOL, tmp_path).values == {"jumps": 3}
