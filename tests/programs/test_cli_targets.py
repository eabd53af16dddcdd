"""`run -f` and `-p`: which functions are profiled, and what is said of names that are not there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_support import python, run, write
from run_program import cells, titles

from pytorch_memlab_c import LineRecords
from pytorch_memlab_c.cli.code_tree import functions_in

FILES = {
    "script.py": """
        import model as m
        from model import Net, helper as h
        from package import *
        import package.late
        from lazy import Thing

        def main():
            net = Net()
            net.forward(1024)
            net.Inner().method()
            net.size, net.cached, Net.make(), Net.static()
            h()
            m.bare()
            m.cached(1)
            m.once()
            package.late.inside()
            Thing().run()

        class Sub(Net):
            pass

        async def task():
            h()

        async def stream():
            h()
            yield 1

        async def both():
            await task()
            async for _ in stream():
                pass

        if __name__ == "__main__":
            main()
            Sub().forward(1)
            import asyncio
            asyncio.run(both())
            sorted([2, 1], key=lambda x: x)
        """,
    "model.py": """
        import functools, contextlib
        from program_support import Block

        def bare_decorator(function):
            def wrapper(*args):
                return function(*args)
            return wrapper

        class Net:
            class Inner:
                def method(self):
                    Block(3)

            def forward(self, size):
                block = Block(size)
                return [x for x in range(3)]

            @property
            def size(self):
                return Block(4).size

            @functools.cached_property
            def cached(self):
                return Block(5).size

            @classmethod
            def make(cls):
                def inside():
                    Block(6)
                inside()

            @staticmethod
            def static():
                Block(7)

        def helper():
            Block(8)

        @bare_decorator
        def bare():
            Block(9)

        @functools.lru_cache(None)
        def cached(x):
            Block(10)

        @contextlib.contextmanager
        def context():
            Block(11)
            yield

        def once():
            with context():
                pass

        def never():
            pass

        once()
        """,
    "package/__init__.py": "from .inner import inside\nfrom . import inner\n",
    "package/inner.py": "from program_support import Block\ndef inside():\n    Block(2048)\n",
    "package/late.py": "from .inner import inside\ndef never_called():\n    pass\n",
    "lazy/__init__.py": """
        def __getattr__(name):
            if name != "Thing":
                raise AttributeError(name)
            from .implementation import Thing
            return Thing
        """,
    "lazy/implementation.py": """
        class Thing:
            def run(self):
                return 1
        """,
}


def functions(folder: Path, *words: str) -> dict[str, int]:
    """Qualnames of the report, and how often each was called."""
    end = run(folder, "-o", "report.json", *words, "script.py")
    assert end.returncode == 0, end.stderr
    assert "error" not in end.stderr, end.stderr
    return calls(folder / "report.json")


def calls(path: Path) -> dict[str, int]:
    report: dict[str, Any] = json.loads(path.read_text())
    return {function["qualname"]: function["calls"] for function in report["functions"]}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, FILES)
    return tmp_path


def test_without_names_the_program_s_own_code(folder):
    """The script, and the modules beside it."""
    found = functions(folder)
    assert found == functions(folder, "-p", "__main__", "-p", "model", "-p", "package", "-p", "lazy")
    assert {"<module>", "main", "Net.forward", "inside", "Thing.run"} <= found.keys()


def test_own_code_has_what_is_imported_later_but_no_library(folder):
    write(
        folder,
        {
            "project/__init__.py": "",
            "project/tools/__init__.py": "",
            "project/tools/train.py": """
                import sys
                sys.path[:0] = [".", "libraries/site-packages", "project/lib/site-packages"]
                def main():
                    import project.model, library, model, bundled
                    project.model.own(), library.f(), model.helper(), bundled.f()
                main()
                """,
            "project/model.py": "def own():\n    pass\n",
            "libraries/site-packages/library.py": "def f():\n    pass\n",
            "project/lib/site-packages/bundled.py": "def f():\n    pass\n",
        },
    )
    for words in (["project/tools/train.py"], ["-m", "project.tools.train"]):
        assert run(folder, "-o", "report.json", *words).returncode == 0
        assert calls(folder / "report.json") == {"<module>": 1, "main": 1, "own": 1}, words


def test_a_module_that_is_a_library_s_is_all_of_the_program(folder):
    write(folder, {"libraries/site-packages/tool/__init__.py": "def f():\n    pass\n"})
    write(folder, {"libraries/site-packages/tool/__main__.py": "from . import f\ndef main():\n    f()\nmain()\n"})
    end = run(folder, "-o", "report.json", "-m", "tool", PYTHONPATH="libraries/site-packages")
    assert end.returncode == 0, end.stderr
    assert calls(folder / "report.json").keys() == {"<module>", "main"}


def test_the_script_alone_and_its_own_lines(folder):
    found = functions(folder, "-p", "__main__")
    assert found.keys() == {"<module>", "main", "task", "stream", "both", "<lambda>"}  # case 16: async def too
    assert [found[name] for name in ("main", "task", "stream", "both")] == [1, 1, 1, 1]


def test_all_functions_of_a_module_whatever_holds_them(folder):
    found = functions(folder, "-p", "model")
    assert found == {
        "Net.Inner.method": 1,
        "Net.forward": 2,
        "Net.size": 1,
        "Net.cached": 1,
        "Net.make": 1,
        "Net.make.<locals>.inside": 1,
        "Net.static": 1,
        "helper": 3,
        "bare_decorator": 1,
        "bare_decorator.<locals>.wrapper": 1,
        "bare": 1,
        "cached": 1,
        "context": 2,  # also what ran while the module was being imported
        "once": 2,
    }


def test_lambdas_wherever_they_are_written(folder):
    lambdas = """
        double = lambda x: x * 2
        table = {"add": lambda x: x + 1}
        def outer(x):
            inner = lambda y: y - 1
            return inner(double(x)) + table["add"](x)
    """
    write(folder, {"lambdas.py": lambdas, "script.py": "import lambdas\nlambdas.outer(1)\n"})
    end = run(folder, "-p", "lambdas", "-o", "report.json", "script.py")
    assert end.returncode == 0, end.stderr
    records = LineRecords.from_json(folder / "report.json").functions
    found = {(record.qualname, record.def_line): record.calls for record in records}
    assert found == {("<lambda>", 2): 1, ("<lambda>", 3): 1, ("outer", 4): 1, ("outer.<locals>.<lambda>", 5): 1}


def test_a_package_with_its_modules_and_the_script(folder):
    both = functions(folder, "-p", "package", "-p", "__main__")
    assert both.keys() == {"<module>", "main", "inside", "<lambda>", *ASYNC}
    assert functions(folder, "-p", "package.inner") == {"inside": 1}


ASYNC = {"task", "stream", "both"}


#: Runs command lines in forks of one process.
DRIVER = """
    import os, sys
    from pytorch_memlab_c.cli import main
    for line in sys.stdin.read().splitlines():
        pid = os.fork()
        if pid == 0:
            os.dup2(1, 2)
            sys.argv[0] = "pytorch-memlab"
            sys.exit(main(line.split()))
        print("exit code", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    """
NAMES = {
    "main": "main",
    "script.main": "main",
    "__main__.task": "task",
    "model.Net.forward": "Net.forward",
    "Net.forward": "Net.forward",
    "m.Net.size": "Net.size",
    "h": "helper",
    "Net.make.<locals>.inside": "Net.make.<locals>.inside",
    "package.inside": "inside",
    "package.late.inside": "inside",
    "lazy.Thing.run": "Thing.run",
    "Thing.run": "Thing.run",
    "model.never": "never",
}


def test_one_function_by_any_name_the_program_has_for_it(folder):
    write(folder, {"driver.py": DRIVER})
    runs = [f"run -f {name} -o {position}.json script.py" for position, name in enumerate(NAMES)]
    answers = python(folder, "driver.py", stdin="\n".join(runs)).stdout
    for position, (name, qualname) in enumerate(NAMES.items()):
        assert (folder / f"{position}.json").exists(), answers
        found = calls(folder / f"{position}.json")
        assert found.keys() == {qualname}
        assert bool(found[qualname]) == (name != "model.never")  # asked for by name, it is told that it never ran


def test_figures_of_a_function_that_no_edit_was_made_for(folder):
    end = run(folder, "-f", "Net.forward", "-f", "package.inside", "script.py")
    assert titles(end.stdout) == ["inside", "Net.forward"]  # the highest peak first
    assert cells(end.stdout, "block = Block(size)") == ["1.00K", "1.00B", "2"]
    assert cells(end.stdout, "Block(2048)") == ["2.00K", "0.00B", "1"]


def test_a_module_that_is_run_and_its_package(folder):
    write(folder, {"package/train.py": "from .inner import inside\ndef main():\n    inside()\nmain()\n"})
    for words, expected in (
        (["-p", "package"], {"main", "inside"}),
        (["-f", "package.train.main"], {"main"}),
        (["-f", "inside"], {"inside"}),
        ([], {"<module>", "main", "inside"}),
        (["-p", "__main__"], {"<module>", "main"}),
    ):
        end = run(folder, *words, "-o", "report.json", "-m", "package.train")
        assert end.returncode == 0, end.stderr
        assert calls(folder / "report.json").keys() == expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_functions_with_type_parameters():
    source = "def f[T](x: T):\n    def g(): pass\nclass A[T]:\n    def m[S](self): pass\n    def n(self): pass\n"
    found = [qualname for qualname, _ in functions_in(compile(source, "generic.py", "exec"))]
    assert found == ["f", "f.<locals>.g", "A.m", "A.n"]


def test_twins_of_the_same_text_are_told_apart_case_8(folder):
    twin = "from program_support import Block\ndef f(size):\n    block = Block(size)\n"
    write(
        folder, {"one.py": twin, "two.py": twin, "script.py": "import one, two\none.f(1024)\ntwo.f(4096)\ntwo.f(1)\n"}
    )
    end = run(folder, "-f", "one.f", "script.py")
    assert cells(end.stdout, "block = Block(size)") == ["1.00K", "1.00K", "1"]
    end = run(folder, "-p", "one", "-p", "two", "script.py")
    assert titles(end.stdout) == ["two.f", "one.f"]


def test_modules_that_were_there_before_and_those_without_code(folder):
    write(folder, {"script.py": "import textwrap, math, zlib\ntextwrap.dedent(' x')\nmath.sqrt(4)\n"})
    assert functions(folder, "-p", "textwrap").keys() == {"dedent"}
    end = run(folder, "-f", "math.sqrt", "-p", "zlib", "-p", "json.tool", "script.py")
    compiled = "compiled, it has no Python lines; profile its caller"
    assert f"error: -f math.sqrt: cannot profile 'sqrt': {compiled}\n" in end.stderr
    assert f"error: -p zlib: {compiled}\n" in end.stderr
    assert "error: -p json.tool: the program imported no such module\n" in end.stderr
    assert end.returncode == 0


def test_names_that_are_never_found_are_told_at_the_end(folder):
    words = ["-f", "model.Net.forwrd", "-f", "Sub.forward", "-f", "package.nope", "-f", "main", "-o", "report.txt"]
    end = run(folder, *words, "script.py")
    assert end.returncode == 0  # the program's own
    assert end.stderr.splitlines() == [
        "pytorch_memlab_c: wrote report.txt",
        "pytorch_memlab_c: error: -f model.Net.forwrd: the program has imported no such function; "
        "did you mean model.Net.forward?",
        "pytorch_memlab_c: error: -f Sub.forward: it came to be while the program ran; did you mean model.Net.forward?",
        "pytorch_memlab_c: error: -f package.nope: the program has imported no such function",
    ]
    assert "note: -f package.nope: " in (folder / "report.txt").read_text()


WRONG = {
    "": "nothing to do: give a command",
    "fly": "invalid choice: 'fly'",
    "run": "nothing to run: give a script, or -m and a module",
    "run -f main": "nothing to run",
    "run -m": "-m needs the name of a module",
    "run -m script.py": "a file goes without -m",
    "run -m nowhere": "there is no module named 'nowhere'",
    "run -m package.nowhere": "there is no module named 'package.nowhere'",
    "run -m package": "'package' is a package and has no module '__main__' to run",
    "run nowhere.py": "can't open file 'nowhere.py': there is no such file",
    "run package": "can't find '__main__' module in 'package'",
    "run --bogus script.py": "unrecognized arguments: --bogus",
    "run -f main() script.py": "-f main(): give the name alone, not a call: -f main",  # case 12
    "run -f Sub,Net script.py": "give a dotted name",
    "run -f mian plain.py": "the program has no such function; did you mean main?",
    "run -f Klass plain.py": "this is a class; name its methods: Klass.go, Klass.stop",
    "run -f nowhere.f plain.py": "the program has no such function",
    "run -p nowhere plain.py": "-p nowhere: there is no such module",
    "run -p plain.py plain.py": "give the name of a module, not its file",
    "run -c net.maxx plain.py": "unknown column 'net.maxx'. Did you mean 'net.max'",
    "run --device cudda plain.py": "'cudda' is not a device that can be profiled",
    "run -o report.pdf plain.py": "give one of .html, .json, .csv, .txt",
    "run -o report plain.py": "give one of .html, .json, .csv, .txt",
    "run -o nowhere/report.txt plain.py": "there is no folder",
    "simulate plain.py": "the following arguments are required: --gpu",
    "simulate --gpu h1000 plain.py": "--gpu h1000: ",
    "report": "the following arguments are required: file",
    "report nowhere.json": "nowhere.json: No such file or directory",
    "report package": "package: Is a directory",
    "report plain.py": "plain.py: not a report of pytorch_memlab_c: no JSON",
    "report empty.json": "empty.json: not a report of pytorch_memlab_c",
    "report list.json": "list.json: not a report of pytorch_memlab_c",
    "report binary.json": "binary.json: not a report of pytorch_memlab_c",
    "report newer.json": "the report has version 99",
    "report damaged.json": "damaged.json: a damaged report",
    "report deep.json": "deep.json: ",
    "report good.json -f mian": "no function 'mian' was profiled. Did you mean 'main'",
    "report good.json -c net.maxx": "unknown column 'net.maxx'",
    "report good.json -c segment.all.peak -o nowhere/x.csv": "there is no folder",
    "report good.json --device mars": "unknown device 'mars'",
    "diff good.json": "the following arguments are required: after",
    "diff good.json newer.json": "the report has version 99",
    "diff good.json good.json -f mian": "no function 'mian' was profiled. Did you mean 'main'",
    "diff good.json good.json -c net.maxx": "unknown column 'net.maxx'",
    "merge": "the following arguments are required: file",
    "merge good.json good.json -f mian": "no function 'mian' was profiled",
    "merge good.json -o x.html": "give one of .csv, .txt",
    "rss": "nothing to run: give a command, after --",
    "rss -- nowhere-at-all": "nowhere-at-all: No such file or directory",
    "rss -o x.txt -- true": "give one of .json",
}


def test_every_mistake_is_one_line_and_exit_code_2(folder):
    plain = "class Klass:\n    def go(self): pass\n    def stop(self): pass\ndef main():\n    pass\nmain()\n"
    write(folder, {"plain.py": plain, "driver.py": DRIVER, "empty.json": "", "list.json": "[1]"})
    write(folder, {"newer.json": '{"version": 99}'})
    (folder / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert run(folder, "-o", "good.json", "plain.py").returncode == 0
    damaged = (folder / "good.json").read_text().replace('"calls":1', '"calls":"x"').replace('"hits":1', '"hits":[]')
    write(folder, {"damaged.json": damaged, "deep.json": '{"a":' + "[" * 100_000})
    answers = python(folder, "driver.py", stdin="\n".join(WRONG) + "\n").stdout.splitlines()
    for words, expected in WRONG.items():
        told = answers.pop(0)
        assert told.startswith("pytorch-memlab") and expected in told, (words, told)
        assert len(told) < 400, words
        assert answers.pop(0) == "exit code 2", words
    assert answers == []
    assert sorted(path.name for path in folder.glob("*.*")) == sorted(
        ["script.py", "model.py", "plain.py", "driver.py"]
        + [f"{name}.json" for name in ("empty", "list", "newer", "binary", "good", "damaged", "deep")]
    )
