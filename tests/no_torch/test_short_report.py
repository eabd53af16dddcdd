"""The printed report of the command line: what comes first, what is folded, and what a terminal makes of it."""

from __future__ import annotations

import dataclasses
import io
import os
import re

import pytest
from made_up_snapshots import K, code_named, line, made_up_records, stats
from run_program import titles

from pytorch_memlab_c.data.holder_types import BACKWARD, ELSEWHERE, LINE, Holder, HolderRecords, PeakHolders
from pytorch_memlab_c.data.run_info import RunInfo
from pytorch_memlab_c.line_profiler.records import LineRecords
from pytorch_memlab_c.render.lines import Line, plain
from pytorch_memlab_c.render.report import MOST_TABLES, full_report, short_report
from pytorch_memlab_c.render.terminal import write_report

CUDA0 = 1
SOURCE = """\
def outer():
    if False:
        a = 1
        b = 2
        c = 3
    def inner():
        x = 1

        return x
    return inner()"""
AT = Holder(LINE, 0, "outer", "<made-up>", 10, "    return inner()")
RUN = RunInfo("pytorch-memlab run train.py", "2026-01-31 12:00:00", 2.04, "3.11.7", "2.14.1", ("Tesla T4",) * 2)


def function(name, first, lines, text=""):
    code = code_named(name).replace(co_firstlineno=first)
    return code, (code, 1, lines), (first, text.split("\n"))


def records(*functions, **kwargs):
    return made_up_records(
        [entry for _, entry, _ in functions],
        sources={id(code): source for code, _, source in functions},
        **kwargs,
    )


def nested(**kwargs):
    inner = SOURCE.split("\n")[5:9]
    ran = stats(2 * K, K)
    return records(
        function("inner", 6, [line(7, 1, CUDA0, stats(K, K)), line(9, 1, CUDA0, stats(K, 0))], "\n".join(inner)),
        function(
            "outer", 1, [line(2, 1, CUDA0, stats(0)), line(6, 1, CUDA0, stats(0)), line(10, 1, CUDA0, ran)], SOURCE
        ),
        **kwargs,
    )


def peak(at=AT, **kwargs):
    return PeakHolders(
        "cuda:0", 2 * K, at, (Holder(LINE, 2 * K, "outer", "<made-up>", 10, "return inner()"),), **kwargs
    )


def test_highest_first_unrun_lines_folded_and_a_body_shown_once():
    text = plain(short_report(nested(holders=HolderRecords((peak(),)))))
    assert text.startswith("Peak of cuda:0: 2.00K, at <made-up>:10 in outer. Held by:\n")
    assert titles(text) == ["outer", "inner"]
    outer = text.split("## ")[1].splitlines()[4:]
    assert [re.sub(r"^[ \d.KMB]* \d+(?=>|  )| +(?=\.)", "", row) for row in outer if row] == [
        "  def outer():",
        "      if False:",
        "... 3 lines not run",
        "      def inner():",
        "... 3 lines of inner",
        ">     return inner()",
    ]
    everything = plain(full_report(nested(holders=HolderRecords((peak(),)))))
    assert titles(everything) == ["inner", "outer"] and "..." not in everything
    assert everything == nested(holders=HolderRecords((peak(),))).to_text()


def test_few_lines_that_did_not_run_are_shown():
    text = plain(
        short_report(records(function("f", 1, [line(2, 1, CUDA0, stats(K, K))], "def f():\n    a\n    b\n    c")))
    )
    assert "    c" in text and "not run" not in text


def test_functions_without_allocations_are_left_out_unless_all_are_or_they_were_named():
    idle = function("idle", 20, [line(21, 1, CUDA0, stats(0))])
    busy = function("busy", 1, [line(2, 1, CUDA0, stats(K, K))])
    text = plain(short_report(records(idle, busy)))
    assert titles(text) == ["busy"] and "1 function not shown, -v shows all: idle\n" in text
    assert titles(plain(short_report(records(idle)))) == ["idle"]
    assert titles(plain(short_report(records(idle, busy), named=True))) == ["busy", "idle"]


def test_the_highest_functions_are_shown_and_the_others_are_named():
    functions = [function(f"f{i}", 10 * i + 1, [line(10 * i + 2, 1, CUDA0, stats(i * K, K))]) for i in range(1, 15)]
    text = plain(short_report(records(*functions)))
    assert titles(text) == [f"f{i}" for i in range(14, 14 - MOST_TABLES, -1)]
    assert "4 functions not shown, -v shows all: f4, f3, f2, f1\n" in text


def test_it_begins_with_what_was_run():
    backward = Holder(BACKWARD, K, "outer", "<made-up>", 10, "return inner()")
    shown = dataclasses.replace(nested(holders=HolderRecords((peak(backward),))), run=RUN)
    assert plain(short_report(shown)).splitlines()[:4] == [
        "pytorch-memlab run train.py",
        "2026-01-31 12:00:00, 2.0 s, 1 backward pass at <made-up>:10 in outer",
        "PyTorch 2.14.1, Python 3.11.7, 2 x Tesla T4",
        "",
    ]
    again = LineRecords.from_json(shown.to_json())
    assert again == shown and again.run == RUN
    assert nested().run is None and LineRecords.from_json(nested().to_json()).run is None


def test_a_peak_elsewhere_marks_no_line():
    text = plain(full_report(nested(holders=HolderRecords((peak(Holder(ELSEWHERE, 0)),)))))
    assert not re.search(r"^.* \d+> ", text, re.MULTILINE)


LINES = [
    Line("a title that is longer than twenty", "bold"),
    Line("  12.00K  a row of a table that is long", "", True),
    Line("mark", "bold red"),
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    return Terminal()


def test_a_terminal_crops_rows_wraps_text_and_has_colours(terminal):
    write_report(terminal, LINES)
    text = terminal.getvalue()
    assert "\x1b[1;31mmark\x1b[0m" in text
    assert re.sub(r"\x1b\[[\d;]*m", "", text).splitlines() == [
        "a title that is",
        "  longer than twenty",
        "  12.00K  a row of a",
        "mark",
    ]


@pytest.mark.parametrize("variable, value, codes", [("NO_COLOR", "1", ["1"]), ("TERM", "dumb", [])])
def test_variables_that_turn_colours_off(terminal, monkeypatch, variable, value, codes):
    monkeypatch.setenv(variable, value)
    write_report(terminal, LINES[2:])
    assert re.findall(r"\x1b\[([\d;]+)m", terminal.getvalue()) == [*codes, *(["0"] * bool(codes))]


def test_colours_in_any_case_or_never(terminal):
    write_report(terminal, LINES, "never")
    assert "\x1b" not in terminal.getvalue() and "row of a\n" in terminal.getvalue()
    pipe = io.StringIO()
    write_report(pipe, LINES, "always")
    assert "\x1b[1;31mmark" in pipe.getvalue() and "a row of a table that is long\n" in pipe.getvalue()


def test_a_pipe_gets_plain_text_as_long_as_its_lines():
    pipe = io.StringIO()
    write_report(pipe, LINES)
    assert pipe.getvalue() == "".join(f"{one.text}\n" for one in LINES)


def test_no_terminal_obeys_what_a_report_took_over(terminal):
    write_report(terminal, [Line("x\x1b]0;title\x07")])
    assert "\x1b]" not in terminal.getvalue() and r"\x1b]0;title\x07" in re.sub(os.linesep, "", terminal.getvalue())
