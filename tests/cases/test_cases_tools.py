"""Public reports about other tools beside it: coverage, debuggers, profilers (cases 32 to 34)."""

from __future__ import annotations

import json
import sys

import pytest
from run_program import SETTRACE, run_program, titles

# ---- 32: other tracers keep working and are put back ----

COVERED = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from program_support import allocate, free, report

def unprofiled(x):
    if x > 1:
        return x
    return -x

@decorate
def f(x):
    allocate(100)
    try:
        if x == 3:
            raise KeyError(x)
        y = [unprofiled(i) for i in range(x)]
    except KeyError:
        y = []
    finally:
        free(100)
    return len(y)

@decorate
def g(n):
    for i in range(n):
        yield f(i)

def outer():
    profiler = make_profiler(f)
    profiler.enable()
    profiler.enable()
    total = sum(g(5))
    profiler.disable()
    total += f(2)
    profiler.disable()
    total += f(1)
    return total

def disabled_inside(profiler):
    profiler.enable()
    a = f(2)
    inner_disable(profiler)
    b = f(4)
    return a + b

def inner_disable(profiler):
    x = 1
    profiler.disable()
    if x:
        x = 2
    return x

report(before=repr(type(sys.gettrace())))
outer()
disabled_inside(make_profiler(f))
thread = threading.Thread(target=lambda: f(4))
thread.start(); thread.join()
with make_profiler(f):
    inside = threading.Thread(target=f, args=(2,))
    inside.start(); inside.join()
with ThreadPoolExecutor(2) as pool:
    list(pool.map(f, range(4)))
report(after=repr(type(sys.gettrace())))
"""
WITH_PROFILER = """\
import atexit
from pytorch_memlab_c import LineProfiler, profile
from pytorch_memlab_c.line_profiler import decorators
def decorate(function): return profile(function)
def make_profiler(*functions): return LineProfiler(*functions)
"""
WITHOUT_PROFILER = """\
import contextlib
class make_profiler(contextlib.nullcontext):
    def enable(self): pass
    def disable(self): pass
def decorate(function): return function
"""


@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
@pytest.mark.parametrize("branch", [False, True])
def test_case_32_coverage_is_the_same_with_and_without(tmp_path, core, branch):
    coverage = pytest.importorskip("coverage")
    if core == "sysmon" and (sys.version_info < (3, 12) or branch):
        pytest.skip("coverage's sysmon core needs Python 3.12, and 3.14 for branches")
    if int(coverage.__version__.split(".")[0]) < 7:
        pytest.skip("an old coverage")
    found = []
    for setup in (WITHOUT_PROFILER, WITH_PROFILER):
        directory = tmp_path / str(len(found))
        directory.mkdir()
        (directory / "covered.py").write_text("from setup_profiler import decorate, make_profiler\n" + COVERED)
        (directory / "setup_profiler.py").write_text(setup)
        options = ["--branch"] if branch else []
        run = run_program(
            "",
            directory,
            command=["-m", "coverage", "run", *options, "--include", "*covered.py", "covered.py"],
            env={"COVERAGE_CORE": core, "COVERAGE_FILE": str(directory / "data")},
        )
        assert "trace function changed" not in (run.stdout + run.stderr).lower()
        assert run.values["before"] == run.values["after"]
        if setup is WITH_PROFILER:
            assert titles(run.stdout) == ["f", "g"]
        to_json = ["-m", "coverage", "json", "-q", "-o", "out.json", "--show-contexts"]
        run_program("", directory, command=to_json, env={"COVERAGE_FILE": str(directory / "data")})
        (file,) = json.loads((directory / "out.json").read_text())["files"].values()
        found.append({k: file[k] for k in ("executed_lines", "missing_lines", "executed_branches") if k in file})
    assert found[0] == found[1]
    assert found[0]["missing_lines"] == []


TRACER_RESTORED = """
import sys
from pytorch_memlab_c import LineProfiler, profile
from program_support import report

def tracer(frame, event, arg):
    events.append((frame.f_code.co_name, event))
    return tracer

def f():
    seen.append(sys.gettrace())
    return 1

@profile
def g():
    return f()

events, seen, after = [], [], []
def check(expected):
    after.append(sys.gettrace() is expected)

for outer in (None, tracer):
    sys.settrace(outer)
    check(outer)
    first, second = LineProfiler(f), LineProfiler(f)
    with first:
        f()
        with first:
            f()
        f()
    check(outer)
    first.enable(); second.enable(); first.disable(); second.disable()   # overlapping, not nested
    check(outer)
    g()
    check(outer)
    first.disable()                                                       # not enabled
    check(outer)
    try:
        with first:
            raise KeyError
    except KeyError:
        check(outer)
