"""Text and HTML reports: exact layout, reasons for empty tables, streams, escaping."""

from __future__ import annotations

import io
import re
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_snapshots import K, LineCounts, M, code_named, line, made_up_records, stats

from pytorch_memlab_c.line_profiler.display import RecordsDisplay
from pytorch_memlab_c.render.text import readable_size, write_text

CPU, CUDA0, CUDA1 = 0, 1, 2


def records_from(text, lines, calls=1, name="work", **kwargs):
    """Records of one function whose source, from line 7 on, is ``text``."""
    code = code_named(name).replace(co_firstlineno=7)
    return made_up_records([(code, calls, lines)], sources={id(code): (7, text.split("\n"))}, **kwargs)


TEXT = """def work():
    # comment
    linear = torch.nn.Linear(100, 100).cuda()
    del linear"""


def linear(slot=CUDA0):
    lines = [
        line(7, 0, slot, stats(0, reserved=0)),
        line(9, 1, slot, stats(40 * K, 40 * K)),
        line(10, 1, slot, stats(40 * K, -40 * K)),
    ]
    return records_from(TEXT, lines)


def test_text_layout():
    assert linear().to_text() == (
        "## work\n"
        "\n"
        "  peak reserved net/run runs line  code\n"
        "           peak\n"
        " 0.00B    0.00B   0.00B    0    7  def work():\n"
        "                           0    8      # comment\n"
        "40.00K    2.00M  40.00K    1    9      linear = torch.nn.Linear(100, 100).cuda()\n"
        "40.00K    2.00M -40.00K    1   10      del linear\n"
    )


def test_text_layout_on_the_cpu():
    assert linear(CPU).to_text() == (
        "## work\n"
        "device: cpu (tensor bytes)\n"
        "\n"
        "  peak net/run runs line  code\n"
        " 0.00B   0.00B    0    7  def work():\n"
        "                  0    8      # comment\n"
        "40.00K  40.00K    1    9      linear = torch.nn.Linear(100, 100).cuda()\n"
        "40.00K -40.00K    1   10      del linear\n"
    )


def test_columns_of_one_two_and_three_parts():
    text = linear().to_text(columns=["hits", "net.first", "reserved_bytes.all.peak"])
    assert text.splitlines()[2:7] == [
        "hits     net reserved_bytes line  code",
        "       first            all",
        "                       peak",
        "   0   0.00B          0.00B    7  def work():",
        "   0                           8      # comment",
    ]
    assert linear().to_text(columns="hits").splitlines()[2:4] == [
        "hits line  code",
        "   0    7  def work():",
    ]


def test_the_gpu_is_named_where_it_is_not_the_first():
    assert linear(CUDA1).to_text().startswith("## work\ndevice: cuda:1\n\n  peak reserved")
    assert linear(CUDA0).to_text(device="cuda:0") == linear(CUDA0).to_text()


def test_lines_charged_to_several_gpus_each_name_theirs():
    lines = [
        line(7, 0, CUDA0, stats(0, reserved=0)),
        line(9, 1, CUDA1, stats(40 * K, 40 * K)),
        LineCounts(10, 2, (CUDA0, CUDA1), {-1: stats(K)}),
    ]
    shown = records_from(TEXT, lines).to_text(columns="hits").splitlines()
    assert shown[0] == "## work" and shown[2:] == [
        "hits        device line  code",
        "   0        cuda:0    7  def work():",
        "   0                  8      # comment",
        "   1        cuda:1    9      linear = torch.nn.Linear(100, 100).cuda()",
        "   2 cuda:0,cuda:1   10      del linear",
    ]


def test_all_devices_have_a_table_each():
    lines = [line(9, 1, CUDA0, stats(K, K), slot_2=stats(3 * K, 3 * K), slot_0=stats(5, 5))]
    text = records_from(TEXT, lines).to_text(device="all")
    assert re.findall("^## .*$", text, re.M) == [
        "## work  [cuda:0]",
        "## work  [cuda:1]",
        "## work  [cpu]",
    ]
    cuda0, cuda1, cpu = text.split("\n\n\n")
    assert "1.00K    2.00M   1.00K    1    9" in cuda0
    assert "3.00K    2.00M   3.00K    1    9" in cuda1
    assert cpu.splitlines()[2].split() == ["peak", "net/run", "runs", "line", "code"]
    assert "5.00B   5.00B    1    9" in cpu


