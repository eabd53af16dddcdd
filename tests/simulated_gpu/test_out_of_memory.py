"""Out of memory where no profiled function runs, and requests that cannot fit."""

from __future__ import annotations

from textwrap import dedent

import pytest
from gpu_device import simulated
from run_program import run_program

pytestmark = simulated()
EIGHT = {"PYTORCH_MEMLAB_SIMULATE": "8GB@9.0"}
HEAD = """\
import torch
from pytorch_memlab_c import LineProfiler, profile
G = 1 << 30
def take(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")
"""


def report_of(tmp_path, program, command=None):
    run = run_program(HEAD + dedent(program), tmp_path, env=EIGHT, command=command, check=False)
    assert "Out of memory on cuda:0" in run.stdout, run.stdout + run.stderr
    return run


def test_a_line_that_nobody_profiles_is_named_with_who_held_the_rest(tmp_path):
    run = report_of(
        tmp_path,
        """
        @profile
        def make():
            return [take(G) for _ in range(3)]
        def main():
            kept = make()
            other = take(2 * G)
            last = take(4 * G)  # fails
        main()
        """,
    )
    assert run.returncode == 1 and "OutOfMemoryError" in run.stderr
    text = run.stdout.partition("Out of memory")[2]
    assert text.startswith(" on cuda:0 at program.py:5 in take, which is not profiled\n")
    assert "asked for 4.00G, 5.00G allocated" in text and "it would fit with 1.00G less held" in text
    rows = text.partition("Held then by:\n")[2].splitlines()
    assert rows[0].split() == [
        "3.00G",
        "60.0%",
        "program.py:9",
        "in",
        "make",
        "return",
        "[take(G)",
        "for",
        "_",
        "in",
        "range(3)]",
    ]
    assert rows[1].split()[:3] == ["2.00G", "40.0%", "elsewhere:"]


def test_the_profiled_line_around_is_named_too(tmp_path):
    run = report_of(
        tmp_path,
        """
        class Optimizer:
            def step(self):
                self.state = take(9 * G)
        def train():
            kept = take(G)
            Optimizer().step()
        with LineProfiler(train) as profiler:
            try:
                train()
            except torch.OutOfMemoryError:
                profiler.print_stats()
        """,
    )
    text = run.stdout.partition("Out of memory")[2]
    assert text.startswith(" on cuda:0 at program.py:5 in take, which is not profiled\n  > return torch.empty(")
    assert "  called by program.py:12 in train\n  > Optimizer().step()\n" in text


@pytest.mark.parametrize("command", [["-m", "pytorch_memlab_c", "run", "-f", "make", "program.py"]])
def test_by_the_command_line(tmp_path, command):
    run = report_of(
        tmp_path,
        """
        def make():
            return take(G)
        kept = make()
        x = torch.empty(9 * G, dtype=torch.uint8, device="cuda")
        """,
        command,
    )
    text = run.stdout.partition("Out of memory")[2]
    assert text.startswith(" on cuda:0 at program.py:10 in <module>, which is not profiled\n  > x = torch.empty(9 * G")
    assert "it cannot fit: the device has 8.00G in all" in text and "less held" not in text


def test_an_error_that_was_handled_long_ago_is_named_too(tmp_path):
    run = report_of(
        tmp_path,
        """
        @profile
        def make():
            return take(G)
        kept = make()
        try:
            take(9 * G)
        except torch.OutOfMemoryError:
            pass
        """,
    )
    assert "Out of memory on cuda:0 at program.py:5 in take, which is not profiled\n" in run.stdout


def test_each_error_of_a_search_has_its_line(tmp_path):
    """Caught in a function that calls another, in a method, in another thread; and one on autograd's thread."""
    run = report_of(
        tmp_path,
        """
        import threading
        @profile
        def make():
            return take(G)
        def attempt(function, *args):
            try:
                function(*args)
            except torch.OutOfMemoryError:
                pass
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return take(10 * G)
        kept = make()
        attempt(take, 9 * G)
        attempt(lambda: torch.zeros(9 * G, device="cuda"))
        thread = threading.Thread(target=attempt, args=(take, 11 * G))
        thread.start()
        thread.join()
        attempt(lambda: Double.apply(torch.ones(1, device="cuda", requires_grad=True)).backward())
        """,
    )
    rows = run.stdout.partition("Out of memory 4 times")[2].splitlines()[2:6]
    places = [row.split("cuda:0, at ")[1] for row in rows]
    named = [place.split()[0] for place in places]
    assert named == ["program.py:5", "program.py:25", "program.py:5", "program.py:5"], run.stdout


@pytest.mark.parametrize(
    "held, request_, expected",
    [
        ("take(G // 100)", "7 * G + G // 2", None),
        ("take(G // 100)", "8 * G", "it would fit with 10.24M less held"),
        ("take(G // 100)", "8 * G + 1", "it cannot fit: the device has 8.00G in all"),
        ("take(G)", "6 * G + G // 2", None),
        ("take(2 * G)", "7 * G", "it would fit with 1.00G less held"),
        ("take(7 * G)", "8 * G - 1", "it would fit with 7.00G less held"),
        ("take(G // 100)", "12 * G", "it cannot fit: the device has 8.00G in all"),
    ],
)
def test_less_held_is_never_more_than_is_held(tmp_path, held, request_, expected):
    program = f"""
        @profile
        def step():
            kept = {held}
            return take({request_})
        step()
        """
    if expected is None:
        run = run_program(HEAD + dedent(program), tmp_path, env=EIGHT)
        assert "Out of memory" not in run.stdout
    else:
        assert expected in report_of(tmp_path, program).stdout
