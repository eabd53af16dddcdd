"""Names of columns: which are valid, which need statistics, which are bytes."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pytorch_memlab_c.data.columns import (
    DEFAULT_COLUMNS,
    DEFAULT_CPU_COLUMNS,
    check_columns,
    default_columns,
    extra_columns,
    is_bytes,
    require_recorded,
    short_headings,
    valid_columns,
)


def fake_torch(initialised, memory_stats):
    cuda = SimpleNamespace(is_initialized=lambda: initialised, memory_stats=memory_stats)
    return SimpleNamespace(cuda=cuda)


@pytest.mark.parametrize(
    "column",
    [
        *DEFAULT_COLUMNS,
        *DEFAULT_CPU_COLUMNS,
        "runs",
        "net.first",
        "net.max",
        "net.last",
        "allocated",
        "allocations",
        "tensor_bytes.current",
        "active_bytes.all.current",
        "allocated_bytes.all.current",
        "allocation.small_pool.freed",
        "requested_bytes.large_pool.allocated",
        "inactive_split.all.peak",
        "oversize_allocations.current",
        "oversize_segments.peak",
        "num_alloc_retries",
        "max_split_size",
    ],
)
def test_valid_column(column):
    assert check_columns(column) == (column,)
    assert column in valid_columns()


def test_columns_keep_their_order_without_duplicates():
    wanted = ["hits", "net", "hits", "active_bytes.all.peak"]
    assert check_columns(wanted) == ("hits", "net", "active_bytes.all.peak")
    assert check_columns(iter(wanted)) == ("hits", "net", "active_bytes.all.peak")


def test_wrong_column_names_itself_the_nearest_and_all_valid_ones():
    with pytest.raises(ValueError) as caught:
        check_columns(["hits", "active_byte.all.peak"])
    message = str(caught.value)
    assert "unknown column 'active_byte.all.peak'" in message
    assert "Did you mean 'active_bytes.all.peak'" in message
    assert message.endswith(", ".join(valid_columns()))


@pytest.mark.parametrize("column", ["", "peak", "active_bytes", "active_bytes.all", 3, None, ()])
def test_what_is_no_column(column):
    with pytest.raises(ValueError, match="unknown column"):
        check_columns([column])


def test_extra_columns_are_those_the_events_do_not_carry():
    wanted = (*DEFAULT_COLUMNS, *DEFAULT_CPU_COLUMNS, "allocation.all.peak", "num_ooms")
    assert extra_columns(wanted) == ("allocation.all.peak", "num_ooms")
    assert extra_columns("reserved_bytes.large_pool.peak") == ("reserved_bytes.large_pool.peak",)
    with pytest.raises(ValueError, match="'nothing'"):
        extra_columns(["nothing"])


def test_keys_of_the_running_torch_are_valid_too(monkeypatch):
    torch = fake_torch(True, lambda: {"brand_new.all.peak": 0, "num_ooms": 0})
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert check_columns("brand_new.all.peak") == ("brand_new.all.peak",)
    assert extra_columns("brand_new.all.peak") == ("brand_new.all.peak",)
    assert valid_columns().count("num_ooms") == 1


def test_cuda_is_not_initialised_for_the_sake_of_a_column(monkeypatch):
    asked = []
    torch = fake_torch(False, lambda: asked.append(1) or {"brand_new": 0})
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(ValueError, match="brand_new"):
        check_columns("brand_new")
    assert asked == []


def test_a_backend_without_statistics_leaves_the_static_list(monkeypatch):
    def broken():
        raise RuntimeError("no statistics here")

    without = valid_columns()
    monkeypatch.setitem(sys.modules, "torch", fake_torch(True, broken))
    assert valid_columns() == without


def test_bytes_columns():
    sizes = ["net", "net.total", "net.first", "allocated", "tensor_bytes.peak", "inactive_split_bytes.all.peak"]
    counts = ["hits", "runs", "allocations", "allocation.all.peak", "num_ooms", "max_split_size"]
    assert [is_bytes(column) for column in sizes] == [True] * len(sizes)
    assert [is_bytes(column) for column in counts] == [False] * len(counts)


def test_defaults_by_device():
    assert default_columns(has_cpu=False, has_cuda=True) == DEFAULT_COLUMNS
    assert default_columns(has_cpu=True, has_cuda=False) == DEFAULT_CPU_COLUMNS
    both = default_columns(has_cpu=True, has_cuda=True)
    assert set(both) == {*DEFAULT_COLUMNS, *DEFAULT_CPU_COLUMNS}
    assert both.index("tensor_bytes.peak") < both.index("net.last")
    assert short_headings(both) == ("peak", "reserved.peak", "cpu.peak", "net/run", "runs")
    assert short_headings(DEFAULT_CPU_COLUMNS) == ("peak", "net/run", "runs")


def test_a_column_that_was_not_recorded_says_how_to_record_it():
    assert require_recorded("num_ooms", ["num_ooms"]) == ("num_ooms",)
    with pytest.raises(ValueError) as caught:
        require_recorded(["hits", "num_ooms"], ["allocation.all.peak"])
    message = str(caught.value)
    assert "'num_ooms' was not recorded" in message
    assert "LineProfiler(..., columns=['num_ooms'])" in message
    assert "@profile(columns=['num_ooms'])" in message
