"""Tracing pauses in the callees of a profiled frame (native/quiet.c): nothing is lost by it, and what is lost is told."""

from __future__ import annotations

import sys

import pytest
from run_program import run_program

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="tracing pauses on Python 3.11 only")

PROGRAM = """
import sys
from program_support import Block, allocate, free, hits, peaks, report
from pytorch_memlab_c import LineProfiler, profile
from pytorch_memlab_c.line_profiler import decorators

def traced():
    return sys.gettrace() is not None

def figures():
    return {{p.records().functions[0].qualname: p.records().functions[0] for p in decorators._profilers}}

def table(name):
    function = figures()[name]
    return {{function.source[line.line - function.first_line].strip(): line.hits for line in function.lines}}

def notes():
    return [note for p in decorators._profilers for note in p.records().notes if "kept its own frame" in note]

{body}
decorators._profilers.clear()
"""


def run(body, tmp_path):
    return run_program(PROGRAM.format(body=body), tmp_path).values


def test_a_callee_is_not_traced_and_the_frame_is_again_after_it(tmp_path):
    values = run(
        """
@profile
def f():
    inside = traced()
    here = sys.gettrace() is not None
    report(inside=inside, here=here)
    for _ in range(3):
        traced()
    return 1
f()
report(table=table("f"))
""",
        tmp_path,
    )
    assert values["inside"] is False and values["here"] is True
    assert values["table"]["for _ in range(3):"] == 4 and values["table"]["traced()"] == 3
    assert values["table"]["return 1"] == 1


def test_calls_that_may_be_caught_stay_traced(tmp_path):
    values = run(
        """
def fails():
    raise KeyError

@profile
def f():
    seen = []
    try:
        seen.append(traced())
        fails()
        seen.append("never")
    except KeyError:
        seen.append(traced())
    with open("/dev/null"):
        seen.append(traced())
    seen.append(traced())
    return seen
report(seen=f(), table=table("f"))
""",
        tmp_path,
    )
    assert values["seen"] == [True, True, True, False]
    assert values["table"]["fails()"] == 1 and 'seen.append("never")' not in values["table"]
    assert values["table"]["return seen"] == 1


def test_an_exception_through_paused_callees_ends_the_frames_it_leaves(tmp_path):
    values = run(
        """
def fails():
    kept.append(Block(1000))
    raise KeyError

kept = []

@profile
def inner():
    fails()

def between():
    inner()

@profile
def outer():
    between()

@profile
def top():
    for i in range(2):
        try:
            outer()
        except KeyError:
            pass
    return traced()
report(traced=top(), top=table("top"), outer=table("outer"), inner=table("inner"), notes=notes(),
       after=sys.gettrace() is None)
""",
        tmp_path,
    )
    assert values["inner"]["fails()"] == 2 and values["outer"]["between()"] == 2
    assert values["top"]["pass"] == 2 and values["top"]["return traced()"] == 1
    assert values["notes"] == [] and values["after"] is True


def test_bytes_of_a_paused_callee_count_on_the_line_that_calls_it(tmp_path):
    values = run(
        """
def spike():
    a = Block(3000)
    del a
    return Block(500)

@profile
def f():
    b = spike()
    c = Block(100)
    return None
f()
lines = figures()["f"].lines
report(peaks=[line.stats["cpu"].allocated_peak for line in lines if line.hits],
       nets=[line.stats["cpu"].net_sum for line in lines if line.hits])
""",
        tmp_path,
    )
    assert values["peaks"] == [3000, 600, 600]
    assert values["nets"] == [500, 100, 0]


def test_a_callee_that_keeps_its_frame_is_told_once_and_then_traced(tmp_path):
    values = run(
        """
frames = []
def keeps():
    frames.append(sys._getframe())

@profile
def f():
    keeps()
    one = 1
    return one
f()
report(first=table("f"), first_notes=notes())
for p in decorators._profilers:
    p.clear()
for _ in range(3):
    f()
report(later=table("f"), later_notes=notes(), after=sys.gettrace() is None)
""",
        tmp_path,
    )
    assert values["first"]["keeps()"] == 1 and "one = 1" not in values["first"]
    assert len(values["first_notes"]) == 1
    assert values["later"] == {"def f():": 0, "keeps()": 3, "one = 1": 3, "return one": 3}
    assert values["later_notes"] == [] and values["after"] is True


