"""Decorated functions that cloudpickle and dill copy by value: they load anywhere, and are counted where they run."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
import textwrap

import pytest
from cli_support import environment
from run_program import run_program, titles

MAIN = """
    import sys
    import {library} as library
    from program_support import Block, allocate, free
    from pytorch_memlab_c import print_stats, profile, profile_every

    def helper(size):
        return Block(size)

    @{decorator}
    def work(size):
        block = helper(size)
        return block.size if hasattr(block, "size") else size

    class Net:
        @{decorator}
        def forward(self, size):
            block = helper(2 * size)
            return size

    @{decorator}
    def fact(n):
        block = helper(n)
        return 1 if n < 2 else n * fact(n - 1)
    """
LIBRARIES = ["cloudpickle", "dill"]
LOADS = {"cloudpickle": "pickle", "dill": "dill"}
#: Without `recurse`, dill expects the names that a function of `__main__` uses in the `__main__` that loads it.
#: With it, it follows a decorated function that calls itself for ever, whatever the decorator.
OPTIONS = {"cloudpickle": "", "dill": ", recurse=True"}
RECURSIVE = {"cloudpickle": ", fact", "dill": ""}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("decorator", ["profile", "profile_every(2)"])
def test_a_copy_counts_with_the_function_it_is_made_from(library, decorator, tmp_path):
    pytest.importorskip(library)
    run = """
        copies = [library.loads(library.dumps(work)) for _ in range(3)]
        work(1024)
        for one in copies:
            one(4096)
        """
    text = run_program(program(library, decorator) + textwrap.dedent(run), tmp_path).stdout
    rows = [line.split()[:3] for line in text.splitlines() if "block = helper(size)" in line]
    if decorator == "profile":
        assert [row[2] for row in rows] == ["4"]
        assert rows[0][0] == "4.00K"
    else:
        assert [row[2] for row in rows] == ["2", "2"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("decorator", ["profile", "profile_every(1)"])
def test_a_copy_in_another_process_is_counted_there(library, decorator, tmp_path):
    pytest.importorskip(library)
    dump = f"""
        with open("copy.pickle", "wb") as file:
            library.dump((work, Net(){RECURSIVE[library]}), file{OPTIONS[library]})
        """
    run_program(program(library, decorator) + textwrap.dedent(dump), tmp_path)
    load = f"""
        import {LOADS[library]} as library
        work, net, *fact = library.load(open("copy.pickle", "rb"))
        work(1024)
        assert net.forward(1024) == 1024
        assert all(f(3) == 6 for f in fact)
        """
    end = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(load)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert end.returncode == 0, end.stderr
    recursive = {"fact"} if RECURSIVE[library] else set()
    assert {"work", "Net.forward"} | recursive <= set(titles(end.stdout))
    assert "never called" not in end.stdout
    # cloudpickle drops the name of the file, and so the text: lines are known by their numbers
    numbered = [line.split() for line in end.stdout.splitlines() if re.match(r"\s*[\d.]+[BK] +[\d.]+[BK] ", line)]
    assert ["1.00K", "1.00K", "1"] in [row[:3] for row in numbered]
    assert ["2.00K", "2.00K", "1"] in [row[:3] for row in numbered] or decorator == "profile"


def program(library: str, decorator: str) -> str:
    return textwrap.dedent(MAIN.format(library=library, decorator=decorator))


def test_copies_within_the_process_stay_the_same_functions(only_made_up_bytes):
    from pytorch_memlab_c import profile

    @profile(device="cpu")
    def work():
        return 1

    assert copy.copy(work) is work
    assert copy.deepcopy(work) is work
