"""Which lines keep more on every run: a test set of leaky and innocent loops, the rule itself, and how it is shown."""

from __future__ import annotations

import importlib.util

import pytest
from gpu_device import environment, gpu
from made_up_snapshots import code_named, line, made_up_records, stats
from program_support import Block
from run_program import SUPPORT, run_program

from pytorch_memlab_c import LineProfiler, LineRecords
from pytorch_memlab_c.data.growth import Growth, History, Stretch, growth_of
from pytorch_memlab_c.data.record_types import Stats

LOOPS = SUPPORT / "growth_loops.py"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


def run_loops(tmp_path, device, env=None):
    return run_program(LOOPS.read_text(), tmp_path, command=["program.py", device], env=env).values


def check_loops(values, missed=()):
    assert len(values) == 25
    wrong = {name: loop for name, loop in values.items() if loop["marked"] != loop["expected"]}
    assert set(wrong) == set(missed) and not any(loop["marked"] for loop in wrong.values())
    assert sum(bool(loop["expected"]) for loop in values.values()) == 9
    sizes = {name: loop["bytes"] for name, loop in values.items()}
    assert sizes["list_append"] == [2**20] and sizes["kept_exceptions"] == [2 * 2**20]
    assert sizes["step_that_leaks"] == [2**18] and sizes["beside_a_leak"] == [2**19]
    assert sizes["cached_graph"] == [3 * 32 * 64 * 4]  # the batch, and the output of each layer but for the first's sum
    assert sizes["every_fifth_run"][0] == pytest.approx(2**20 / 5, rel=0.05)


@needs_torch
def test_loops_on_cpu_tensors(tmp_path):
    check_loops(run_loops(tmp_path, "cpu")["events"])


@gpu()
def test_loops_on_a_gpu(tmp_path):
    """By events, and by statistics: without the blocks the level must do. And the allocator's own growth is told apart."""
    values = run_loops(tmp_path, "cuda:0", environment())
    check_loops(values["events"])
    check_loops(values["statistics"], missed=["leak_in_a_part_of_the_program"])  # what is freed after it may be its own
    assert values["fragments"] == [["big = tensor(20 + 4 * i)", "reserved"]]
    assert values["reuses"] == []


def test_first_and_later_runs():
    """Set-up stands in `first` alone."""
    state = []

    def step():
        for _ in range(6):
            if not state:
                state.append(Block(1000))
            Block(50)

    with LineProfiler(step, device="cpu") as profiler:
        step()
    frame = profiler.to_dataframe(kind="growth")
    by_code = frame.set_index(frame["code"].str.strip())
    row = by_code.loc["Block(50)"]
    assert row["runs"] == 6 and row["net.first"] == 0 and row["net.later.max"] == 0
    row = by_code.loc["state.append(Block(1000))"]
    assert row["runs"] == 1 and row["net.first"] == 1000 and frame["growth"].isna().all()
    shown = profiler.to_dataframe(columns=["net.first", "net.later", "net.later.max", "net.later.last"])
    assert shown["net.first"].max() == 1000
    assert shown["net.later"].fillna(0).eq(0).all()
    state.clear()


def test_later_runs_apart_from_the_first():
    """The first run takes 1000, the later ones 1, 5, 2."""
    sizes, kept = [1000, 1, 5, 2], []

    def take(size):
        kept.append(Block(size))

    with LineProfiler(take, device="cpu") as profiler:
        for size in sizes:
            take(size)
    columns = ["net.first", "net.later", "net.later.max", "net.later.last", "net.max"]
    values = profiler.to_dataframe(columns=columns).loc[
        ("test_later_runs_apart_from_the_first.<locals>.take", slice(None))
    ]
    assert [int(value) for value in values.iloc[-1][columns]] == [1000, 8, 5, 2, 1000]
    kept.clear()


# ---- the rule ----


def history(lows, *, live=True, live_now=None, ended=0, nets=None, width=1, gross_since=0, calls=1, **freed):
    nets = nets or [0] * len(lows)
    runs = tuple(Stretch(width, low, low, 0, net, 0) for low, net in zip(lows, nets))
    live_now = lows[-1] if live_now is None else live_now
    samples = (Stretch(1, lows[0], lows[0], 0, sum(nets), 0),) if calls == 1 else runs
    since, gap = freed.get("freed_since", 0), freed.get("freed_gap", 0)
    return History(live, live_now, ended, 1000, gross_since, since, gap, runs, samples)


def verdict(*args, **fields):
    return growth_of(Stats(*[0] * 13, growth=history(*args, **fields)))


def test_a_steady_rise_is_growth():
    assert verdict([0, 100, 200, 300, 400]) == Growth("growing", 100)
    assert verdict([0, 100, 200, 300], width=4) == Growth("growing", 25)