@pytest.mark.parametrize(
    "function",
    [
        "def f():\n    kept = keeps()\n    missed = 1\n    raise KeyError",
        "def f():\n    yield 1\n    kept = keeps()\n    missed = 1",
        "def f():\n    kept = keeps()\n    missed = 1\n    yield 1",
        "async def f():\n    kept = keeps()\n    missed = 1\n    return 1",
        "def f():\n    for _ in range(2):\n        kept = keeps()\n        missed = 1",
        "def f():\n    for _ in range(3):\n        kept = keeps(StopIteration)\n        missed = 1\n    yield 1",
        "def f():\n    for i in range(2):\n        keeps(clear=i)\n        missed = 1",
        "def f():\n    kept = keeps()\n    missed = 1\n    other.enable()\n    return None",
    ],
    ids=[
        "raises later",
        "generator",
        "generator that goes on",
        "coroutine",
        "the same call raises the next time",
        "a generator whose call raises StopIteration the next time",
        "the kept frame is cleared by the next call",
        "a LineProfiler is enabled",
    ],
)
def test_a_kept_frame_is_told_however_the_function_ends(tmp_path, function):
    values = run(
        f"""
import asyncio, inspect, traceback
times, stored = [], []
def keeps(raises=KeyError, clear=False):
    times.append(1)
    if len(times) == 2 and "for _" in {function!r}:
        raise raises
    if clear and len(times) == 2:
        traceback.clear_frames(stored[0].__traceback__)
        return None
    try:
        raise ValueError
    except ValueError as error:
        stored.append(error)
        return error

other = LineProfiler(traced)
@profile
{function}

def run_f():
    try:
        result = f()
        return asyncio.run(result) if inspect.iscoroutine(result) else list(result or ())
    except (KeyError, RuntimeError):
        return None
    finally:
        other.disable()
run_f()
first = table("f"), len(notes())
for p in decorators._profilers:
    p.clear()
run_f()
report(first=first, later=[table("f"), len(notes())], after=traced())
""",
        tmp_path,
    )
    (first, told), (later, told_later) = values["first"], values["later"]
    assert first.get("missed = 1", 0) < later["missed = 1"]
    assert (told, told_later) == (1, 0)
    assert values["after"] is False


@pytest.mark.parametrize("handler", ["return None", "return g(*a)", "stored.append(error)\n            return g(*a)"])
def test_an_exception_of_a_callee_that_another_decorator_handles(tmp_path, handler):
    """As those that run a function once more with a smaller batch when memory is out."""
    values = run(
        f"""
import functools
stored, times = [], []
def forgives(g):
    @functools.wraps(g)
    def call(*a):
        try:
            return g(*a)
        except KeyError as error:
            {handler}
    return call

def fails():
    free(allocate(3000))
    times.append(1)
    if len(times) == 1:
        raise KeyError

@profile
@forgives
def f():
    before = 1
    fails()
    after = 1
f()
report(table=table("f"), notes=notes(), after=traced(),
       peak=[line.stats["cpu"].allocated_peak for line in figures()["f"].lines if "cpu" in line.stats])
""",
        tmp_path,
    )
    again = "g(" in handler
    assert values["table"]["fails()"] == 1 + again and values["table"].get("after = 1", 0) == again
    assert max(values["peak"]) == 3000
    assert values["notes"] == [] and values["after"] is False


def test_an_exception_that_a_profiled_caller_of_the_bare_function_handles(tmp_path):
    values = run(
        """
def fails():
    free(allocate(3000))
    raise KeyError

@profile
def inner():
    fails()

@profile
def outer():
    try:
        inner.__wrapped__()
    except KeyError:
        pass
    return 1
outer()
report(inner=table("inner"), outer=table("outer"), notes=notes(), after=traced(),
       peaks=[line.stats["cpu"].allocated_peak for line in figures()["inner"].lines if line.hits])
""",
        tmp_path,
    )
    assert values["inner"]["fails()"] == 1 and values["peaks"] == [3000]
    assert values["outer"]["return 1"] == 1 and values["outer"]["pass"] == 1
    assert values["notes"] == [] and values["after"] is False


def test_an_exception_that_a_callee_caught_and_kept_counts_as_its_frame(tmp_path):
    values = run(
        """
def keeps():
    try:
        1 / 0
    except ZeroDivisionError as error:
        errors.append(error)

errors = []

@profile
def f():
    keeps()
    return 1
f()
report(notes=len(notes()))
""",
        tmp_path,
    )
    assert values["notes"] == 1


