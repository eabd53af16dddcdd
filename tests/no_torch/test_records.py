"""From the engine's tuples to records, DataFrame, JSON, CSV and HTML files."""

from __future__ import annotations

import copy
import functools
import json
import os
import pickle
import stat
import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_snapshots import K, LineCounts, LineStats, M, code_named, line, made_up_records, stats

from pytorch_memlab_c.data.columns import DEFAULT_COLUMNS, DEFAULT_CPU_COLUMNS, default_columns
from pytorch_memlab_c.data.growth import History
from pytorch_memlab_c.data.record_types import FunctionRecord, LineRecord, Stats
from pytorch_memlab_c.data.rising import Stretch
from pytorch_memlab_c.line_profiler.records import LineRecords

CPU, CUDA0, CUDA1 = 0, 1, 2


def work(n):
    x = [n]
    for _ in range(2):
        x = x + x
    return x


def other():
    return None


FIRST = work.__code__.co_firstlineno


def snapshot_of_work(slot=CUDA0):
    lines = [
        line(FIRST, 0, slot, stats(0)),
        line(FIRST + 1, 1, slot, stats(40 * K, 40 * K)),
        line(FIRST + 3, 2, slot, stats(120 * K, 80 * K, runs=2, net_first=30 * K, net_max=50 * K)),
    ]
    return [(work.__code__, 1, lines)]


def records_of(*entries, **kwargs):
    return made_up_records(entries, **kwargs)


# --- the DataFrame -------------------------------------------------------------------------------


def test_frame_has_one_row_a_source_line():
    frame = made_up_records(snapshot_of_work()).to_dataframe()
    assert frame.index.names == ["function", "line"]
    assert list(frame.index) == [("work", FIRST + i) for i in range(5)]
    assert list(frame.columns) == [*DEFAULT_COLUMNS, "device", "code"]
    assert frame["code"].tolist()[:2] == ["def work(n):", "    x = [n]"]
    assert {str(frame[column].dtype) for column in DEFAULT_COLUMNS} == {"Int64"}


def test_frame_values_are_exact_bytes():
    frame = made_up_records(snapshot_of_work()).to_dataframe()
    assert frame.loc[("work", FIRST + 3)].tolist()[:5] == [120 * K, 2 * M, 80 * K, 2, "cuda:0"]
    assert frame.loc[("work", FIRST)].tolist()[:5] == [0, 2 * M, 0, 0, "cuda:0"]


def test_a_line_never_run_has_hits_0_and_missing_values():
    frame = made_up_records(snapshot_of_work()).to_dataframe()
    never_run = frame.loc[("work", FIRST + 4)]
    assert never_run["hits"] == 0
    assert never_run.drop(["hits", "code"]).isna().all()
    assert never_run["code"] == "    return x"


def test_every_own_column_reads_its_field():
    values = Stats(*range(100, 113))
    by_column = {
        "runs": values.runs,
        "net": values.net_sum,
        "net.first": values.net_first,
        "net.max": values.net_max,
        "net.last": values.net_last,
        "allocated": values.gross_bytes,
        "allocations": values.allocations,
        "active_bytes.all.peak": values.active_peak,
        "active_bytes.all.current": values.active_current,
        "allocated_bytes.all.peak": values.allocated_peak,
        "allocated_bytes.all.current": values.allocated_current,
        "reserved_bytes.all.peak": values.reserved_peak,
        "reserved_bytes.all.current": values.reserved_current,
        "hits": 7,
    }
    records = records_of((work.__code__, 1, [line(FIRST + 1, 7, CUDA0, LineStats(*values))]))
    frame = records.to_dataframe(columns=list(by_column))
    assert frame.loc[("work", FIRST + 1)].tolist()[: len(by_column)] == list(by_column.values())


