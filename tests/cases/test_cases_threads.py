"""Public reports about threads (cases 35 and 36)."""

from __future__ import annotations

import pytest
from run_program import SETTRACE, run_program

# ---- 35 and 36: threads ----


def test_case_35_a_decorated_function_is_profiled_in_each_thread(tmp_path):
    run = run_program(
        """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        from pytorch_memlab_c import profile
        from program_support import allocate, decorated, free, report, report_lines

        @profile
        def f(i):
            allocate(100)
            barrier.wait()
            free(100)
            return i

        barrier = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            report(results=sorted(pool.map(f, range(8))))
        report_lines(f=decorated("f"))
        """,
        tmp_path,
    )
    assert run.values["results"] == list(range(8))
    rows = run.values["f"]
    assert {text: row[0] for text, row in rows.items()} == dict.fromkeys(
        ["allocate(100)", "barrier.wait()", "free(100)", "return i"], 8
    )
    assert rows["barrier.wait()"][1] == 400  # what all threads hold is what the device holds


def test_case_35_two_threads_each_get_their_own_lines(tmp_path):
    run = run_program(
        """
        import threading
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, free, report, report_lines

        def f():
            allocate(1000)
            one.set()
            two.wait()
            free(1000)

        def g():
            one.wait()
            allocate(20)
            free(20)
            two.set()

        one, two = threading.Event(), threading.Event()
        f_profiler, g_profiler = LineProfiler(f), LineProfiler(g)
        with f_profiler, g_profiler:
            threads = [threading.Thread(target=target) for target in (f, g)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        report_lines(f=f_profiler, g=g_profiler)
        """,
        tmp_path,
    )
    assert {text: row[0] for text, row in run.values["f"].items()} == dict.fromkeys(
        ["allocate(1000)", "one.set()", "two.wait()", "free(1000)"], 1
    )
    assert {text: row[0] for text, row in run.values["g"].items()} == dict.fromkeys(
        ["one.wait()", "allocate(20)", "free(20)", "two.set()"], 1
    )
    assert run.values["f"]["allocate(1000)"] == [1, 1000, 1000]
    assert run.values["g"]["allocate(20)"] == [1, 1020, 20]
    assert run.values["g"]["free(20)"] == [1, 1020, -20]
    assert run.values["f"]["two.wait()"][1:] == [1020, 0]


def test_case_35_threads_switching_in_the_same_function(tmp_path):
    run = run_program(
        """
        import sys, threading
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import allocate, decorated, free, report, report_lines

        sys.setswitchinterval(1e-5)

        def plain(x):
            return x

        @profile
        def f(n):
            for i in range(n):
                allocate(1)
                plain(i)
                free(1)
            return n

        with LineProfiler(f) as profiler:
            threads = [threading.Thread(target=f, args=(2000,)) for _ in range(6)]
            for thread in threads: thread.start()
            f(2000)
            for thread in threads: thread.join()
        report_lines(decorated=decorated("f"), enabled=profiler)
        """,
        tmp_path,
    )
    for rows in (run.values["decorated"], run.values["enabled"]):
        assert {text: row[0] for text, row in rows.items()} == {
            "for i in range(n):": 7 * 2001, "allocate(1)": 14000, "plain(i)": 14000, "free(1)": 14000, "return n": 7
        }  # fmt: skip
        assert all(row[1] <= 7 for row in rows.values())


def test_threads_that_start_while_enabled_are_covered_and_threads_before_are_not(tmp_path):
    run = run_program(
        """
        import sys, threading
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, free, report, report_lines

        def f():
            allocate(100)
            free(100)

        def early():
            go.wait()
            f()

        def late():
            f()
            ended.wait()
            traced_after.append(repr(type(sys.gettrace())))
            f()
            still.append(sys.gettrace())

        go, ended, traced_after, still = threading.Event(), threading.Event(), [], []
        early_thread = threading.Thread(target=early)
        early_thread.start()
        profiler = LineProfiler(f)
        with profiler:
            late_thread = threading.Thread(target=late)
            late_thread.start()
            go.set()
            early_thread.join()
            while not profiler.records().functions[0].calls: pass
        ended.set()
        late_thread.join()
        after = threading.Thread(target=f)
        after.start(); after.join()
        report(settrace=threading.gettrace() is None, still=still[0] is None)
        report_lines(f=profiler)
        """,
        tmp_path,
        env=SETTRACE,
    )
    assert run.values["f"] == {"allocate(100)": [1, 100, 100], "free(100)": [1, 100, -100]}
    assert run.values["settrace"] and run.values["still"]