sys.settrace(None)
report(after=after, ours=[type(x).__name__ for x in seen], events=sorted(set(map(tuple, events))))
"""


def test_case_32_the_tracer_that_was_there_is_called_and_put_back(tmp_path):
    run = run_program(TRACER_RESTORED, tmp_path, env=SETTRACE)
    assert run.values["after"] == [True] * 12
    assert run.values["ours"] == ["Hook"] * 8
    assert [["f", event] in run.values["events"] for event in ("call", "line", "return")] == [True] * 3


def test_case_32_disabled_inside_a_frame(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, free, report, report_lines

        def f():
            allocate(100)
            profiler.disable()
            allocate(1000)
            free(1100)

        def tracer(frame, event, arg):
            lines.append(frame.f_lineno) if event == "line" and frame.f_code is f.__code__ else None
            return tracer

        lines = []
        sys.settrace(tracer)
        profiler = LineProfiler(f)
        profiler.enable()
        f()
        restored = sys.gettrace() is tracer
        sys.settrace(None)
        first = f.__code__.co_firstlineno
        report(restored=restored, traced=[line - first for line in lines])
        report_lines(f=profiler)
        """,
        tmp_path,
    )
    assert run.values["restored"]
    assert run.values["traced"] == [1, 2, 3, 4]
    assert run.values["f"] == {"allocate(100)": [1, 100, 100], "profiler.disable()": [1, 100, 0]}


def test_settrace_of_gettrace_inside_a_profiled_function(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import allocate, decorated, free, report, report_lines

        def suspended(function):
            old = sys.gettrace()
            sys.settrace(None)
            try:
                function()
            finally:
                sys.settrace(old)

        def again():
            sys.settrace(sys.gettrace())

        @profile
        def f():
            again()
            allocate(100)
            suspended(lambda: free(100))
            allocate(200)
            free(200)

        f()
        none_after = sys.gettrace() is None
        with LineProfiler(f) as profiler:
            f()
            f()
        report(none_after=[none_after, sys.gettrace() is None], notes=list(decorated("f").records().notes))
        report_lines(decorated=decorated("f"), enabled=profiler)
        """,
        tmp_path,
    )
    assert run.values["none_after"] == [True, True]
    assert run.values["notes"] == []
    enabled = run.values["enabled"]
    assert enabled["allocate(100)"] == [2, 100, 200]
    assert enabled["allocate(200)"] == [2, 200, 400]
    assert run.values["decorated"]["allocate(200)"] == [3, 200, 600]


def test_settrace_none_inside_a_profiled_function_is_told_and_the_next_call_is_profiled(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import allocate, decorated, free, report, report_lines

        @profile
        def f(remove):
            allocate(100)
            if remove:
                sys.settrace(None)
            free(100)

        def g(remove):
            allocate(100)
            if remove:
                sys.settrace(None)
            free(100)

        f(True)
        f(False)
        with LineProfiler(g) as profiler:
            g(True)
        report(notes=[" ".join(p.records().notes) for p in (decorated("f"), profiler)], after=sys.gettrace() is None)
        report_lines(f=decorated("f"), g=profiler)
        """,
        tmp_path,
        env=SETTRACE,
    )
    assert [note.startswith("interrupted") for note in run.values["notes"]] == [True, True]
    assert run.values["after"]
    assert run.values["f"]["free(100)"] == [1, 100, -100]
    assert run.values["f"]["allocate(100)"] == [2, 100, 200]
    assert run.values["g"]["allocate(100)"] == [1, 100, 100]