@pytest.mark.parametrize(
    "lows",
    [
        [0, 100, 200],  # too few
        [500] * 8,
        [0, 100, 200, 300, 300, 300, 300, 300],  # a cache
        [0, 100, 200, 300, 400, 400],  # full at the end
        [0, 100, 200, 0, 100, 200, 0, 100],
        [0, 100, 200, 300, 200, 100, 0],
        [0, 1000, 1500, 1750, 1875, 1937, 1968, 1984],  # slows down
        [0, 10, 20, 30, 25, 40, 50, 60],
    ],
)
def test_what_levels_off_or_falls_is_none(lows):
    assert verdict(lows) is None


def test_what_a_call_gives_back_at_its_end_is_none():
    rise = [100 * i for i in range(16)]
    assert verdict(rise, freed_since=1500, freed_gap=100, live_now=0) is None
    assert verdict(rise, freed_since=1500, freed_gap=1400) == Growth("growing", 100)  # no more than in any run


def test_what_the_line_still_holds_was_not_given_back_whatever_else_was_freed():
    rise = [100 * i for i in range(16)]
    assert verdict(rise, freed_since=10**9, freed_gap=100, live_now=1500) == Growth("growing", 100)
    assert verdict(rise, freed_since=10**9, freed_gap=100, live_now=-1) is None  # not known
    assert verdict(rise, freed_since=1500, freed_gap=100, live=False) is None


def test_what_others_gave_back_does_not_hide_a_leak():
    rise = [100 * i for i in range(16)]
    given_back = {"freed_since": 1500, "freed_gap": 100}
    assert verdict(rise, **given_back) == Growth("growing", 100)
    assert verdict(rise, **given_back, live_now=0, ended=1500) == Growth(
        "growing", 100
    )  # with its function's variables
    assert verdict(rise, **given_back, live_now=0, ended=100) is None
    assert verdict(rise, **given_back, gross_since=1001) is None  # set-up: the longer part came after it


def test_what_is_gone_after_all_calls_is_told_so():
    rise = [100 * i for i in range(16)]
    assert verdict(rise, live_now=0) == Growth("freed later", 100)  # of one call, after it
    assert verdict(rise, calls=16, live_now=0) == Growth("freed later", 100)
    assert verdict(rise, calls=16, live_now=1500) == Growth("growing", 100)


def test_with_levels_alone_a_line_must_take_what_the_level_rises_by():
    rise = [10 * i for i in range(16)]
    assert verdict(rise, live=False, nets=[10] * 16) == Growth("growing", 10)
    assert verdict(rise, live=False, nets=[100] * 16) is None  # another line's leak
    assert verdict(rise, live=False, nets=[0] * 16) is None


# ---- showing ----


def leaking_records():
    lines = [Stretch(1, 1024 * i, 1024 * i, 0, 1024, 0) for i in range(8)]
    raw = (True, 8192, 0, 8192, 0, 0, 0, [tuple(s) for s in lines], [(1, 0, 0, 0, 8192, 0)])
    plain = stats(9000, 1024, runs=9, net_sum=9216)
    grown = plain._replace(growth=raw, net_later_max_bytes=1024)
    code = code_named("leaks")
    return made_up_records([(code, 1, [line(2, 9, 1, grown, slot_1=grown)])])


def test_it_is_shown_in_text_html_and_json():
    records = leaking_records()
    text = records.to_text()
    assert "## Lines that keep more memory on every run" in text
    row = next(row for row in text.splitlines() if "growing" in row)
    assert row.split()[:4] == ["1.00K", "1.00K", "8", "growing"] and "cuda:0 <made-up>:2 in leaks" in row
    page = records.to_html()
    assert page.index("Lines that keep more") < page.index("</body>") and page.count("<html") == 1
    again = LineRecords.from_json(records.to_json())
    assert again == records and again.to_text() == text


def test_a_report_without_growth_has_no_such_section():
    code = code_named("calm")
    records = made_up_records([(code, 1, [line(2, 9, 1, stats(9000, 0))])])
    assert "keep more" not in records.to_text() + records.to_html()


def test_an_older_report_is_read():
    """Before these figures there were."""
    import json

    document = json.loads(leaking_records().to_json())
    for key in ("saved", "saved_fields", "growth_fields"):
        del document[key]
    assert document["fields"][-2:] == ["growth", "net_later_max"]
    del document["fields"][-2:]
    for values in document["functions"][0]["lines"][0]["stats"].values():
        del values[-2:]
    records = LineRecords.from_json(json.dumps(document))
    assert records.to_dataframe(kind="growth")["growth"].isna().all() and not records.saved


def test_a_wrong_kind_is_told():
    with pytest.raises(ValueError, match="unknown kind of table 'peaks': one of 'lines', 'holders', 'growth', 'saved'"):
        leaking_records().to_dataframe(kind="peaks")