def test_cpu_columns_are_the_cpu_s_and_cuda_columns_cuda_s():
    columns = ["tensor_bytes.peak", "tensor_bytes.current", "active_bytes.all.peak", "net"]
    cpu = made_up_records(snapshot_of_work(CPU)).to_dataframe(columns=columns)
    assert cpu.loc[("work", FIRST + 1)].tolist()[:5] == [40 * K, 40 * K, pd.NA, 40 * K, "cpu"]
    cuda = made_up_records(snapshot_of_work(CUDA0)).to_dataframe(columns=columns)
    assert cuda.loc[("work", FIRST + 1)].tolist()[:5] == [pd.NA, pd.NA, 40 * K, 40 * K, "cuda:0"]


@pytest.mark.parametrize(
    "slot, device, expected",
    [
        (CPU, None, DEFAULT_CPU_COLUMNS),
        (CUDA0, None, DEFAULT_COLUMNS),
        (CUDA0, "cpu", DEFAULT_CPU_COLUMNS),
        (CPU, "cuda:1", DEFAULT_COLUMNS),
        (CPU, "all", DEFAULT_CPU_COLUMNS),
    ],
)
def test_default_columns_follow_the_device(slot, device, expected):
    frame = made_up_records(snapshot_of_work(slot)).to_dataframe(device=device)
    assert tuple(frame.columns[:-2]) == expected


def test_default_columns_of_functions_on_different_devices_are_joined():
    cpu_line = line(other.__code__.co_firstlineno + 1, 1, CPU, stats(K, K))
    records = records_of(*snapshot_of_work(), (other.__code__, 1, [cpu_line]))
    assert tuple(records.to_dataframe().columns[:-2]) == default_columns(True, True)
    assert tuple(records.to_dataframe("other").columns[:-2]) == DEFAULT_CPU_COLUMNS


def test_a_function_never_called_has_the_columns_of_the_target():
    never = (work.__code__, 0, [])
    assert "tensor_bytes.peak" in records_of(never, target="cpu").to_dataframe()
    assert "tensor_bytes.peak" not in records_of(never, target="cuda:1").to_dataframe()
    assert "tensor_bytes.peak" not in records_of(never).to_dataframe()
    frame = records_of(never).to_dataframe(columns="hits")
    assert frame["hits"].tolist() == [0] * 5
    assert frame.attrs["notes"][0].startswith("work: never called")


def test_no_function_at_all():
    frame = records_of().to_dataframe()
    assert frame.empty and list(frame.columns) == [*DEFAULT_COLUMNS, "device", "code"]


# --- devices -------------------------------------------------------------------------------------


def spill():
    """Charged to cuda:0 and cuda:1; the first line also allocates on the CPU and on cuda:1."""
    lines = [
        line(FIRST, 0, CUDA0, stats(K), slot_2=stats(0), slot_0=stats(0)),
        line(FIRST + 1, 1, CUDA0, stats(2 * K, K), slot_2=stats(7 * K, 7 * K), slot_0=stats(9, 9)),
        line(FIRST + 3, 4, CUDA1, stats(8 * K, K), slot_1=stats(2 * K)),
    ]
    return work.__code__, 1, lines


def test_target_view_shows_each_line_on_its_target():
    frame = records_of(spill()).to_dataframe(columns=["active_bytes.all.peak", "hits"])
    rows = frame.loc[[("work", FIRST), ("work", FIRST + 1), ("work", FIRST + 3)]]
    assert rows["active_bytes.all.peak"].tolist() == [K, 2 * K, 8 * K]
    assert rows["device"].tolist() == ["cuda:0", "cuda:0", "cuda:1"]


def test_a_line_charged_to_two_gpus_names_both():
    both = LineCounts(FIRST + 1, 2, (CUDA1, CUDA0), {-1: stats(5), CUDA0: stats(3), CUDA1: stats(5)})
    frame = records_of((work.__code__, 1, [both])).to_dataframe()
    row = frame.loc[("work", FIRST + 1)]
    assert (row["device"], row["active_bytes.all.peak"]) == ("cuda:1,cuda:0", 5)