def test_a_hook_armed_again_does_not_mistake_frames_that_are_gone(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import allocate, free, lines, report

        def f():
            frames.append(sys._getframe())     # its address is not used again
            allocate(100)
            sys.settrace(None)
            free(100)

        @profile
        def g():
            return 1

        frames = []

        def big():
            allocate(5000)
            free(5000)

        with LineProfiler(f, big) as profiler:
            f()
            g()        # arms the hook again
            big()
        notes = profiler.records().notes
        report(notes=list(notes), f=[line.peak for line in lines(profiler, "f").values()],
               big=profiler.records().functions[1].calls)
        """,
        tmp_path,
        env=SETTRACE,
    )
    assert run.values["notes"][0].startswith("interrupted")
    assert run.values["big"] == 1
    assert max(run.values["f"]) == 100  # what came after f had ended is none of its lines'


# ---- 33: a debugger wins ----


def test_case_33_a_debugger_inside_a_profiled_function(tmp_path):
    source = """
        import io, pdb, sys
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import allocate, decorated, free, report, report_lines

        @profile
        def f(debug):
            allocate(100)
            if debug:
                pdb.Pdb(stdin=io.StringIO(commands), stdout=out, nosigint=True, readrc=False).set_trace()
            y = 2
            free(100)
            return y

        commands, out = "n\\nn\\np 'y is', y\\nc\\n", io.StringIO()
        f(True)
        left = sys.gettrace()
        f(False)
        with LineProfiler(f) as profiler:
            f(True)
        report(debugger=out.getvalue(), left=left is None,
            notes=[list(p.records().notes) for p in (decorated("f"), profiler)])
        report_lines(f=decorated("f"))
        """
    run = run_program(source, tmp_path, env=SETTRACE)
    assert run.values["debugger"].count("('y is', 2)") == 2
    assert run.values["left"]
    assert [notes[0].startswith("interrupted") for notes in run.values["notes"]] == [True, True]
    assert run.values["f"]["free(100)"][0] == 1  # the call without a debugger
    assert "interrupted" in run.stdout


def test_case_33_another_tracer_put_in_our_place_stays(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import decorated, report, report_lines

        def other(frame, event, arg):
            events.append((frame.f_code.co_name, event))
            return other

        def inner():
            return 1

        @profile
        def f():
            sys.settrace(other)
            return inner()

        events = []
        f()
        stays = sys.gettrace() is other
        f()
        sys.settrace(None)
        inner_events = [event for name, event in events if name == "inner"]
        report(stays=stays, inner=inner_events, note=decorated("f").records().notes[0])
        """,
        tmp_path,
        env=SETTRACE,
    )
    assert run.values["stays"]
    assert run.values["inner"][:3] == ["call", "line", "return"]
    assert run.values["note"].startswith("interrupted")


# ---- 34: beside other profilers ----


def test_case_34_beside_cprofile(tmp_path):
    run = run_program(
        """
        import cProfile, pstats
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, free, report, report_lines

        def f():
            allocate(100)
            free(100)

        c_profile = cProfile.Profile()
        with LineProfiler(f) as profiler:
            c_profile.enable()
            f()
            f()
            c_profile.disable()
            f()
        stats = pstats.Stats(c_profile).stats
        report(calls=[value[0] for key, value in stats.items() if key[2] == "f"])
        report_lines(f=profiler)
        """,
        tmp_path,
    )
    assert run.values["calls"] == [2]
    assert run.values["f"] == {"allocate(100)": [3, 100, 300], "free(100)": [3, 100, -300]}


def test_case_34_beside_line_profiler(tmp_path):
    pytest.importorskip("line_profiler")
    run = run_program(
        """
        import cProfile
        import line_profiler
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, free, report, report_lines

        def f():
            allocate(100)
            free(100)

        def run(*managers):
            for manager in managers: manager.__enter__()
            f()
            for manager in reversed(managers): manager.__exit__(None, None, None)

        theirs = line_profiler.LineProfiler(f)     # replaces the code of f
        above, below = LineProfiler(f), LineProfiler(f)
        run(cProfile.Profile(), theirs, above)
        run(below, theirs, cProfile.Profile())
        (timings,) = theirs.get_stats().timings.values()
        report(theirs=[hits for _, hits, _ in timings], notes=list(below.records().notes))
        report_lines(above=above, below=below)
        """,
        tmp_path,
    )
    assert run.values["theirs"] == [2, 2]
    assert run.values["above"] == {"allocate(100)": [1, 100, 100], "free(100)": [1, 100, -100]}
    if sys.version_info >= (3, 12):  # they use sys.monitoring
        assert run.values["below"] == run.values["above"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")
def test_case_34_beside_sys_monitoring(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, free, report, report_lines

        def f():
            allocate(100)
            free(100)

        monitoring, seen = sys.monitoring, []
        monitoring.use_tool_id(monitoring.PROFILER_ID, "test")
        monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.LINE,
            lambda code, line: seen.append(line))
        monitoring.set_local_events(monitoring.PROFILER_ID, f.__code__, monitoring.events.LINE)
        with LineProfiler(f) as profiler:
            f()
        f()
        monitoring.set_local_events(monitoring.PROFILER_ID, f.__code__, 0)
        monitoring.free_tool_id(monitoring.PROFILER_ID)
        report(seen=len(seen))
        report_lines(f=profiler)
        """,
        tmp_path,
    )
    assert run.values["seen"] == 4
    assert run.values["f"] == {"allocate(100)": [1, 100, 100], "free(100)": [1, 100, -100]}
