"""Public reports about processes (cases 37 and 38): workers, forks, pools."""

from __future__ import annotations

import pytest
from run_program import cells, run_program, titles

# ---- 37 and 38: processes ----


def test_case_37_data_loader_workers(tmp_path):
    pytest.importorskip("torch")
    run = run_program(
        """
        import torch
        from torch.utils.data import DataLoader, Dataset
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import decorated, report, report_lines

        class Data(Dataset):
            def __len__(self):
                return 8

            @profile(device="cpu")
            def __getitem__(self, i):
                x = torch.full((250,), float(i))
                return x

        @profile(device="cpu")
        def consume(loader):
            total = 0.0
            for batch in loader:
                total += batch.sum().item()
            return total

        if __name__ == "__main__":
            data = Data()
            data[0]
            with LineProfiler(Data.__getitem__, device="cpu") as profiler:
                total = consume(DataLoader(data, batch_size=2, num_workers=2))
                data[1]
            report(total=total, parent=profiler.records().functions[0].calls)
            report_lines(item=decorated("Data.__getitem__"))
        """,
        tmp_path,
    )
    assert run.values["total"] == 250 * sum(range(8))
    assert run.values["parent"] == 1
    assert run.values["item"]["x = torch.full((250,), float(i))"][0] == 2  # the parent's own two calls
    assert titles(run.stdout) == ["Data.__getitem__", "consume"]
    assert run.stderr == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["program.py", "results.json", "stderr", "stdout"]


FORK = """
import os, sys
from pytorch_memlab_c import LineProfiler, profile, profile_every
from program_support import allocate, decorated, free, level, report, report_lines

@profile
def f(size):
    allocate(size)
    free(size)

@profile
def forks(end):
    allocate(50)
    pid = os.fork()
    if pid == 0:
        child(end)
    free(50)
    return pid

def child(end):
    traced = sys.gettrace()
    allocate(70)
    f(10)
    with LineProfiler(f) as own:
        f(999)
    report_lines(**{"own_" + end: own})
    report(**{"child_" + end: [traced is None, sys.gettrace() is None, enabled.enabled,
        decorated("f").records().functions[0].calls]})
    enabled.disable()
    report(**{"disabled_" + end: [sys.gettrace() is None, enabled.enabled]})
    sys.stdout.flush()
    if end == "_exit":
        os._exit(0)
    if end == "sys.exit":
        sys.exit(0)
    if end == "raise":
        sys.stderr = open(os.devnull, "w")
        raise KeyError

f(5)
enabled = LineProfiler(f)
with enabled:
    for end in ("_exit", "sys.exit", "raise"):
        pid = forks(end)
        os.waitpid(pid, 0)
    f(6)
report_lines(f=decorated("f"), enabled=enabled, forks=decorated("forks"))
"""


def test_case_38_fork_inside_a_profiled_function(tmp_path):
    run = run_program(FORK, tmp_path)
    assert titles(run.stdout) == ["f", "forks"]  # the parent's, once; nothing of the children
    for end in ("_exit", "sys.exit", "raise"):
        assert run.values[f"child_{end}"] == [True, True, True, 0]
        assert run.values[f"disabled_{end}"] == [True, False]
        assert run.values[f"own_{end}"]["allocate(size)"] == [1, 50 + 70 + 999, 999]
    assert run.values["f"]["allocate(size)"] == [2, 6, 11]
    assert run.values["enabled"]["allocate(size)"] == [1, 6, 6]
    assert run.values["forks"]["pid = os.fork()"] == [3, 50, 0]
    assert run.stderr == ""


def test_a_forked_child_that_runs_to_its_end_prints_nothing(tmp_path):
    run = run_program(
        """
        import os
        from pytorch_memlab_c import profile
        from program_support import allocate, free

        @profile
        def f():
            allocate(4096)
            free(4096)

        f()
        pid = os.fork()
        f()
        if pid:
            os.waitpid(pid, 0)
        """,
        tmp_path,
    )
    assert titles(run.stdout) == ["f"]
    assert cells(run.stdout, "allocate(4096)") == ["4.00K", "4.00K", "2"]


def test_profile_every_goes_on_in_a_forked_child(tmp_path):
    run = run_program(
        """
        import os, sys
        from pytorch_memlab_c import profile_every
        from program_support import allocate, free

        @profile_every(2)
        def f(size):
            allocate(size)
            free(size)

        f(1024)
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            f(2048)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(pid, 0)
        f(4096)
        """,
        tmp_path,
    )
    assert titles(run.stdout) == ["f", "f"]
    child, parent = run.stdout.split("## f")[1:]
    assert cells(child, "allocate(size)") == ["2.00K", "2.00K", "1"]  # what the parent counted stays with it
    assert cells(parent, "allocate(size)") == ["4.00K", "4.00K", "2"]


def test_case_38_fork_while_other_threads_are_profiled(tmp_path):
    run = run_program(
        """
        import os, threading
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, free, report, report_lines

        def f():
            while not stop.is_set():
                allocate(1)
                free(1)

        def g():
            allocate(100)
            free(100)

        stop = threading.Event()
        with LineProfiler(f, g) as profiler:
            threads = [threading.Thread(target=f) for _ in range(3)]
            for thread in threads: thread.start()
            status = []
            for _ in range(20):
                pid = os.fork()
                if pid == 0:
                    with LineProfiler(g) as own:
                        g()
                    os._exit(own.records().functions[0].calls)
                status.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            stop.set()
            for thread in threads: thread.join()
            g()
        report(status=status, g=profiler.records().functions[1].calls)
        """,
        tmp_path,
        env={"PYTHONWARNINGS": "ignore::DeprecationWarning"},
    )
    assert run.values["status"] == [1] * 20
    assert run.values["g"] == 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_with_a_profiled_target(tmp_path, method):
    run = run_program(
        f"""
        import multiprocessing
        from pytorch_memlab_c import profile
        from program_support import Block

        @profile
        def work(queue, size):
            block = Block(size)
            queue.put(block.size)

        @profile
        def parent_only():
            block = Block(1024)

        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            queue = context.Queue()
            processes = [context.Process(target=work, args=(queue, size)) for size in (1, 2)]
            for process in processes: process.start()
            sizes = sorted(queue.get() for _ in processes)
            for process in processes: process.join()
            parent_only()
            assert sizes == [1, 2] and [p.exitcode for p in processes] == [0, 0]
        """,
        tmp_path,
    )
    assert run.stdout.count("work: never called") == 1
    assert titles(run.stdout)[-2:] == ["work", "parent_only"]
    assert cells(run.stdout, "block = Block(1024)") == ["1.00K", "1.00K", "1"]
    if method == "fork":
        assert titles(run.stdout) == ["work", "parent_only"]