def test_threading_settrace_of_another_tool_is_kept(tmp_path):
    run = run_program(
        """
        import sys, threading
        from pytorch_memlab_c import LineProfiler
        from program_support import report, report_lines

        def tracer(frame, event, arg):
            if frame.f_code is f.__code__:
                events.append(event)
            return tracer

        def f():
            in_thread.append(sys.gettrace())
            return 1

        def run_thread():
            thread = threading.Thread(target=f)
            thread.start(); thread.join()

        events, in_thread = [], []
        threading.settrace(tracer)
        run_thread()
        plain, events[:] = list(events), []
        with LineProfiler(f) as profiler, LineProfiler(f) as other:
            run_thread()
        report(plain=plain, enabled=list(events), kept=threading.gettrace() is tracer)
        events.clear()
        run_thread()
        with profiler:
            threading.settrace(None)      # while enabled: the user's word stands
            run_thread()
        report(after=list(events)[:len(plain)], none=threading.gettrace() is None, own=in_thread[0] is tracer)
        report_lines(f=profiler, other=other)
        """,
        tmp_path,
        env=SETTRACE,
    )
    assert run.values["plain"] == ["call", "line", "line", "return"] == run.values["enabled"]
    assert run.values["kept"] and run.values["none"] and run.values["own"]
    assert run.values["after"] == run.values["plain"]
    assert run.values["f"]["return 1"][0] == 1 and run.values["other"]["return 1"][0] == 1


def test_enabled_in_one_thread_and_disabled_in_another(tmp_path):
    run = run_program(
        """
        import sys, threading
        from pytorch_memlab_c import LineProfiler
        from program_support import report, report_lines

        def f():
            return 1

        profiler = LineProfiler(f)
        profiler.enable()
        f()
        thread = threading.Thread(target=profiler.disable)
        thread.start(); thread.join()
        f()
        def unprofiled(): return sys.gettrace()
        first, second = unprofiled(), unprofiled()
        with profiler:
            f()
        report(traces=[repr(first), repr(second), repr(sys.gettrace())])
        report_lines(f=profiler)
        """,
        tmp_path,
    )
    assert run.values["f"] == {"return 1": [2, 0, 0]}
    assert run.values["traces"] == ["None"] * 3


def test_case_36_forward_in_two_threads_is_not_mixed(tmp_path):
    pytest.importorskip("torch")
    run = run_program(
        """
        import threading
        import torch
        from pytorch_memlab_c import profile
        from pytorch_memlab_c.engine import following
        from program_support import decorated, level, report, report_lines

        class Net(torch.nn.Module):
            def __init__(self, size):
                super().__init__()
                self.size = size

            @profile(device="cpu")
            def forward(self, turn, done):
                turn.wait()
                a = torch.ones(self.size)
                done.set()
                return a

        following.prepare()
        nets = [Net(1000), Net(50)]
        events = [threading.Event() for _ in range(3)]
        results = {}
        def work(i):
            results[i] = nets[i](events[i], events[i + 1])
        before = level()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads: thread.start()
        events[0].set()
        for thread in threads: thread.join()
        (line,) = [x for x in decorated("Net.forward").records().functions[0].lines if x.hits
            and x.stats["cpu"][12] == 2]
        stats = line.stats["cpu"]
        report(before=before, hits=line.hits, net=[stats[7], stats[10], stats[8]], peak=stats[2], gross=stats[11:13])
        """,
        tmp_path,
    )
    values = run.values
    assert values["hits"] == 2
    assert values["net"] == [4000, 200, 4200]  # the first thread's, the second's, together
    assert values["peak"] == values["before"] + 4200
    assert values["gross"] == [4200, 2]