def test_a_profiled_function_deep_inside_is_seen(tmp_path):
    values = run(
        """
@profile
def leaf():
    return traced(), sys.gettrace() is not None

def deep(n):
    return leaf() if n == 0 else deep(n - 1)

@profile
def root():
    a = deep(5)
    b = deep(5)
    return a, b, sys.gettrace() is not None
report(result=root(), leaf=table("leaf"), root=table("root"))
""",
        tmp_path,
    )
    assert values["result"] == [[False, True], [False, True], True]
    assert list(values["leaf"].values())[-1] == 2
    assert values["root"]["b = deep(5)"] == 1


def test_another_tracer_set_in_a_paused_callee_wins_and_nothing_breaks(tmp_path):
    values = run(
        """
events = []
def tracer(frame, event, arg):
    events.append((frame.f_code.co_name, event))
    return tracer

def sets():
    sys.settrace(tracer)
    return 1

def plain():
    return 2

@profile
def f():
    a = sets()
    b = plain()
    return a + b
report(result=f())
mine = sys.gettrace() is tracer
sys.settrace(None)
report(mine=mine, seen=["plain", "call"] in [list(e) for e in events],
       notes=[n for p in decorators._profilers for n in p.records().notes if "interrupted" in n] != [])
""",
        tmp_path,
    )
    assert values == {"result": 3, "mine": True, "seen": True, "notes": True}


def test_a_tracer_that_was_there_sees_everything(tmp_path):
    values = run(
        """
events = []
def tracer(frame, event, arg):
    events.append(frame.f_code.co_name)
    return tracer

def plain():
    return traced()

@profile
def f():
    return plain()
sys.settrace(tracer)
inside = f()
sys.settrace(None)
report(inside=inside, plain=events.count("plain"), traced=events.count("traced"))
""",
        tmp_path,
    )
    assert values["inside"] is True and values["plain"] == 3 and values["traced"] == 3


def test_a_line_profiler_beside_it_keeps_all_traced(tmp_path):
    values = run(
        """
def unwrapped():
    return traced()

@profile
def f():
    return unwrapped()

with LineProfiler(unwrapped) as p:
    inside = f()
report(inside=inside, hits=p.records().functions[0].lines[-1].hits)
""",
        tmp_path,
    )
    assert values == {"inside": True, "hits": 1}


def test_references_are_stable_over_many_pauses(tmp_path):
    values = run(
        """
def plain():
    return None

@profile
def f():
    plain()
    plain()
f()
hook = []
@profile
def look():
    hook.append(sys.gettrace())
look()
before = sys.getrefcount(hook[0]), sys.getrefcount(plain.__code__)
for _ in range(1000):
    f()
report(same=before == (sys.getrefcount(hook[0]), sys.getrefcount(plain.__code__)))
""",
        tmp_path,
    )
    assert values["same"] is True


@pytest.mark.parametrize(
    "callee, loop",
    [
        ("def callee(i):\n    box[:] = [sys._getframe()]", "callee(i)\n        box.clear() if i == 1 else None"),
        ("def callee(i):\n    box.clear()\n    box.append(sys._getframe())", "callee(i)"),
        ("def callee(i):\n    me = sys._getframe()", "callee(i)\n        gc.collect()"),
        ("def callee(i):\n    me = sys._getframe()\n    gc.collect()", "callee(i)"),
        ("def callee(i):\n    box.append(sys._getframe())", "(callee if i % 2 == 0 else drop)(i)"),
    ],
)
def test_a_kept_frame_that_goes_before_the_function_ends_is_told_too(tmp_path, callee, loop):
    values = run(
        f"""
import gc
box = []
def drop(i):
    box.clear()
{callee}

@profile
def f():
    for i in range(4):
        {loop}
        last = i
    return last
f()
hits = table("f")
report(notes=len(notes()), complete=hits.get("last = i") == 4)
""",
        tmp_path,
    )
    assert values["complete"] or values["notes"] == 1


# ---- calls that C makes: `__call__`, `__getattr__`, functions given to builtins (native/quiet_calls.c) ----

CALLED = """
class Layer:
    def __init__(self, size):
        self.size = size
    def __call__(self, fail=False):
        seen.append(traced())
        block = Block(self.size)
        if fail:
            raise KeyError(self.size)
        return block
    def __getattr__(self, name):
        if name == "missing":
            raise AttributeError(name)
        seen.append(traced())
        return inner if name == "inner" else name
    def __len__(self):
        kept.append(sys._getframe())
        return 3
seen, kept = [], []
"""


