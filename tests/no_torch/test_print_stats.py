"""`print_stats()`: what `@profile` has gathered so far."""

from __future__ import annotations

import io

import pytest
from run_program import run_program, titles

PROGRAM = """
import io
from pytorch_memlab_c import clear_global_line_profiler, print_stats, profile
from program_support import Block

@profile
def first(size):
    block = Block(size)
    return block

@profile(columns="hits")
def second():
    return None

print_stats()
print("----")
first(1024)
print_stats()
print("----")
first(4096)
stream = io.StringIO()
profile.print_stats(stream)
print(stream.getvalue(), end="")
print("----")
clear_global_line_profiler()
print_stats()
print("----")
"""


def test_what_was_gathered_so_far_and_all_of_it_at_the_end(tmp_path):
    never, once, twice, cleared, end = run_program(PROGRAM, tmp_path).stdout.split("----\n")
    for text in (never, once, twice, cleared, end):
        assert titles(text) == ["first", "second"]
    assert "never called" in never and "never called" in cleared
    assert [line.split()[:3] for line in once.splitlines() if "block = Block" in line][0] == ["1.00K", "1.00K", "1"]
    row = next(line for line in twice.splitlines() if "block = Block" in line)
    assert row.split()[2] == "2"
    assert "first: never called" not in twice and "second: never called" in twice


def test_nothing_is_decorated(tmp_path):
    out = run_program("import pytorch_memlab_c\npytorch_memlab_c.print_stats()\n", tmp_path).stdout
    assert out == "nothing was gathered: decorate functions with @profile, and call them\n"


def test_a_notebook_shows_it_as_html(tmp_path):
    pytest.importorskip("IPython")
    out = run_program(
        """
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.utils.capture import capture_output
        shell = InteractiveShell.instance()
        shell.run_cell("from pytorch_memlab_c import print_stats, profile")
        shell.run_cell("from program_support import Block")
        shell.run_cell("@profile\\ndef work(size):\\n    return Block(size)\\n\\n@profile\\ndef other(): pass")
        shell.run_cell("kept = work(2048);")
        with capture_output() as captured:
            shell.run_cell("print_stats()")
        (output,) = captured.outputs
        html, text = output.data["text/html"], output.data["text/plain"]
        assert "return Block(size)" in html and "2.00K" in html and "other" in html, html
        assert html.count("Peak of cpu") == 1, html
        assert "return Block(size)" in text, text
        print("done")
        """,
        tmp_path,
    ).stdout
    assert out.startswith("done\n"), out


def test_a_stream_is_written_to_and_nothing_else(capsys):
    from pytorch_memlab_c import print_stats

    stream = io.StringIO()
    print_stats(stream)
    assert stream.getvalue().endswith("\n")
    assert capsys.readouterr().out == ""
