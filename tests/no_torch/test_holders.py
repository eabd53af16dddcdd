"""Who holds the peak, and failed allocations, with a made-up allocator: no torch."""

from __future__ import annotations

import io
import itertools
import json
import threading

import pytest
from run_program import run_program

from pytorch_memlab_c import LineProfiler, LineRecords, _native, clear_global_line_profiler, profile
from pytorch_memlab_c.data.holder_types import Holder, HolderRecords, OutOfMemory, PeakHolders
from pytorch_memlab_c.line_profiler import decorators
from pytorch_memlab_c.render.holders import render_holders, what_would_fit
from pytorch_memlab_c.render.holders_html import holders_fragment

CPU, M, G = 0, 1 << 20, 1 << 30
_pointers = itertools.count(1 << 20)


class Block:
    """Made-up memory with an address, on the CPU."""

    def __init__(self, size):
        self.size, self.pointer = size, next(_pointers)
        _native.inject_event(CPU, size, 0, 0, self.pointer)

    def free(self):
        _native.inject_event(CPU, -self.size, 0, 0, self.pointer)


def level():
    return _native.levels(CPU)[1]


def peak_of(profiler, device="cpu"):
    """The device's peak, and {text of the line: bytes}; elsewhere under None."""
    records = profiler if isinstance(profiler, HolderRecords) else profiler.records().holders
    (peak,) = [peak for peak in records.peaks if peak.device == device]
    assert sum(holder.bytes for holder in peak.holders) == peak.peak
    return peak, {holder.code: holder.bytes for holder in peak.holders}


def test_bytes_at_the_highest_moment_by_line_add_up_to_the_peak():
    def f(kept):
        a = Block(100)
        kept += [Block(30), Block(20)]
        a.free()
        b = Block(40)
        b.free()
        return kept

    before = Block(7)
    base = level() - 7
    with LineProfiler(f, device="cpu") as profiler:
        for block in f([]):
            block.free()
    before.free()
    peak, held = peak_of(profiler)
    assert peak.peak == base + 157
    assert held == {"a = Block(100)": 100, "kept += [Block(30), Block(20)]": 50, None: base + 7}
    assert (peak.at.code, peak.at.line) == ("kept += [Block(30), Block(20)]", f.__code__.co_firstlineno + 2)
    stats = [line.stats["cpu"].allocated_peak for line in profiler.records().functions[0].lines]
    assert max(stats) == peak.peak == max(peak.series)


def test_what_a_callee_allocates_is_its_own_lines_or_the_callers():
    def inner():
        return Block(10)

    def outer():
        first = inner()
        second = inner()
        first.free()
        second.free()

    with LineProfiler(outer, device="cpu") as one, LineProfiler(outer, inner, device="cpu") as both:
        outer()
    assert peak_of(one)[1].items() >= {"first = inner()": 10, "second = inner()": 10}.items()
    assert peak_of(both)[1]["return Block(10)"] == 20