def test_calls_from_c_are_not_traced_and_lines_after_them_are(tmp_path):
    values = run(
        CALLED
        + """
layer = Layer(100)
@profile
def f():
    for _ in range(5):
        layer.name
        block = layer()
        layer.other; block = layer(); layer.third
        more = sorted([3, 1, 2], key=key)
    return len(seen)
def key(x):
    seen.append(traced())
    return -x
count = f()
report(table=table("f"), seen=sum(seen), count=count, notes=notes())
""",
        tmp_path,
    )
    assert values["table"] == {
        "def f():": 0,
        "for _ in range(5):": 6,
        "layer.name": 5,
        "block = layer()": 5,
        "layer.other; block = layer(); layer.third": 5,
        "more = sorted([3, 1, 2], key=key)": 5,
        "return len(seen)": 1,
    }
    assert (values["seen"], values["count"], values["notes"]) == (0, 5 * (1 + 1 + 3 + 3), [])


def test_their_exceptions_and_kept_frames_cost_no_lines(tmp_path):
    values = run(
        CALLED
        + """
layer = Layer(100)
@profile
def f(last):
    try:
        layer(fail=True)
    except KeyError as error:
        kept.append(error)
    hasattr(layer, "missing")
    getattr(layer, "missing", None)
    len(layer)
    if last:
        layer(True)
    return 1
for _ in range(4):
    f(False)
before = table("f")
try:
    f(True)
except KeyError:
    pass
after = table("f")
report(before=before, after=after, gone=sys.gettrace() is None, traced=sum(seen))
""",
        tmp_path,
    )
    lines = ("layer(fail=True)", "kept.append(error)", 'hasattr(layer, "missing")', "len(layer)", "if last:")
    assert [values["before"][code] for code in lines] == [4] * 5
    assert [values["after"][code] for code in lines] == [5] * 5 and values["after"]["layer(True)"] == 1
    assert values["before"]["return 1"] == 4 and values["after"]["return 1"] == 4
    assert values["gone"] and values["traced"] <= 1


def test_profiled_functions_inside_them_are_seen(tmp_path):
    values = run(
        CALLED
        + """
import threading
@profile
def inner(depth):
    block = Block(10)
    if depth:
        return Deep()(depth - 1)
    return sys.gettrace() is not None
class Deep:
    def __call__(self, depth):
        return layer.inner(depth)
layer = Layer(1)
@profile
def outer():
    first = Deep()(2)
    second = Deep()(2)
    return first, second
result = outer()
thread = threading.Thread(target=lambda: seen.append(Deep()(0)))
thread.start(); thread.join()
inner_table = table("inner")
report(result=result, inner=inner_table, outer=table("outer"), on_thread=seen[-1], gone=sys.gettrace() is None)
late = Deep.__call__
Deep.__call__ = profile(late)
outer()
report(late=table("Deep.__call__"), inner_after=table("inner"))
""",
        tmp_path,
    )
    assert values["result"] == [True, True] and values["gone"] and values["on_thread"]
    assert values["inner"]["block = Block(10)"] == 7 and values["inner"]["return sys.gettrace() is not None"] == 3
    assert values["outer"]["second = Deep()(2)"] == 1 and values["outer"]["return first, second"] == 1
    assert values["late"]["return layer.inner(depth)"] == 6 and values["inner_after"]["block = Block(10)"] == 13


def test_a_fork_and_another_tracer_inside_them(tmp_path):
    values = run(
        """
import os
class Forks:
    def __call__(self, how):
        if how == "fork":
            child = os.fork()
            if child == 0:
                return "child"
            os.waitpid(child, 0)
        elif how == "tracer":
            sys.settrace(lambda *event: None)
        return how
calls = Forks()
@profile
def f(how):
    calls("")
    result = calls(how)
    after = sys.gettrace()
    return result, after is not None
f("")
f("")
answer = f("fork")
if answer[0] == "child":
    report(child=[answer[1], sys.gettrace() is None])
    os._exit(0)
report(parent=answer, table=table("f"))
f("tracer")
tracer = sys.gettrace()
sys.settrace(None)
report(again=f(""), interrupted=[n for p in decorators._profilers for n in p.records().notes if "tracer" in n] != [])
""",
        tmp_path,
    )
    assert values["child"] == [False, True] and values["parent"] == ["fork", True]
    assert values["table"]["return result, after is not None"] == 3
    assert values["again"] == ["", True] and values["interrupted"]