# --- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "num_bytes, text",
    [
        (None, ""),
        (0, "0.00B"),
        (512, "512.00B"),
        (1023, "1023.00B"),
        (1024, "1.00K"),
        (40 * K, "40.00K"),
        (-40 * K, "-40.00K"),
        (2 * M, "2.00M"),
        (1536 * M, "1.50G"),
        (1024 * K - 1, "1.00M"),
        (2**40, "1.00T"),
        (2**63 - 1, "8.00E"),
        (2**80, "1048576.00E"),
    ],
)
def test_readable_size(num_bytes, text):
    assert readable_size(num_bytes) == text


@given(st.integers(-(2**69), 2**69))
def test_readable_size_is_right_to_its_last_digit(num_bytes):
    number, unit = re.fullmatch(r"(-?\d+\.\d\d)([BKMGTPE])", readable_size(num_bytes)).groups()
    power = 1024 ** "BKMGTPE".index(unit)
    assert abs(float(number) * power - num_bytes) <= 0.00501 * power
    assert abs(float(number)) < 1024


# --- why a table is empty ------------------------------------------------------------------------


def test_never_called():
    f, g = code_named("f"), code_named("g", body="    return\n")
    records = made_up_records([(f, 0, []), (g, 1, [line(2, 1, CUDA0, stats(K, K))])])
    text = records.to_text("f")
    assert text.startswith("## f\n\nf: never called while it was profiled")
    assert text.count("\n") == 3
    assert "never called" not in records.to_text("g")
    both = records.to_text()
    assert "f: never called" in both and "## g" in both


def test_a_function_entered_before_is_not_said_to_be_never_called():
    text = records_from(TEXT, [line(9, 1, CUDA0, stats(K, K))], calls=0).to_text()
    assert "never called" not in text and "1.00K" in text


def test_called_but_without_a_line():
    text = records_from(TEXT, []).to_text()
    assert "work: called, but none of its lines came to an end" in text
    assert "def work():" in text


def test_another_device_allocated():
    lines = [line(9, 3, CUDA0, stats(0), slot_2=stats(K, K), slot_0=stats(9, 9))]
    records = records_from(TEXT, lines)
    expected = (
        "work: no allocation was counted on cuda:0 while it ran; cuda:1 and cpu had some: "
        "pass device='cuda:1' or call set_target_gpu(1)\n"
    )
    text = records.to_text()
    assert text.endswith("\n\n" + expected)
    assert "    3    9      linear" in text
    assert records.to_text(device="cuda:0").endswith(expected)
    for device in ("cuda:1", "cpu", "all"):
        assert "nothing was allocated" not in records.to_text(device=device)


def test_only_the_cpu_allocated():
    lines = [line(9, 3, CUDA0, stats(0), slot_0=stats(9, 9))]
    text = records_from(TEXT, lines).to_text()
    assert "no allocation was counted on cuda:0 while it ran; cpu had some: pass device='cpu'\n" in text


@pytest.mark.parametrize("device", [None, "cuda:0", "cpu", "cuda:7", "all"])
def test_nothing_allocated_at_all_still_shows_the_hits(device):
    records = records_from(TEXT, [line(9, 3, CUDA0, stats(5 * M), slot_0=stats(5))])
    text = records.to_text(device=device)
    assert text.endswith("\n\nwork: no allocation was counted on any device while it ran\n")
    assert "    3    9      linear" in text


@pytest.mark.parametrize(
    "values",
    [stats(K, -K), stats(K, 0, gross=K), stats(K, 0, allocations=1), stats(K, net_sum=1)],
)
def test_freeing_or_passing_allocations_are_something(values):
    assert "nothing" not in records_from(TEXT, [line(9, 1, CUDA0, values)]).to_text()


