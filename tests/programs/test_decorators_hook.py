"""What a decorated function leaves behind, and what it sees: exceptions, other tracers, finalizers, forks,
interrupts."""

from __future__ import annotations

import pytest
from run_program import SETTRACE, run_program

PROGRAM = """
import sys
from program_support import Block, allocate, free, report
from pytorch_memlab_c import LineProfiler, profile, profile_every
from pytorch_memlab_c.line_profiler import decorators

def traced():
    return sys.gettrace() is not None

def figures():
    return {{p.records().functions[0].qualname: p.records().functions[0] for p in decorators._profilers}}

def table(name):
    function = figures()[name]
    return {{function.source[line.line - function.first_line].strip(): line.hits for line in function.lines}}

def notes():
    '''But that these programs do without PyTorch.'''
    found = [note for p in decorators._profilers for note in p.records().notes]
    return [note for note in found if "has not imported PyTorch" not in note]

{body}
decorators._profilers.clear()
"""


def run(body, tmp_path, env=None):
    return run_program(PROGRAM.format(body=body), tmp_path, env=env).values


def test_an_exception_through_several_decorated_functions_ends_their_frames(tmp_path):
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
        SETTRACE,
    )
    assert values["inner"]["fails()"] == 2 and values["outer"]["between()"] == 2
    assert values["top"]["pass"] == 2 and values["top"]["return traced()"] == 1 and values["traced"]
    assert values["notes"] == [] and values["after"] is True


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
        SETTRACE,
    )
    assert values["result"] == [[True, True], [True, True], True]
    assert list(values["leaf"].values())[-1] == 2
    assert values["root"]["b = deep(5)"] == 1


def test_another_tracer_set_in_a_callee_takes_precedence(tmp_path):
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
       notes=[n for n in notes() if "interrupted" in n] != [])
""",
        tmp_path,
        SETTRACE,
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


def test_references_are_stable_over_many_calls(tmp_path):
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


def test_a_fork_and_another_tracer_inside_a_callee(tmp_path):
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
report(again=f(""), interrupted=[n for n in notes() if "tracer" in n] != [])
""",
        tmp_path,
        SETTRACE,
    )
    assert values["child"] == [False, True] and values["parent"] == ["fork", True]
    assert values["table"]["return result, after is not None"] == 3
    assert values["again"] == ["", True] and values["interrupted"]


@pytest.mark.parametrize("how", ["adopted", "entered"])
def test_a_line_profiler_is_disabled_elsewhere_in_the_middle_of_a_line(tmp_path, how):
    """The hook's depth falls from below."""
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
report(work=table("work"), inner=table("inner"), notes=notes())
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
       notes=notes())
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
        SETTRACE,
    )
    assert values["kept"] is True
    assert values["enabled"] is True and values["disabled"] is False
    assert values["below"] == [True] and values["after"] is False and values["hits"] == 3


def test_a_callee_that_keeps_its_frame_costs_no_lines(tmp_path):
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
for _ in range(3):
    f()
report(table=table("f"), notes=notes(), after=traced())
""",
        tmp_path,
    )
    assert values["table"] == {"def f():": 0, "keeps()": 3, "one = 1": 3, "return one": 3}
    assert values["notes"] == [] and values["after"] is False


INTERRUPTS = """
import asyncio, signal, time

class Interrupt(Exception):
    pass

def interrupt(number, frame):
    raise Interrupt

def callee(x):
    return x + 1

@profile
def plain(x):
    return callee(x)

@profile_every(10**9)
def counted(x, *rest, **named):
    return plain(x)

@profile
def generator(x):
    yield counted(x, 1, 2, a=3)
    yield counted(x)

@profile
async def coroutine(x):
    return list(generator(x))

def work():
    counted(1, 2, a=3)
    list(generator(1))
    asyncio_free = coroutine(1)
    try:
        asyncio_free.send(None)
    except StopIteration:
        pass

signal.signal(signal.SIGALRM, interrupt)
interrupted, left = 0, 0
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 + 1e-6 * (interrupted % 200))
        while True:
            work()
    except Interrupt:
        interrupted += 1
    except RuntimeError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    left += traced()
    sys.settrace(None)
work()
report(interrupted=interrupted, left=left, after=traced())
"""


def test_an_interrupt_at_any_moment_leaves_no_hook_behind(tmp_path):
    values = run(INTERRUPTS.replace("{", "{{").replace("}", "}}"), tmp_path)
    assert values["interrupted"] > 500
    assert values["left"] == 0 and values["after"] is False