def test_cpu_and_cuda_bytes_of_one_line_are_never_put_together():
    mixed = LineCounts(FIRST + 1, 2, (CPU, CUDA0), {-1: stats(5, 8), CPU: stats(3, 3), CUDA0: stats(5, 5)})
    columns = ["tensor_bytes.peak", "active_bytes.all.peak", "net", "hits"]
    records = records_of((work.__code__, 1, [mixed]))
    row = records.to_dataframe(columns=columns).loc[("work", FIRST + 1)]
    assert row.tolist()[:5] == [3, 5, pd.NA, 2, "cpu,cuda:0"]
    assert records.to_dataframe(columns=columns, device="cpu").iloc[1]["net"] == 3


def test_a_line_without_a_charge_is_read_as_its_function_s_device():
    entry = LineCounts(FIRST, 0, (), {-1: stats(3), CPU: stats(3)})
    records = records_of((work.__code__, 1, [entry, line(FIRST + 1, 1, CPU, stats(5, 5))]))
    columns = ["tensor_bytes.peak", "active_bytes.all.peak"]
    assert records.to_dataframe(columns=columns).iloc[0].tolist()[:2] == [3, pd.NA]
    alone = records_of((work.__code__, 1, [entry])).to_dataframe(columns=columns)
    assert alone.iloc[0].tolist()[:2] == [3, 3]


def test_one_device_view_reads_that_device_s_own_record():
    frame = records_of(spill()).to_dataframe(columns=["active_bytes.all.peak"], device="cuda:1")
    values = frame["active_bytes.all.peak"].tolist()
    assert values == [0, 7 * K, pd.NA, 8 * K, pd.NA]
    assert set(frame["device"]) == {"cuda:1"}


def test_a_line_that_ran_before_the_device_s_first_event_has_0_there():
    records = records_of((work.__code__, 1, [line(FIRST + 1, 2, CUDA0, stats(K, K, runs=2))]))
    columns = ["active_bytes.all.peak", "net", "runs", "hits"]
    frame = records.to_dataframe(columns=columns, device="cuda:3")
    assert frame.iloc[1].tolist()[:5] == [0, 0, 2, 2, "cuda:3"]
    assert frame.iloc[2].tolist()[:5] == [pd.NA, pd.NA, pd.NA, 0, "cuda:3"]


def test_all_view_has_a_row_for_each_line_and_device_that_allocated():
    frame = records_of(spill()).to_dataframe(device="all")
    assert frame.loc[("work", FIRST + 1)]["device"].tolist() == ["cuda:0", "cuda:1", "cpu"]
    assert frame.loc[("work", FIRST + 1)]["net.last"].tolist() == [K, 7 * K, 9]
    assert len(frame) == 5 * 3
    assert list(frame.index.get_level_values("line")) == sorted(frame.index.get_level_values("line"))


def test_all_view_leaves_out_devices_that_only_held_memory():
    held = line(FIRST + 1, 1, CUDA0, stats(K, K), slot_2=stats(5 * M))
    freed = line(FIRST + 2, 1, CUDA0, stats(K), slot_3=stats(5 * M, -K))
    records = records_of((work.__code__, 1, [held, freed]))
    assert set(records.to_dataframe(device="all")["device"]) == {"cuda:0", "cuda:2"}


def test_all_view_of_a_function_that_allocated_nothing_shows_its_hits():
    records = records_of((work.__code__, 1, [line(FIRST + 1, 3, CUDA0, stats(K))]))
    frame = records.to_dataframe(device="all")
    assert frame["hits"].tolist() == [0, 3, 0, 0, 0]


def test_the_records_own_view_is_the_default():
    records = records_of(spill(), device="cuda:1")
    assert set(records.to_dataframe()["device"]) == {"cuda:1"}
    assert "cuda:0" in set(records.to_dataframe(device="target")["device"].dropna())