def test_notes_passed_in_stand_at_the_end_once():
    note = "CUDA is not available"
    records = records_from(TEXT, [line(9, 1, CPU, stats(K, K))], notes=[note, note, "second"])
    assert records.to_text().endswith("del linear\n\n\nnote: CUDA is not available\nnote: second\n")
    assert records.to_dataframe().attrs["notes"] == [note, "second"]


def test_no_function_was_added():
    assert made_up_records([]).to_text().startswith("no function was added")
    assert "no function was added" in RecordsDisplay(made_up_records([]))._repr_html_()


# --- code text -----------------------------------------------------------------------------------


def test_no_source_shows_line_numbers():
    code = code_named("f")
    text = made_up_records([(code, 1, [line(2, 1, CUDA0, stats(K, K))])]).to_text()
    assert text.splitlines()[-1] == "1.00K    2.00M   1.00K    1    2"


def test_wide_characters_tabs_and_control_characters_stay_in_their_row():
    source = 'def work():\n\tx = "中文"\n\t \ty = "\x1b[31m\u2028\x85\u202e"\n\x0c'
    text = records_from(source, [line(8, 1, CUDA0, stats(K, K))]).to_text(columns="hits")
    assert text.splitlines()[2:] == [
        "hits line  code",
        "   0    7  def work():",
        '   1    8          x = "中文"',
        '   0    9                  y = "\\x1b[31m\\u2028\\x85\\u202e"',
        "   0   10",
    ]


@given(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=20), max_size=5))
def test_any_source_gives_one_text_row_a_line(source):
    records = records_from("\n".join(["def work():", *source]), [line(7, 1, CUDA0, stats(K, K))])
    rows = records.to_text(columns="hits").splitlines()[3:]
    assert [int(row.split()[1]) for row in rows] == list(range(7, 8 + len(source)))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_a_stream_that_cannot_encode_gets_escapes(encoding):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    write_text(stream, "x = 'é中'\n")
    stream.flush()
    shown = {"ascii": "x = '\\xe9\\u4e2d'\n", "utf-8": "x = 'é中'\n"}.get(encoding, "x = 'é\\u4e2d'\n")
    assert raw.getvalue().decode(encoding) == shown


def test_a_stream_without_an_encoding():
    stream = io.StringIO()
    write_text(stream, "é\udc80")
    assert stream.getvalue() == r"é\udc80"


# --- HTML ----------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects tags, cells by row, and attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.attributes, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append(["", dict(attrs).get("style") or ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1][0] += data

    def texts(self):
        return [[text for text, _ in row] for row in self.rows]

    def bars(self, row):
        percents = (re.search(r"(\d+\.\d)%, transparent", style) for _, style in self.rows[row])
        return [match and float(match[1]) for match in percents]


def test_html_has_the_values_of_the_text():
    page = Page(RecordsDisplay(linear())._repr_html_())
    assert page.texts() == [
        ["peak", "reservedpeak", "net/run", "runs", "line", "code"],
        ["0.00B", "0.00B", "0.00B", "0", "7", "def work():"],
        ["", "", "", "0", "8", "    # comment"],
        ["40.00K", "2.00M", "40.00K", "1", "9", TEXT.split("\n")[2]],
        ["40.00K", "2.00M", "-40.00K", "1", "10", "    del linear"],
    ]
    assert ("td", "title", "40,960 bytes") in page.attributes
    assert page.open == []


def test_bars_are_relative_to_the_column_s_largest_value_over_all_functions():
    f, g = code_named("f"), code_named("g", body="    return\n")
    records = made_up_records(
        [
            (f, 1, [line(2, 9, CUDA0, stats(K, K, reserved=2 * M))]),
            (g, 1, [line(2, 1, CUDA0, stats(4 * K, -2 * K, reserved=2 * M))]),
        ]
    )
    page = Page(RecordsDisplay(records)._repr_html_())
    assert page.bars(2) == [25.0, 100.0, 50.0, None, None, None]
    assert page.bars(5) == [100.0, 100.0, 100.0, None, None, None]
    colors = [re.search(r"rgba\((.*?), (0.\d+)\)", style) for _, style in page.rows[5][:3]]
    assert len({color[1] for color in colors}) == 3
    used, _, freed = (float(color[2]) for color in colors)
    assert freed < used


