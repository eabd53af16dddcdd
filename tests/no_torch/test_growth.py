"""Which lines keep more on every run: a test set of leaky and innocent loops, the rule itself, and how it is shown."""

from __future__ import annotations

import importlib.util

import pytest
from gpu_device import environment, gpu
from made_up_snapshots import code_named, growing, line, made_up_records, stats
from program_support import Block, OwnedBlock
from run_program import SUPPORT, run_program

from pytorch_memlab_c import LineProfiler, LineRecords
from pytorch_memlab_c.data.growth import Growth, History, growth_of
from pytorch_memlab_c.data.record_types import Stats
from pytorch_memlab_c.data.rising import Stretch

LOOPS, PROGRAMS = SUPPORT / "growth_loops.py", SUPPORT / "growth_programs.py"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


def run_loops(tmp_path, device, env=None):
    return run_program(LOOPS.read_text(), tmp_path, command=["program.py", device], env=env, timeout=400).values


def check_loops(values):
    assert len(values) == 25
    wrong = {name: loop for name, loop in values.items() if loop["marked"] != loop["expected"]}
    assert not wrong
    assert sum(bool(loop["expected"]) for loop in values.values()) == 9
    sizes = {name: loop["bytes"] for name, loop in values.items()}
    assert sizes["list_append"] == [2**20] and sizes["kept_exceptions"] == [2 * 2**20]
    assert sizes["step_that_leaks"] == [2**18] and sizes["beside_a_leak"] == [2**19]
    assert sizes["leak_in_a_part_of_the_program"] == [2**18, 2**20]
    assert sizes["cached_graph"] == [3 * 32 * 64 * 4]  # the batch, and the output of each layer but for the first's sum
    assert sizes["every_fifth_run"][0] == pytest.approx(2**20 / 5, rel=0.05)


@needs_torch
def test_loops_on_cpu_tensors(tmp_path):
    check_loops(run_loops(tmp_path, "cpu")["events"])


@gpu()
def test_loops_on_a_gpu(tmp_path):
    """By events. By statistics it is not known who holds what: nothing is named."""
    values = run_loops(tmp_path, "cuda:0", environment())
    check_loops(values["events"])
    assert not any(loop["marked"] for loop in values["statistics"].values())


@needs_torch
def test_programs_of_users_on_cpu_tensors(tmp_path):
    check_programs(tmp_path, "cpu")


@gpu()
def test_programs_of_users_on_a_gpu(tmp_path):
    check_programs(tmp_path, "cuda:0", environment())


def check_programs(tmp_path, device, env=None):
    values = run_program(PROGRAMS.read_text(), tmp_path, command=["program.py", device], env=env, timeout=400).values
    assert len(values) == 39
    wrong = {name: found for name, (found, expected) in values.items() if found != expected}
    assert not wrong, wrong


DECORATED = """
import torch
from pytorch_memlab_c import profile

@profile(device="cpu")
def fill(kept):
    for _ in range(10):
        kept.append(torch.empty(1 << 20, dtype=torch.uint8))

@profile(device="cpu")
def given_back(kept):
    for _ in range(10):
        kept.append(torch.empty(1 << 19, dtype=torch.uint8))

@profile(device="cpu")
def last():
    pass

def main():
    kept, others = [], []
    given_back(others)
    others.clear()
    fill(kept)
    last()

main()
"""


@needs_torch
def test_what_the_last_function_leaves_counts_though_the_program_has_ended(tmp_path):
    """A report at exit: the list went with `main`, which nobody profiled. What goes before another function runs was
    given
    back."""
    section = run_program(DECORATED, tmp_path).stdout.partition("keep more memory on every run")[2]
    rows = [row for row in section.splitlines() if "program.py" in row]
    assert len(rows) == 1 and rows[0].split()[:3] == ["1.00M", "10", "0.00B"] and " in fill " in rows[0]


def test_what_goes_as_a_function_ends_after_the_run_is_no_part_of_it():
    """The report is of what was held as recording stopped."""
    kept = []

    def fill():
        for _ in range(10):
            kept.append(OwnedBlock(100))

    with LineProfiler(fill, device="cpu") as profiler:
        fill()
    kept.clear()
    frame = profiler.to_dataframe(kind="growth").dropna(subset="bytes_per_run")
    assert frame[["bytes_per_run", "held"]].values.tolist() == [[100, 1000]]


