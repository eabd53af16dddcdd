"""A program under `run` does what it does under plain Python: compared with a plain run, word for word."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from cli_support import RUN, environment, python, run, without_our_lines, write
from run_program import cells, titles

PROGRAMS = {
    "its own world": """
        import sys, os
        hidden = ("__loader__", "__builtins__")
        print(sorted((k, v) for k, v in globals().items() if k.startswith("__") and k not in hidden))
        print(type(__loader__).__name__, __loader__.name, __loader__.path, type(__builtins__).__name__)
        print(sys.argv, sys.path[0], __name__, sys.modules["__main__"].__dict__ is globals())
        print(sys.exc_info(), sys.gettrace is not None, len(sys.path) == len(set(sys.path)) or sys.path)
        import sibling
        print(sibling.value, os.getcwd())
        """,
    "standard input": """
        import sys
        print(input(), sys.stdin.read().split())
        """,
    "uncaught exception": """
        def f(x):
            try:
                {}[x]
            except KeyError as error:
                raise ValueError("outer") from error
        print("before")
        f(1)
        """,
    "exception of an imported module": """
        try:
            import broken
        except ZeroDivisionError:
            import traceback
            traceback.print_exc()
        import broken
        """,
    "syntax error of an imported module": "import unreadable",
    "syntax error": "def f(:\n    pass\n",
    "exit by text": "import sys; sys.exit('that is all')",
    "exit by None": "import sys; sys.exit()",
    "exit by number": "raise SystemExit(7)",
    "exit by a large number": "import sys; sys.exit(256 + 3)",
    "exit inside a function": """
        import sys
        def f():
            try:
                sys.exit(5)
            finally:
                print("finally")
        f()
        """,
    "at exit": """
        import atexit, threading, time
        def later():
            time.sleep(0.1)
            print("thread")
        def last():
            print("atexit")
            raise ValueError(2)
        atexit.register(print, "first registered")
        atexit.register(last)
        threading.Thread(target=later).start()
        print("end")
        """,
    "keyboard interrupt": "print('x', flush=True)\nraise KeyboardInterrupt",
    "kind of keyboard interrupt": "class Stop(KeyboardInterrupt):\n    pass\nraise Stop",
    "own excepthook": """
        import sys, traceback
        def hook(kind, value, tb):
            print("hook", kind, value, [f.name for f in traceback.extract_tb(tb)], value.__traceback__ is tb)
        sys.excepthook = hook
        def f():
            raise OSError("x")
        f()
        """,
    "exception in a thread": """
        import threading
        def f():
            raise ValueError("in a thread")
        thread = threading.Thread(target=f, name="worker")
        thread.start()
        thread.join()
        """,
    "pickling": """
        import pickle
        class Point:
            def __init__(self, x):
                self.x = x
        def f(x):
            return x
        if __name__ == "__main__":
            print(pickle.loads(pickle.dumps(f)) is f, pickle.loads(pickle.dumps(Point(3))).x, pickle.dumps(f)[:40])
        """,
    "killed by itself": "import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "warning": "import warnings\ndef f():\n    warnings.warn('careful', stacklevel=2)\nf()\n",
    "warning of the compiler": "x = 1\nif x is 1:\n    print('told once')\n",
    "optimised": "assert False, 'not seen'\nprint(__debug__)",
    "future": "from __future__ import annotations\nx: undefined = 1\nprint(__annotations__)",
}
OPTIONS = {"optimised": ["-O"]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_does_what_it_does_under_plain_python(tmp_path, name):
    write(
        tmp_path,
        {
            "src/script.py": PROGRAMS[name],
            "src/sibling.py": "value = 5\n",
            "src/broken.py": "def f():\n    1 / 0\nf()\n",
            "src/unreadable.py": "x = = 1\n",
        },
    )
    options = OPTIONS.get(name, [])
    words = ["src/script.py", "--epochs", "1", "-f", "x", "--"]
    plain = python(tmp_path, *options, *words, stdin="first\nsecond third\n")
    looked_at = ["-p", "__main__", "-p", "broken", "-p", "unreadable", "-p", "sibling"]
    own = python(tmp_path, *options, *RUN, *looked_at, "-o", "report.json", *words, stdin="first\nsecond third\n")
    assert own.returncode == plain.returncode
    assert own.stdout == plain.stdout
    assert without_our_lines(own.stderr) == without_our_lines(plain.stderr)
    assert "syntax" in name or "wrote report.json" in own.stderr


PACKAGE = {
    "package/__init__.py": "import sys; print('package', __name__, sys.argv[0])\n",
    "package/helper.py": "value = 6\n",
    "package/train.py": """
        import sys
        from . import helper
        from .helper import value
        if __name__ == "__main__":
            print(sorted((k, str(v)) for k, v in globals().items() if k in ("__file__", "__package__", "__cached__")))
            print(__spec__.name, sys.argv, sys.path[0], value)
            raise LookupError("at the end")
        """,
    "package/__main__.py": "import sys\nfrom .helper import value\n"
    "print(__spec__.name, __package__, sys.argv, value)\n",
    "folder/__main__.py": "import sys, beside\n"
    "print(__spec__.name, repr(__package__), __file__, sys.argv, sys.path[0])\n",
    "folder/beside.py": "",
}


@pytest.mark.parametrize(
    "words",
    [["-m", "package.train", "-m", "x"], ["-m", "package", "a"], ["folder", "-o"], ["archive.zip", "x"]],
    ids=lambda words: words[-2 if "." in words[0] or len(words) > 2 else 0],
)
def test_modules_folders_and_archives(tmp_path, words):
    write(tmp_path, PACKAGE)
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        for name in ("__main__.py", "beside.py"):
            archive.write(tmp_path / "folder" / name, name)
    plain = python(tmp_path, *words)
    own = run(tmp_path, "-o", "report.json", *words)
    assert (own.returncode, own.stdout) == (plain.returncode, plain.stdout)
    assert without_our_lines(own.stderr) == _without_runpy(plain.stderr)


def _without_runpy(traceback: str) -> str:
    """The frames of Python's own module runner are not the program's."""
    head, *frames = traceback.split('  File "')
    kept = (frame for frame in frames if "runpy" not in frame.partition('"')[0])
    return head + "".join(f'  File "{frame}' for frame in kept)


def test_multiprocessing_by_fork_and_spawn_case_7(tmp_path):
    program = """
        import multiprocessing, os, sys
        from concurrent.futures import ProcessPoolExecutor

        def work(x):
            return x * x, __name__, sys.gettrace() is None

        class Task:
            def __call__(self, x):
                return x + 1

        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                context = multiprocessing.get_context(method)
                with context.Pool(2) as pool:
                    print(method, pool.map(work, [1, 2]), pool.map(Task(), [1]))
            with ProcessPoolExecutor(1, mp_context=context) as executor:
                print(list(executor.map(work, [3])))
            child = context.Process(target=sys.exit, args=(4,))
            child.start()
            child.join()
            pid = os.fork()
            if pid == 0:
                work(1)
                sys.exit(3)
            print(child.exitcode, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    write(tmp_path, {"script.py": program})
    plain = python(tmp_path, "script.py", PYTHONWARNINGS="ignore")
    own = run(tmp_path, "-o", "report.txt", "script.py", PYTHONWARNINGS="ignore")
    assert own.returncode == plain.returncode == 0, own.stderr
    assert own.stdout == plain.stdout
    assert own.stderr == "pytorch_memlab_c: wrote report.txt\n"  # by the parent alone, once
    assert "not called in this process: work" in (tmp_path / "report.txt").read_text()


SIGNALS = """
    import signal, sys, time
    from program_support import Block
    def handle(number, frame):
        print("handled", flush=True)
        sys.exit(9)
    def wait():
        block = Block(2048)
        print("ready", flush=True)
        time.sleep(60)
    if "own" in sys.argv:
        signal.signal(signal.SIGTERM, handle)
    wait()
    """


@pytest.mark.parametrize("number, arguments", [("SIGINT", []), ("SIGTERM", []), ("SIGHUP", []), ("SIGTERM", ["own"])])
def test_signals_end_it_as_they_would_and_the_report_is_written(tmp_path, number, arguments):
    write(tmp_path, {"script.py": SIGNALS})
    ends = []
    for command in ([], [*RUN, "-f", "wait", "-o", "report.txt"]):
        process = _start(tmp_path, [*command, "script.py", *arguments])
        process.send_signal(getattr(signal, number))
        stdout, stderr = process.communicate(timeout=60)
        ends.append((process.returncode, stdout, without_our_lines(stderr)))
    assert ends[0] == ends[1]
    assert ends[0][0] == (9 if arguments else -getattr(signal, number))
    assert cells((tmp_path / "report.txt").read_text(), "block = Block(2048)") == ["2.00K", "2.00K", "1"]


def _start(folder: Path, words: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, env=environment(), stdout=pipe, stderr=pipe, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.05)  # into its sleep
    return process


def test_pytest_with_its_own_import_hook(tmp_path):
    write(
        tmp_path,
        {
            "helper.py": "from program_support import Block\ndef help():\n    block = Block(1024)\n",
            "test_it.py": "import helper\ndef test_one(capsys):\n    helper.help()\n    assert 1 == 2, 'rewritten'\n",
        },
    )
    words = ["-p", "test_it", "-p", "helper", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    end = run(tmp_path, "-o", "report.txt", *words, "test_it.py")
    assert end.returncode == 1 and "AssertionError: rewritten" in end.stdout
    text = (tmp_path / "report.txt").read_text()
    assert titles(text) == ["help", "test_one"] and cells(text, "block = Block(1024)")[:2] == ["1.00K", "1.00K"]


def test_a_child_that_is_terminated_dies_of_the_signal_alone(tmp_path):
    program = """
        import multiprocessing, signal, time
        def work(): time.sleep(60)
        def main():
            child = multiprocessing.get_context("fork").Process(target=work)
            child.start()
            child.terminate()
            child.join()
            print(child.exitcode, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        main()
        """
    write(tmp_path, {"script.py": program})
    own = run(tmp_path, "-o", "report.txt", "script.py")
    assert (own.stdout, own.stderr) == ("-15 True\n", "pytorch_memlab_c: wrote report.txt\n")


def test_the_console_script_is_the_same_command(tmp_path):
    write(tmp_path, {"script.py": "import sys; print(sys.argv, sys.path[0]); sys.exit(4)"})
    starter = "import sys; from pytorch_memlab_c.cli import main; sys.argv[0] = 'bin/pytorch-memlab'; sys.exit(main())"
    write(tmp_path, {"bin/pytorch-memlab": starter})
    own = python(tmp_path, "bin/pytorch-memlab", "run", "-o", "report.txt", "script.py", "a")
    assert own.returncode == 4
    assert own.stdout == f"['script.py', 'a'] {tmp_path}\n"
    assert python(tmp_path, "bin/pytorch-memlab", "run").stderr.startswith("pytorch-memlab run: error: nothing to run")