@pytest.mark.parametrize("how", ["adopted", "entered"])
def test_a_line_profiler_is_disabled_elsewhere_in_the_middle_of_a_line(tmp_path, how):
    """The hook's depth falls from below while a call that C makes is about to pause tracing."""
    values = run(
        f"""
import threading
started, gate, ready = threading.Semaphore(0), threading.Semaphore(0), []
@profile
def inner(n):
    block = Block(n)
    return block
class Calls:
    def __call__(self):
        return inner(2)
calls = Calls()
@profile
def work():
    a = Block(1)
    x = started.release(), gate.acquire(), calls()
    b = Block(4)
    y = calls()
    return a, b
other = LineProfiler(lambda: None)
def body():
    {"other.enable()" if how == "entered" else "pass"}
    work()
gate.release()
work()
{"other.enable()" if how == "adopted" else "pass"}
thread = threading.Thread(target=body)
started = threading.Semaphore(0)
thread.start()
started.acquire()
other.disable()
gate.release()
thread.join()
report(work=table("work"), inner=table("inner"), notes=[n for p in decorators._profilers for n in p.records().notes])
""",
        tmp_path,
    )
    lines = (
        "a = Block(1)",
        "x = started.release(), gate.acquire(), calls()",
        "b = Block(4)",
        "y = calls()",
        "return a, b",
    )
    assert [values["work"][code] for code in lines] == [2] * 5
    assert values["inner"]["block = Block(n)"] == values["inner"]["return block"] == 4
    assert values["notes"] == []


def test_profiled_functions_that_finalizers_of_its_variables_call_are_seen(tmp_path):
    values = run(
        """
class Last:
    def __del__(self):
        nested(2)

@profile
def nested(n):
    if n:
        nested(n - 1)
    block = Block(100 * n)
    return None

@profile
def f():
    last = Last()
    return 1

@profile
def outer():
    f()
    block = Block(50)
    return None
f()
outer()
lines = figures()["nested"].lines
report(nested=table("nested"), outer=table("outer"), after=traced(), calls=figures()["nested"].calls,
       peak=max(line.stats["cpu"].allocated_peak for line in lines if line.hits),
       outer_peak=max(line.stats["cpu"].allocated_peak for line in figures()["outer"].lines if line.hits),
       notes=[note for p in decorators._profilers for note in p.records().notes])
""",
        tmp_path,
    )
    assert values["calls"] == 6 and values["nested"]["nested(n - 1)"] == 4
    assert values["nested"]["return None"] == 6 and values["peak"] == 200
    assert values["outer"] == {"def outer():": 0, "f()": 1, "block = Block(50)": 1, "return None": 1}
    assert values["outer_peak"] == 200
    assert values["after"] is False and values["notes"] == []


@pytest.mark.parametrize(
    "twice",
    [
        "lambda *a: [g(*a), g(*a)][1]",
        "lambda *a: list(map(g, a + a))[1]",
        "functools.partial(lambda call, *a: [call(*a), call(*a)][1], g)",
        "functools.lru_cache(lambda *a: [g(*a), g(*a)][1])",
    ],
)
def test_a_function_that_another_decorator_calls_twice_is_seen_twice(tmp_path, twice):
    values = run(
        f"""
import functools
def doubled(g):
    twice = {twice}
    return functools.wraps(g)(lambda *a: twice(*a))

@profile
@doubled
def f(x):
    block = Block(10)
    return x
report(results=[f(1), f(2)], after=traced(), table=table("f"))
""",
        tmp_path,
    )
    assert values["results"] == [1, 2] and values["after"] is False
    assert values["table"]["block = Block(10)"] == 4 and values["table"]["return x"] == 4


def test_what_finalizers_of_its_variables_change_stays_changed(tmp_path):
    values = run(
        """
from pytorch_memlab_c import profile_every
def tracer(frame, event, arg):
    return None

class Last:
    def __init__(self, act):
        self.act = act
    def __del__(self):
        self.act()

@profile
def f(act):
    last = Last(act)
    return 1

profiler = LineProfiler(traced)
f(lambda: sys.settrace(tracer))
report(kept=sys.gettrace() is tracer)
sys.settrace(None)
f(profiler.enable)
report(enabled=traced(), recording=profiler.records() is not None)
profiler.disable()
report(disabled=traced())
hook = []
with LineProfiler(traced):
    f(lambda: hook.append(sys.gettrace() is not None))
report(below=hook, after=traced(), hits=table("f")["return 1"])
""",
        tmp_path,
    )
    assert values["kept"] is True
    assert values["enabled"] is True and values["disabled"] is False
    assert values["below"] == [True] and values["after"] is False and values["hits"] == 3