def test_a_second_profiling_begins_anew():
    kept = []

    def fill(runs):
        for _ in range(runs):
            kept.append(OwnedBlock(100))

    with LineProfiler(fill, device="cpu"):
        fill(20)
    with LineProfiler(fill, device="cpu") as profiler:
        fill(3)
        del kept[:20]
        fill(4)
    frame = profiler.to_dataframe(kind="growth").dropna(subset="bytes_per_run")
    assert frame[["bytes_per_run", "held"]].values.tolist() == [[100, 700]]
    kept.clear()


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
    assert row["runs"] == 1 and row["net.first"] == 1000 and frame["bytes_per_run"].isna().all()
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


def history(held, *, old=None, end=None, width=1, calls=None, **fields):
    old = [max(0, value - 100 * width) for value in held] if old is None else old
    runs = tuple(Stretch(width, width, *pair) for pair in zip(held, old))
    end = held[-1] + 100 if end is None else end
    return History(end, end, runs, runs[:1] if calls is None else calls, **fields)


def rate(*args, device="cuda:0", **fields):
    growth = growth_of(Stats(*[0] * 13, growth=history(*args, **fields)), device)
    return growth and growth.bytes_per_run


def test_a_steady_rise_is_growth():
    assert rate([0, 100, 200, 300]) == 100
    assert rate([0, 100, 200, 300], width=4) == 25
    grown = growth_of(Stats(*[0] * 13, growth=history([0, 100, 200, 300], width=4)._replace(live=7)), "cpu")
    assert grown == Growth(25, 17, 7)