def test_each_thread_is_charged_for_its_own_line():
    ready = threading.Barrier(2)

    def first():
        a = Block(100)
        ready.wait()
        ready.wait()
        a.free()

    def second():
        ready.wait()
        b = Block(50)
        b.free()
        ready.wait()

    with LineProfiler(first, second, device="cpu") as profiler:
        threads = [threading.Thread(target=target) for target in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert peak_of(profiler)[1].items() >= {"a = Block(100)": 100, "b = Block(50)": 50}.items()


def test_blocks_between_yields_belong_to_the_line_that_allocated_them():
    def blocks():
        block = Block(64)
        yield block
        block.free()

    def use():
        for block in blocks():
            other = Block(block.size)
            other.free()

    with LineProfiler(use, blocks, device="cpu") as profiler:
        use()
    assert peak_of(profiler)[1].items() >= {"block = Block(64)": 64, "other = Block(block.size)": 64}.items()


def test_recursion_is_charged_to_lines_not_to_depths():
    def f(n):
        block = Block(10)
        if n:
            f(n - 1)
        block.free()

    with LineProfiler(f, device="cpu") as profiler:
        f(30)
    peak, held = peak_of(profiler)
    assert held["block = Block(10)"] == 310


def test_clear_drops_the_picture_and_the_peak_begins_anew():
    def f(size):
        Block(size).free()

    profiler = LineProfiler(f, device="cpu")
    with profiler:
        f(1000)
        profiler.clear()
        assert profiler.records().holders == HolderRecords()
        f(10)
    assert peak_of(profiler)[1]["Block(size).free()"] == 10
    with profiler:  # a later run with a lower value changes nothing
        f(5)
    assert peak_of(profiler)[1]["Block(size).free()"] == 10


def test_functions_with_profile_share_one_picture():
    @profile(device="cpu")
    def inner():
        return Block(5)

    @profile(device="cpu")
    def outer():
        a = Block(20)
        inner().free()
        a.free()

    clear_global_line_profiler()
    outer()
    held = peak_of(decorators._book.records())[1]
    assert held.items() >= {"a = Block(20)": 20, "return Block(5)": 5}.items()


PROGRAM = """
from pytorch_memlab_c import _native, profile, profile_every

def block(size, pointer):
    _native.inject_event(0, size, 0, 0, pointer)

@profile(device="cpu")
def inner():
    block(3000, 1)

@profile(device="cpu")
def outer():
    inner()
    block(1000, 2)

@profile_every(2, device="cpu")
def step(n):
    block(500, 10 + n)

outer()
for n in range(4):
    step(n)
"""


def test_decorated_functions_print_one_section_at_the_end_and_each_printer_its_own(tmp_path):
    out = run_program(PROGRAM, tmp_path).stdout
    sections = out.split("Peak of cpu (tensor bytes): ")[1:]
    assert [section.split(",")[0] for section in sections] == ["4.88K", "5.86K", "3.91K"]
    assert sections[-1].splitlines()[:3] == [
        "3.91K, at program.py:14 in outer. Held by:",
        "     2.93K  75.0%  program.py:9 in inner   block(3000, 1)",
        "  1000.00B  25.0%  program.py:14 in outer  block(1000, 2)",
    ]
    assert "elsewhere" in sections[0] and "elsewhere" not in sections[-1]


# ---- failed allocations ----


def test_every_try_of_a_search_is_told_and_the_exception_is_the_programs():
    def step(n):
        a = Block(1000)
        _native.inject_failure(CPU, n, 2000, -1, -1, -1)
        a.free()
        raise MemoryError(n)

    def search():
        for n in (4 * G, 2 * G):
            try:
                step(n)
            except MemoryError as error:
                assert error.args == (n,)

    with LineProfiler(search, step, device="cpu") as profiler:
        search()
    told = profiler.records().holders
    assert told.failures == 2 and [failure.asked for failure in told.out_of_memory] == [4 * G, 2 * G]
    failure = told.out_of_memory[0]
    assert failure.at.code == "_native.inject_failure(CPU, n, 2000, -1, -1, -1)"
    assert (failure.reserved, failure.unused, failure.total) == (None, None, None)
    assert Holder("line", 1000, step.__qualname__, __file__, failure.at.line - 1, "a = Block(1000)") in failure.holders
    assert sum(holder.bytes for holder in failure.holders) == failure.active
    stream = io.StringIO()
    profiler.print_stats(stream=stream)
    assert stream.getvalue().count("Out of memory on cpu at test_holders.py:") == 2
    assert "asked for 4.00G, 1.95K allocated" in stream.getvalue()


def test_tries_beyond_the_bound_are_counted():
    def f():
        for n in range(40):
            _native.inject_failure(CPU, n, 0, -1, -1, -1)

    with LineProfiler(f, device="cpu") as profiler:
        f()
    told = profiler.records().holders
    assert (len(told.out_of_memory), told.failures) == (32, 40)
    assert "Out of memory 8 more times" in str(profiler.records().to_text())


def failure(asked, allocated, reserved, unused, total=24 * G, holders=()):
    at = Holder("line", 0, "f", "m.py", 3, "x = y")
    return OutOfMemory("cuda:0", asked, allocated, allocated, reserved, unused, total, at, tuple(holders))


def lines_of(*sizes):
    return [Holder("line", size, "f", "m.py", i, "") for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    "told, expected",
    [
        (failure(3 * G, 20 * G, 21 * G, G, holders=lines_of(12 * G, 8 * G)), ["2.00G less", "largest line holds"]),
        (failure(20 * G, 20 * G, 21 * G, G, holders=lines_of(12 * G, 10 * G)), ["19.00G less", "2 largest lines"]),
        (failure(22 * G, 20 * G, 21 * G, G), ["20.00G less"]),  # all that is held, and 1 GB of the cache
        (failure(23 * G, 20 * G, 21 * G, G), ["cannot fit: with nothing else held, this process could have 22.00G"]),
        (failure(25 * G, 20 * G, 21 * G, G), ["cannot fit: the device has 24.00G in all"]),
        (failure(G, 15 * G, 20 * G, 4 * M), ["fragmentation: 5.00G (25.0% of reserved)", "1020.00M less"]),
        (failure(G, 5 * G, 5 * G, 10 * G), ["set_per_process_memory_fraction"]),
        # a request of 5 MB needs a segment of 20 MB: room for 12 MB is not room enough
        (failure(5 * M, 20 * G, 20 * G, 12 * M), ["8.00M less"]),
        (failure(G, 5 * G, None, None), []),
    ],
)
def test_what_would_have_made_it_fit(told, expected):
    lines = what_would_fit(told)
    for text in expected:
        assert any(text in line for line in lines), lines
    assert bool(lines) == bool(expected)


# ---- shown ----

HOLDERS = (
    Holder("backward", 600 * M, "step", "/here/train.py", 12, "loss.backward()"),
    *(Holder("line", (90 - i) * M, f"f{i}", "/here/net.py", 20 + i, f"x{i} = <b>") for i in range(7)),
    Holder("autograd", 30 * M),
    Holder("elsewhere", 20 * M),
)
TOTAL = sum(holder.bytes for holder in HOLDERS)
RECORDS = HolderRecords(
    (
        PeakHolders("cpu", 0, HOLDERS[-1], ()),
        PeakHolders("cuda:0", TOTAL, HOLDERS[0], HOLDERS, (0, TOTAL // 2, TOTAL, 5), 4),
    ),
    (failure(G, 23 * G, 23 * G, 512 * M, holders=lines_of(23 * G)),),
    3,
    ("a note",),
)


def test_text_of_the_largest_lines_and_the_rest():
    text = render_holders(RECORDS, ["cuda:0", "cpu"])
    assert text.startswith(
        "Peak of cuda:0: 1.23G, at train.py:12 in step, in backward. Held by:\n"
        "  600.00M  47.7%  train.py:12 in step, in backward  loss.backward()\n"
        "   90.00M   7.1%  net.py:20 in f0                   x0 = <b>\n"
        "   89.00M   7.1%  net.py:21 in f1                   x1 = <b>\n"
        "   88.00M   7.0%  net.py:22 in f2                   x2 = <b>\n"
        "   87.00M   6.9%  net.py:23 in f3                   x3 = <b>\n"
        "  285.00M  22.6%  4 more lines\n"
        "   20.00M   1.6%  elsewhere: outside of the profiled functions, or before profiling\n"
        "\n"
        "Out of memory on cuda:0 at m.py:3 in f\n"
        "  > x = y\n"
        "  asked for 1.00G, 23.00G allocated, 23.00G reserved, 512.00M of the device's 24.00G free\n"
        "  it would fit with 512.00M less held\n"
        "  the largest line holds that much\n"
        "  Held then by:\n"
        "    23.00G 100.0%  m.py:0 in f\n"
        "\n"
        "Out of memory 2 more times\n"
        "\n"
        "note: a note\n"
    )


def search(count):
    tries = tuple(failure(i * G, 20 * G, 20 * G, 4 * G, holders=lines_of(20 * G)) for i in range(count, 0, -1))
    return HolderRecords((), tries, count)


def test_the_tries_of_a_search_are_one_table():
    text = render_holders(search(17), ["cuda:0"])
    lines = text.splitlines()
    assert lines[0] == "Out of memory 17 times; the last one in full below:"
    assert lines[1].split() == ["asked", "for", "allocated", "free", "where", "code"]
    assert [line.split()[:3] for line in lines[2:19]] == [[f"{i}.00G", "20.00G", "4.00G"] for i in range(17, 0, -1)]
    assert lines[19] == "" and lines[20] == "Out of memory on cuda:0 at m.py:3 in f"
    assert text.count("asked for 1.00G") == 1 and text.count("Held then by:") == 1
    html = str(holders_fragment(search(17), ["cuda:0"]))
    assert html.count("<h3>Out of memory") == 2 and html.count("17.00G") == 1


def test_two_failures_are_shown_in_full():
    text = render_holders(search(2), ["cuda:0"])
    assert text.count("Out of memory on cuda:0 at m.py:3 in f") == text.count("Held then by:") == 2


def test_what_happened_outside_of_the_profiled_functions_says_so():
    outside = Holder("elsewhere", 0)
    records = HolderRecords((PeakHolders("cpu", M, outside, (Holder("elsewhere", M),)),), (), 0)
    head = "Peak of cpu (tensor bytes): 1.00M, outside of the profiled functions"
    assert render_holders(records, ["cpu"]).startswith(f"{head}. Held by:\n")
    assert f"{head}</h3>" in str(holders_fragment(records, ["cpu"]))


def test_a_failure_while_nothing_was_held_has_no_list_of_holders():
    records = HolderRecords((), (failure(G, 0, 0, 8 * G),), 1)
    assert "Held then by" not in render_holders(records, ["cuda:0"])
    assert "<table" not in str(holders_fragment(records, ["cuda:0"]))


def test_nothing_to_tell_is_no_text():
    assert render_holders(HolderRecords(), ["cpu"]) == ""
    assert str(holders_fragment(HolderRecords(), ["cpu"])) == ""


def test_html_has_the_bar_the_plot_and_escaped_code():
    html = str(holders_fragment(RECORDS, ["cuda:0"]))
    assert html.count("<polygon") == 1 and "4 allocations and frees" in html
    assert "x0 = &lt;b&gt;" in html and "<b>" not in html
    widths = [float(part.split("%")[0]) for part in html.split('style="width: ')[1:]]
    assert sum(widths[: len(HOLDERS)]) == pytest.approx(100, abs=0.1)
    assert "Out of memory 2 more times" in html


def test_notebooks_and_pages_show_holders(tmp_path):
    def f():
        Block(12345).free()

    with LineProfiler(f, device="cpu") as profiler:
        f()
    profiler.to_html(tmp_path / "page.html")
    for html in (profiler.display()._repr_html_(), (tmp_path / "page.html").read_text()):
        assert (
            html.startswith("<")
            and "Peak of cpu (tensor bytes): " in html
            and "<polygon" in html
            and "test_holders.py:" in html
        )


def test_calls_that_allocate_nothing_are_no_points_of_the_plot():
    def f(blocks):
        blocks.append(Block(10))
        blocks.pop().free()

    def g():
        pass

    with LineProfiler(f, g, device="cpu") as profiler:
        f([])
        for _ in range(1000):
            g()
    assert len(peak_of(profiler)[0].series) == 3


def test_plot_of_the_first_allocations_begins_where_later_ones_do(tmp_path):
    program = """
    from pytorch_memlab_c import LineProfiler, _native
    from program_support import report

    def f(pointer):
        _native.inject_event(0, 10, 0, 0, pointer)
        _native.inject_event(0, -10, 0, 0, pointer)

    def plot(pointer, clear):
        with LineProfiler(f, device="cpu") as profiler:
            f(pointer)
            if clear:
                profiler.clear()
                f(pointer)
        return profiler.records().holders.peaks[0].series

    report(first=plot(4096, False), second=plot(8192, False), cleared=plot(4096, True))
    """
    assert run_program(program, tmp_path).values == {name: [0, 10, 0] for name in ("first", "second", "cleared")}


def test_json_round_trip_and_reports_that_are_older():
    records = LineRecords((), holders=RECORDS)
    text = records.to_json()
    assert LineRecords.from_json(text) == records
    document = json.loads(text)
    del document["holders"]
    assert LineRecords.from_json(json.dumps(document)).holders == HolderRecords()


def test_damaged_holders_are_refused():
    for damage in ({"peak": "much"}, {"series": ["x"]}, {"holders": [["line", "many"]]}, {"at": 3}):
        document = json.loads(LineRecords((), holders=RECORDS).to_json())
        document["holders"]["peaks"][1].update(damage)
        with pytest.raises(ValueError, match="damaged report"):
            LineRecords.from_json(json.dumps(document))


def test_dataframe_of_holders():
    frame = LineRecords((), holders=RECORDS).to_dataframe(kind="holders")
    assert list(frame.columns) == ["device", "function", "file", "line", "kind", "bytes", "share", "code"]
    assert frame["bytes"].sum() == TOTAL == frame.attrs["peaks"]["cuda:0"]
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["line"].isna().sum() == 2
    assert len(LineRecords(()).to_dataframe(kind="holders")) == 0
    with pytest.raises(ValueError, match="unknown kind of table 'held'"):
        LineRecords(()).to_dataframe(kind="held")