@pytest.mark.parametrize("device, name", [(1, "cuda:1"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")])
def test_ways_to_name_a_device(device, name):
    assert set(records_of(spill()).to_dataframe(device=device)["device"]) == {name}


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "cuda:01", -1, True, "", "cuda:x"])
def test_what_is_no_device(device):
    with pytest.raises(ValueError, match="unknown device"):
        records_of(spill()).to_dataframe(device=device)


# --- extra columns -------------------------------------------------------------------------------


def test_extra_columns():
    extra = ("allocation.all.peak", "num_ooms")
    entry = (
        work.__code__,
        1,
        [
            line(FIRST + 1, 1, CUDA0, stats(K, K, extra=(3, None))),
            line(FIRST + 2, 1, CUDA0, stats(K)),
        ],
    )
    frame = records_of(entry, extra_columns=extra).to_dataframe(columns=["num_ooms", extra[0]])
    assert frame["allocation.all.peak"].tolist() == [pd.NA, 3, pd.NA, pd.NA, pd.NA]
    assert frame["num_ooms"].isna().all()


def test_a_column_that_was_not_recorded_is_an_error():
    records = made_up_records(snapshot_of_work())
    with pytest.raises(ValueError, match=r"'num_ooms' was not recorded.*@profile\(columns="):
        records.to_dataframe(columns="num_ooms")
    with pytest.raises(ValueError, match="unknown column 'ooms'"):
        records.to_text(columns=["ooms"])


# --- the def line --------------------------------------------------------------------------------


def decorate(*_):
    return lambda function: function


@decorate(
    1,
)
@decorate()
def decorated(n):
    return n


@decorate()
def in_one_line(n): return n  # fmt: skip


def test_entry_values_of_a_decorated_function_stand_on_its_def_line():
    first = decorated.__code__.co_firstlineno
    lines = [line(first, 0, CUDA0, stats(3 * K)), line(first + 5, 1, CUDA0, stats(5 * K, K))]
    records = records_of((decorated.__code__, 1, lines))
    frame = records.to_dataframe(columns="active_bytes.all.peak")
    code = frame["code"].tolist()
    assert code[4] == "def decorated(n):"
    assert frame["active_bytes.all.peak"].tolist() == [pd.NA] * 4 + [3 * K, 5 * K]
    assert records.functions[0].def_line == first + 4


def test_entry_and_body_in_one_decorated_line_are_merged():
    first = in_one_line.__code__.co_firstlineno
    entry = stats(9 * K, runs=4, extra=(1, None), reserved=K)
    body = stats(2 * K, -K, runs=4, gross=5, extra=(None, 2), reserved=M)
    lines = [
        line(first, 0, CUDA0, entry),
        line(first + 1, 4, CUDA1, body, slot_1=stats(K, 3, runs=4)),
    ]
    (merged,) = records_of((in_one_line.__code__, 4, lines)).functions[0].lines
    assert (merged.line, merged.hits, merged.charged) == (first + 1, 4, ("cuda:0", "cuda:1"))
    target = merged.stats["target"]
    assert (target.runs, target.net_sum, target.gross_bytes) == (4, -K, 5)
    assert (target.active_peak, target.reserved_peak, target.extra) == (9 * K, M, (1, 2))
    assert (merged.stats["cuda:0"].active_peak, merged.stats["cuda:0"].net_sum) == (9 * K, 3)
    assert merged.stats["cuda:1"] == Stats(*body)


@pytest.mark.parametrize("entry, body", [((7, 8), None), (None, (7, 8)), ((7, 1), (2, 8))])
def test_extra_columns_of_merged_lines_are_maxima(entry, body):
    first = in_one_line.__code__.co_firstlineno
    lines = [
        line(first, 0, CUDA0, stats(extra=entry)),
        line(first + 1, 1, CUDA0, stats(extra=body)),
    ]
    (merged,) = records_of((in_one_line.__code__, 1, lines)).functions[0].lines
    assert merged.stats["target"].extra == (7, 8)


def test_undecorated_one_liner_keeps_what_the_engine_merged():
    function = lambda: 1  # noqa: E731
    first = function.__code__.co_firstlineno
    records = records_of((function.__code__, 5, [line(first, 5, CUDA0, stats(K, K))]))
    frame = records.to_dataframe(columns=["hits", "net"])
    assert frame.iloc[0].tolist()[:2] == [5, K]


# --- functions and names -------------------------------------------------------------------------


def test_source_is_taken_from_the_caller_if_it_has_it():
    code = work.__code__
    records = records_of((code, 0, []), sources={id(code): (FIRST, ["def work(n):", "  old"])})
    assert records.functions[0].source == ("def work(n):", "  old")


def test_a_source_that_was_missing_at_registration_stays_missing():
    code = work.__code__
    records = records_of((code, 1, [line(FIRST + 1, 1, CUDA0, stats())]), sources={id(code): None})
    assert records.functions[0].source is None


def test_no_source_leaves_line_numbers_without_text():
    code = code_named("f")
    records = records_of((code, 1, [line(2, 1, CUDA0, stats(K, K))]))
    frame = records.to_dataframe(columns=["net"])
    assert list(frame.index) == [("f", 1), ("f", 2)]
    assert frame["code"].tolist() == ["", ""]
    assert frame["net"].tolist() == [pd.NA, K]


def test_lines_beyond_the_source_keep_their_values():
    records = records_of((work.__code__, 1, [line(FIRST + 90, 1, CUDA0, stats(K, 5))]))
    frame = records.to_dataframe(columns=["net", "hits"])
    assert frame.loc[("work", FIRST + 90)].tolist()[:2] == [5, 1]
    assert frame.loc[("work", FIRST + 90)]["code"] == ""


def test_names_are_looked_up_by_identity():
    one, two = code_named("main", "a.py"), code_named("main", "b.py")
    assert one == two  # as in two modules with the same text at the same line
    names = {id(one): ("main", "a"), id(two): ("main", "b")}
    records = records_of(
        (one, 1, [line(2, 1, CUDA0, stats(1, 1))]),
        (two, 1, [line(2, 9, CUDA0, stats(2, 2))]),
        names=names,
    )
    frame = records.to_dataframe(columns="hits")
    assert frame.loc[("a.main", 2), "hits"] == 1
    assert frame.loc[("b.main", 2), "hits"] == 9
    assert records.to_dataframe(one)["hits"].tolist() == [0, 1]
    assert records.to_dataframe("b.main")["hits"].tolist() == [0, 9]
    assert records.to_dataframe("main").equals(records.to_dataframe())


def test_names_by_code_object():
    code = code_named("f")
    assert records_of((code, 0, []), names={code: "A.f"}).functions[0].qualname == "A.f"
    assert records_of((code, 0, [])).functions[0].qualname == "f"


def test_titles_are_longer_only_where_they_clash():
    entries = [
        (code_named("f", "/x/one.py"), "m"),
        (code_named("f", "/x/one.py", "    return\n"), "m"),
        (code_named("f", "/y/one.py"), "m"),
        (code_named("f", "/y/two.py"), "m"),
        (code_named("f", "/y/two.py"), "n"),
        (code_named("g", "/y/two.py"), "n"),
    ]
    names = {id(code): (code.co_name, module) for code, module in entries}
    records = records_of(*((code, 0, []) for code, _ in entries), names=names)
    assert list(records.to_dataframe().index.unique("function")) == [
        "m.f (/x/one.py:1) #1",
        "m.f (/x/one.py:1) #2",
        "m.f (/y/one.py:1)",
        "m.f (two.py:1)",
        "n.f",
        "g",
    ]


class Kinds:
    def method(self):
        return 1

    @classmethod
    def of_class(cls):
        return 1

    @staticmethod
    def static():
        return 1

    @property
    def both(self):
        return 1

    @both.setter
    def both(self, value):
        return None

    @functools.cached_property
    def cached(self):
        return 1

    partial_method = functools.partialmethod(method)

    def __call__(self):
        return 1


class Module:
    """As ``nn.Module``: ``__call__`` leads to ``forward``."""

    def forward(self):
        return 1

    __call__ = functools.partial(forward, None)


def wrapper_of(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@functools.lru_cache
def cached():
    return 1


@pytest.mark.parametrize(
    "asked, code",
    [
        (work, work.__code__),
        (work.__code__, work.__code__),
        (wrapper_of(wrapper_of(work)), work.__code__),
        (functools.partial(functools.partial(work, 1)), work.__code__),
        (cached, cached.__wrapped__.__code__),
        (Kinds().method, Kinds.method.__code__),
        (Kinds.of_class, Kinds.of_class.__func__.__code__),
        (vars(Kinds)["of_class"], Kinds.of_class.__func__.__code__),
        (vars(Kinds)["static"], Kinds.static.__code__),
        (Kinds.both, Kinds.both.fset.__code__),
        (Kinds.cached, Kinds.cached.func.__code__),
        (vars(Kinds)["partial_method"], Kinds.method.__code__),
        (Kinds(), Kinds.__call__.__code__),
        (Module(), Module.forward.__code__),
    ],
)
def test_functions_are_found_through_what_wraps_them(asked, code):
    records = records_of((code, 0, []), (other.__code__, 0, []))
    found = records.to_dataframe(asked).index.unique("function")
    assert list(found) == [records.functions[0].qualname]
    loaded = LineRecords.from_json(records.to_json())
    assert list(loaded.to_dataframe(asked).index.unique("function")) == list(found)


def test_a_list_of_functions_in_the_order_asked_for():
    records = records_of((work.__code__, 0, []), (other.__code__, 0, []))
    found = records.to_dataframe(["other", work, other]).index.unique("function")
    assert list(found) == ["other", "work"]
    assert records.to_dataframe([]).empty


class Endless:
    def __getattr__(self, name):
        return Endless()


@pytest.mark.parametrize("asked", ["worx", len, 5, "", [work, "worx"], Endless(), int])
def test_an_unknown_function_lists_the_known(asked):
    records = records_of((work.__code__, 0, []), (other.__code__, 0, []))
    with pytest.raises(ValueError, match="was profiled.*Known functions: work, other"):
        records.to_dataframe(asked)


def test_an_unknown_function_names_the_nearest():
    with pytest.raises(ValueError, match="no function 'worx' was profiled. Did you mean 'work'"):
        records_of((work.__code__, 0, [])).to_text("worx")
    with pytest.raises(ValueError, match="none was added"):
        records_of().to_text("work")


# --- JSON ----------------------------------------------------------------------------------------

names_ = st.text(st.characters(codec="utf-8"), max_size=8)
devices_ = st.sampled_from(["target", "cpu", "cuda:0", "cuda:11"])
integers_ = st.integers(-(2**63), 2**63 - 1)
extras_ = st.none() | st.tuples(st.none() | integers_, st.none() | integers_)
stretches_ = st.lists(st.builds(Stretch, *[integers_] * 4), max_size=2).map(tuple)
histories_ = st.builds(History, integers_, integers_, stretches_, stretches_, integers_, st.booleans())
stats_ = st.builds(Stats, *[integers_] * 13, extras_, st.none() | histories_, st.none() | integers_)
lines_ = st.builds(
    LineRecord,
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.lists(devices_, max_size=3).map(tuple),
    st.dictionaries(devices_, stats_, max_size=3),
)
functions_ = st.builds(
    FunctionRecord,
    names_,
    st.none() | names_,
    names_ | st.just("not\udc80utf8.py"),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.none() | st.lists(names_, max_size=3).map(tuple),
    st.integers(0, 2**63 - 1),
    st.lists(lines_, max_size=3).map(tuple),
)
records_ = st.builds(
    LineRecords,
    st.lists(functions_, max_size=3).map(tuple),
    st.just(("num_ooms", "allocation.all.peak")),
    st.sampled_from([None, "all", "cpu", "cuda:3"]),
    st.sampled_from([None, "cuda:0"]),
    st.lists(names_, max_size=2).map(tuple),
)


@given(records_)
@settings(deadline=None, max_examples=150)
def test_json_round_trip_is_exact(records):
    text = records.to_json()
    assert LineRecords.from_json(text) == records
    assert LineRecords.from_json(text).to_json() == text
    assert text.isascii()


def test_json_of_a_snapshot_round_trips_through_a_file(tmp_path):
    records = made_up_records(snapshot_of_work(), device="cuda:0", notes=["a note"])
    path = tmp_path / "report.json"
    records.to_json(path)
    document = json.loads(path.read_text("utf-8"))
    assert document["version"] == 1
    for source in (path, str(path)):
        assert LineRecords.from_json(source) == records
    assert LineRecords.from_json(path).to_text(work) == records.to_text()


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"version": 2}', "version 2.*newer"),
        ('{"version": "1"}', "no version"),
        ('{"version": true}', "no version"),
        ("{}", "no version"),
        ('{"version": 1}', "damaged.*fields"),
        ("{not json", "no JSON"),
        ('{"version": 1, "fields": ["speed"], "functions": 3}', "damaged"),
    ],
)
def test_what_is_no_report_is_a_clear_error(text, message, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(text)
    for source in (text, path):
        with pytest.raises(ValueError, match=message):
            LineRecords.from_json(source)


def test_truncated_json_is_an_error():
    text = made_up_records(snapshot_of_work()).to_json()
    with pytest.raises(ValueError, match="not a report"):
        LineRecords.from_json(text[: len(text) // 2])


def test_records_can_be_copied_and_pickled():
    records = made_up_records(snapshot_of_work())
    for twin in (pickle.loads(pickle.dumps(records)), copy.deepcopy(records)):
        assert twin == records
        assert twin.to_text(work) == records.to_text()


# --- files ---------------------------------------------------------------------------------------

WRITERS = [LineRecords.to_json, LineRecords.to_csv, LineRecords.to_html]


@pytest.mark.parametrize("write", WRITERS)
def test_files_are_the_text_and_nothing_else_is_left(write, tmp_path):
    records = made_up_records(snapshot_of_work())
    path = tmp_path / "report"
    assert write(records, path) == write(records)
    assert path.read_bytes().decode("utf-8") == write(records)
    assert os.listdir(tmp_path) == ["report"]


@pytest.mark.parametrize("write", WRITERS)
def test_an_interrupted_write_leaves_the_earlier_file(write, tmp_path, monkeypatch):
    path = tmp_path / "report"
    path.write_text("earlier")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(made_up_records(snapshot_of_work()), path)
    assert path.read_text() == "earlier"
    assert os.listdir(tmp_path) == ["report"]


def test_permissions_and_links_are_kept(tmp_path):
    records = made_up_records(snapshot_of_work())
    path, link = tmp_path / "report", tmp_path / "link"
    path.write_text("earlier")
    path.chmod(0o640)
    link.symlink_to(path)
    records.to_csv(link)
    assert link.is_symlink() and path.read_text() == records.to_csv()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    fresh, opened = tmp_path / "fresh", tmp_path / "opened"
    records.to_csv(fresh)
    opened.touch()
    assert fresh.stat().st_mode == opened.stat().st_mode


def test_a_device_is_written_to_directly():
    made_up_records(snapshot_of_work()).to_csv(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_missing_folder_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        made_up_records(snapshot_of_work()).to_json(tmp_path / "none" / "report")


def test_csv_reads_back_as_the_frame(tmp_path):
    records = made_up_records(snapshot_of_work())
    path = tmp_path / "report.csv"
    records.to_csv(path, columns=["net", "hits"])
    frame = pd.read_csv(path, index_col=["function", "line"])
    assert frame.loc[("work", FIRST + 3), "net"] == 80 * K
    assert frame["hits"].tolist() == [0, 1, 0, 2, 0]
    assert frame["code"].tolist() == records.to_dataframe()["code"].tolist()


def test_neither_torch_nor_pandas_is_imported_for_a_text_report():
    script = (
        "import sys\n"
        "from pytorch_memlab_c.line_profiler.records import LineRecords\n"
        "from pytorch_memlab_c.line_profiler.display import RecordsDisplay\n"
        "def f(): pass\n"
        "from types import SimpleNamespace\n"
        "never = SimpleNamespace(code=f.__code__, calls=0, lines=[])\n"
        "records = LineRecords.from_snapshot([never])\n"
        "assert 'f: never called' in str(RecordsDisplay(records))\n"
        "print([m for m in ('torch', 'pandas', 'jinja2') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