@pytest.mark.parametrize(
    "held",
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
def test_what_levels_off_or_falls_is_none(held):
    assert rate(held, end=held[-1]) is None


def test_what_is_given_back_after_the_last_run_is_none():
    rise = [100 * i for i in range(12)]
    assert rate(rise, end=0) is None
    assert rate(rise, end=600) is None
    assert rate(rise, end=1100) == 100


K, M = 2**10, 2**20


@pytest.mark.parametrize(
    "units, rate_in_units",
    [
        ([1, 2, 3, 4, 5, 6, 7, 11, 9, 11], 1),  # one tensor that is replaced by a larger one
        ([1, 2, 3, 4, 5, 6, 7, 11, 9, 11, 11, 12], 1),
        ([2, 4, 6, 8, 10, 12, 17, 20, 19, 20], 2),  # two of them
        ([4, 6, 8, 10, 12, 14, 16, 18, 18, 20], 2),  # the last one got the block of the one before
    ],
)
def test_a_block_that_fits_better_is_no_fall_on_a_gpu(units, rate_in_units):
    """A block of a GPU's allocator is up to 1 MiB larger than asked for, if it is larger than that."""
    *held, end = [256 * K * value for value in units]
    nothing_old = [0] * len(held)
    assert rate(held, old=nothing_old, end=end) == 256 * K * rate_in_units
    assert rate(held, old=nothing_old, end=end, device="cpu") is None


@pytest.mark.parametrize(
    "held",
    [
        [M * value for value in (1, 5, 8, 10, 10.5, 10, 10.75, 10.25, 10, 10.5)],  # a window that is full
        [M * value for value in (7, 7.5, 7, 7.75, 7.25, 7, 7.5, 7.75)],  # batches of several sizes
        [M * value for value in (2, 3, 4, 3, 4, 5, 4, 5, 6)],  # falls that are larger
        [K * value for value in (100, 200, 300, 200, 300, 400, 500, 400, 600)],  # blocks that are smaller
    ],
)
def test_what_falls_or_stays_is_none_on_a_gpu(held):
    assert rate(held, old=[0] * len(held), end=held[-1]) is None


def test_a_single_large_run_changes_nothing():
    for at in range(1, 12):
        held = [100 * i + (9999 if i >= at else 0) for i in range(12)]
        assert rate(held) == 100
        assert rate(held, width=4) == 25


def test_runs_that_keep_nothing_now_and_then():
    assert rate([0, 0, 100, 100, 200, 200, 300, 300], old=[0] * 8) == 50
    assert rate([100 * (i // 3) for i in range(16)], old=[0] * 16) == pytest.approx(33, abs=4)


def test_beside_what_comes_and_goes_the_older_bytes_decide():
    held = [900, 50, 700, 1000, 420, 10_000, 640, 800]
    assert rate(held, old=[8 * i for i in range(8)], end=10_000) == 8
    assert rate(held, old=[8] * 8, end=10_000) is None
    assert rate(held, old=[min(8 * i, 40) for i in range(8)], end=40) is None  # the last runs added nothing


def test_what_a_call_gives_back_is_told_from_what_stays():
    held = [100 * (i % 5) + 7 * (i // 5) for i in range(30)]
    calls = tuple(Stretch(1, 5, 7 * i, 7 * i) for i in range(6))
    assert rate(held, calls=calls, end=500) == round(7 / 5)
    assert rate(held, calls=tuple(Stretch(1, 5, 7, 7) for _ in range(6)), end=500) is None


def test_one_run_on_each_of_many_modules_is_no_growth():
    rise = [100 * i for i in range(12)]
    calls = tuple(Stretch(10, 10, 100 * i, 100 * i) for i in range(12))
    assert rate(rise, calls=calls, modules=1) == 100
    assert rate(rise, calls=calls, modules=30) == 100
    assert rate(rise, calls=calls, modules=31) is None


def test_a_loop_through_a_modules_parts_is_one_run():
    rise = [100 * i for i in range(12)]
    assert rate(rise, modules=1, parts=True) is None
    calls = tuple(Stretch(1, 3, 30 * i, 30 * i) for i in range(4))
    assert rate(rise, calls=calls, modules=1, parts=True) == 10


# ---- showing ----


def leaking_records():
    grown = stats(9000, 1024, runs=9, net_sum=9216)._replace(growth=growing(1024), net_later_max_bytes=1024)
    code = code_named("leaks")
    return made_up_records([(code, 1, [line(2, 9, 1, grown, slot_1=grown)])])


def test_it_is_shown_in_text_html_and_json():
    records = leaking_records()
    text = records.to_text()
    assert "## Lines that keep more memory on every run" in text
    header, row = text.splitlines()[2:4]
    assert header.startswith("each run keeps") and row.split()[:3] == ["1.00K", "9", "8.00K"]
    assert "cuda:0 <made-up>:2 in leaks" in row
    page = records.to_html()
    assert page.index("Lines that keep more") < page.index("</body>") and page.count("<html") == 1
    again = LineRecords.from_json(records.to_json())
    assert again == records and again.to_text() == text
    frame = records.to_dataframe(kind="growth")
    assert frame[["bytes_per_run", "held"]].values.tolist() == [[1024, 8192]]


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
    assert records.to_dataframe(kind="growth")["bytes_per_run"].isna().all() and not records.saved


def test_an_older_history_is_read():
    """Of a version that kept levels as well: what the line held itself is taken over."""
    import json

    document = json.loads(leaking_records().to_json())
    document["growth_fields"] = {
        "history": "live live_now ended gross gross_since freed_since freed_gap runs calls".split(),
        "stretch": "runs low level_low reserved_low net reserved_net".split(),
    }
    place = document["fields"].index("growth")
    stats = document["functions"][0]["lines"][0]["stats"]
    for live, found in ((True, 1024), (False, None)):
        stretches = [[1, 1024 * i, 5000 + 1024 * i, 9000, 1024, 0] for i in range(8)]
        for figures in stats.values():
            figures[place] = [live, 7168, 1024, 8192, 0, 0, 0, stretches, [[1, 0, 5000, 9000, 8192, 0]]]
        records = LineRecords.from_json(json.dumps(document))
        assert [growth_of(line.stats["cuda:0"], "cuda:0") for line in records.functions[0].lines] == [
            found and Growth(found, 9, 7168)
        ]


def test_a_wrong_kind_is_told():
    with pytest.raises(ValueError, match="unknown kind of table 'peaks': one of 'lines', 'holders', 'growth', 'saved'"):
        leaking_records().to_dataframe(kind="peaks")