def test_all_zero_columns_have_no_bars():
    page = Page(RecordsDisplay(records_from(TEXT, [line(9, 1, CUDA0, stats(reserved=0))]))._repr_html_())
    assert {bar for row in range(len(page.rows)) for bar in page.bars(row)} == {None}


HOSTILE = """def work():
    x = "<script>alert('1')</script>" '</td></table>' & "{{ 7 * 7 }}" "{% raw %}"
    return "&amp;" """


def test_hostile_source_shows_as_text():
    records = records_from(HOSTILE, [line(8, 1, CUDA0, stats(K, K))], name="work", notes=["<b>note</b>"])
    html = RecordsDisplay(records)._repr_html_()
    page = Page(html)
    shown = [row[-1] for row in page.texts()]
    assert shown == ["code", *(text.rstrip() for text in HOSTILE.split("\n"))]
    assert "script" not in page.tags and "b" not in page.tags
    assert "49" not in html and "&lt;b&gt;note&lt;/b&gt;" in html


def test_hostile_names_show_as_text():
    code = code_named("f")
    records = made_up_records([(code, 0, [])], names={id(code): "<img src=x>.f"})
    html = RecordsDisplay(records)._repr_html_()
    assert "img" not in Page(html).tags
    assert "&lt;img src=x&gt;.f: never called" in html


def test_code_keeps_its_white_space_without_a_style_sheet():
    page = Page(RecordsDisplay(linear())._repr_html_())
    assert all("white-space: pre" in row[-1][1] for row in page.rows[1:])


def test_html_says_why_a_table_is_empty_and_which_device_it_shows():
    never = made_up_records([(code_named("f"), 0, [])])
    page = Page(RecordsDisplay(never)._repr_html_())
    assert page.rows == []
    assert "f: never called" in RecordsDisplay(never)._repr_html_()
    assert "<p>device: cpu (tensor bytes)</p>" in RecordsDisplay(linear(CPU))._repr_html_()
    both = records_from(TEXT, [line(9, 1, CUDA0, stats(K, K)), line(10, 1, CUDA1, stats(K, K))])
    page = Page(RecordsDisplay(both)._repr_html_())
    assert page.texts()[0][4:] == ["device", "line", "code"]
    assert [row[4] for row in page.texts()[1:]] == ["", "", "cuda:0", "cuda:1"]


# --- the display object --------------------------------------------------------------------------


def test_display_is_text_and_html_of_the_same_tables():
    display = RecordsDisplay(linear(), columns=["hits", "net"])
    assert str(display) == repr(display) == linear().to_text(columns=["hits", "net"])
    assert Page(display._repr_html_()).texts()[0] == ["hits", "net", "line", "code"]


def test_display_refuses_at_once_what_it_cannot_show():
    for wrong in ({"func": "nobody"}, {"columns": "nothing"}, {"device": "tpu"}):
        with pytest.raises(ValueError):
            RecordsDisplay(linear(), **wrong)


def test_text_report_to_an_ascii_terminal(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    records = records_from("def work():\n    größe = '中'", [line(8, 1, CUDA0, stats(K, K))])
    write_text(sys.stdout, str(RecordsDisplay(records)))
    sys.stdout.flush()
    assert b"gr\\xf6\\xdfe = '\\u4e2d'\n" in raw.getvalue()


def test_a_peak_that_others_raised_is_not_called_nothing():
    rising = [line(9, 1, CPU, stats(1)), line(10, 1, CPU, stats(5 * K))]
    text = records_from(TEXT, rising).to_text(device="cpu")
    assert "no allocation was counted" not in text
    assert "its lines allocated nothing: what raised the peak was allocated by other threads, or by other code" in text
