"""What reports about memory snapshots say: made-up traces whose figures are known. No torch."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import made_up_traces as made_up
import pytest
from made_up_traces import K, M, Trace

from pytorch_memlab_c.snapshot import Snapshot
from pytorch_memlab_c.snapshot.lines import growth_of
from pytorch_memlab_c.snapshot.places import kind_of_file
from pytorch_memlab_c.snapshot.text import duration, name_of

LEAK = Snapshot.from_object(made_up.snapshot(made_up.leak()))


def held(moment):
    return {name_of(entry.place): (entry.bytes, entry.blocks) for entry in moment.holders}


def test_the_peak_the_failure_and_the_end_by_line() -> None:
    (device,) = LEAK.report().devices
    peak, failure, end = device.moments
    nobody = "no Python stack: backward threads, C++, or not recorded"
    assert held(peak) == {
        "log.py:7 in remember": (128 * M, 64),
        "model.py:10 in build": (32 * M, 1),
        "model.py:20 in forward": (8 * M, 1),
        nobody: (4 * M, 1),
    }
    assert held(end) == held(failure) == {"log.py:7 in remember": (128 * M, 64), "model.py:10 in build": (32 * M, 1)}
    assert sum(size for size, _ in held(peak).values()) == peak.levels.active == device.peaks["active"][0] == 172 * M
    assert (failure.asked, failure.device_free, failure.at.line) == (1 << 30, 100 * M, 20)


def test_lines_over_the_recording() -> None:
    (device,) = LEAK.report().devices
    lines = {name_of(line.place): line for line in device.lines}
    forward = lines["model.py:20 in forward"]
    assert (forward.allocated, forward.times, forward.peak, forward.live) == (64 * 8 * M, 64, 8 * M, 0)
    assert forward.median_life == pytest.approx(0.006)
    remember = lines["log.py:7 in remember"]
    assert (remember.live, remember.live_blocks, remember.before, remember.median_life) == (128 * M, 64, 0, None)
    assert remember.growth is not None and remember.growth.each_time == 2 * M
    assert [name for name, line in lines.items() if line.growth] == ["log.py:7 in remember"]


def test_functions_have_what_they_call_and_the_tree_adds_up() -> None:
    peak = LEAK.report(("peak",)).devices[0].moments[0]
    functions = {entry.place.function: entry.bytes for entry in peak.functions if entry.place.kind == "line"}
    assert functions == {"main": 168 * M, "remember": 128 * M, "build": 32 * M, "forward": 8 * M}
    roots = {name_of(call.place): call for call in peak.tree}
    assert sum(call.bytes for call in peak.tree) == peak.levels.active
    assert [name_of(call.place) for call in roots["train.py:31 in main"].calls] == ["log.py:7 in remember"]


@pytest.mark.parametrize(
    ("frames", "skip", "name"),
    [
        ("user", (), "log.py:7 in remember"),
        ("torch", (), "x.py:1 in clone"),
        ("all", (), "x.py:1 in clone"),
        ("user", ("log",), "train.py:31 in main"),
    ],
)
def test_the_frame_that_names_a_stack_can_be_chosen(frames: str, skip: tuple[str, ...], name: str) -> None:
    end = LEAK.report(("end",), frames=frames, skip=skip).devices[0].moments[0]
    assert held(end)[name] == (128 * M, 64)


def test_native_frames_name_a_stack_only_if_all_are_wanted() -> None:
    trace = Trace()
    native = ("??:0 torch::unwind::unwind()", "??:0 at::empty_cuda()", "TensorFactories.cpp:0 at::add")
    trace.allocate(2 * M, *native, "/job/a.py:4 f")
    snapshot = Snapshot.from_object(made_up.snapshot(trace))
    names = {
        kind: held(snapshot.report(("end",), frames=kind).devices[0].moments[0]) for kind in ("user", "torch", "all")
    }
    assert list(names["user"]) == list(names["torch"]) == ["a.py:4 in f"]
    assert list(names["all"]) == ["at::empty_cuda() (??)"]
    with pytest.raises(ValueError, match="frames is one of user, torch, all"):
        snapshot.report(frames="some")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/job/train.py", "user"),
        ("/home/me/torch_things/train.py", "user"),
        ("/env/lib/python3.12/site-packages/torch/nn/functional.py", "torch"),
        ("/home/me/pytorch/torch/nn/functional.py", "torch"),
        ("/env/lib/python3.12/site-packages/transformers/trainer.py", "installed"),
        ("/usr/lib/python3.12/runpy.py", "installed"),
        ("<frozen runpy>", "installed"),
        ("<pytorch_memlab_c wrapper>", "installed"),
        ("/tmp/torchinductor_me/ab/cab.py", "installed"),
        ("/tmp/ipykernel_12/34.py", "user"),
        ("<stdin>", "user"),
        ("??", "native"),
        ("CUDACachingAllocator.cpp", "native"),
    ],
)
def test_whose_code_a_file_is(name: str, kind: str) -> None:
    assert kind_of_file(name) == kind


def test_a_ring_that_lost_its_start() -> None:
    """What lived before is found from the segments; who made what is gone meanwhile is not known."""
    trace = made_up.leak()
    whole = Snapshot.from_object(made_up.snapshot(trace)).devices[0]
    for drop in (1, 2, 3, 10, 100, len(trace.events)):
        snapshot = Snapshot.from_object(made_up.snapshot(trace, drop=drop))
        (device,) = snapshot.devices
        assert device.start == whole.levels_at(drop), drop
        assert device.peaks["end"].levels == whole.peaks["end"].levels
        if drop < len(trace.events):
            assert "were there before the recording" in snapshot.to_text() or drop < 2


def test_before_the_recording_has_its_own_row() -> None:
    trace = Trace()
    old = trace.allocate(6 * M, "/job/a.py:1 f")
    trace.allocate(2 * M, "/job/a.py:2 f")
    drop = len(trace.events)
    trace.free(old)
    snapshot = Snapshot.from_object(made_up.snapshot(trace, drop=drop))
    peak = snapshot.report(("peak",)).devices[0].moments[0]
    assert held(peak) == {"before the recording": (6 * M, 1), "a.py:2 in f": (2 * M, 1)}


def test_moments_by_event_time_and_part() -> None:
    (device,) = LEAK.report(("#2", "0.004s", "50%", "end")).devices
    numbers = [moment.number for moment in device.moments]
    assert numbers == [2, 5, round(device.events / 2), device.events]
    assert [moment.levels.active for moment in device.moments[:2]] == [32 * M, 40 * M]
    for wrong in ("noon", "#999999999", "-1s", ""):
        with pytest.raises(ValueError, match="moment|events"):
            LEAK.report((wrong,))


def test_without_times_events_are_the_time() -> None:
    trace = made_up.leak(20)
    for event in trace.events:
        del event["time_us"]
    snapshot = Snapshot.from_object(made_up.snapshot(trace))
    text = snapshot.to_text()
    assert "6 events" in text and " s " not in text.partition("By line")[0]
    with pytest.raises(ValueError, match="no times"):
        snapshot.report(("1s",))


def test_without_stacks_there_are_sizes_and_segments_alone() -> None:
    trace = made_up.leak(4)
    for event in trace.events:
        event["frames"] = []
    for block in trace.live.values():
        block["frames"] = []
    text = Snapshot.from_object(made_up.snapshot(trace)).to_text()
    assert "no stacks were recorded: sizes and segments alone" in text
    assert "Reserved and not active when memory ran out" in text


# ---- reserved and not allocated ----


def fragmented() -> Snapshot:
    """Ten segments of 20 MiB, each kept by a small block at its start; then a new one that is empty."""
    trace = Trace()
    segments = []
    for number in range(11):
        address = made_up.BASE + number * 32 * M
        trace.event("segment_alloc", address, 20 * M)
        trace.event("alloc", address, 2 * M, made_up.frames(f"/job/cache.py:{number % 2 + 1} keep"))
        trace.event("alloc", address + 2 * M, 18 * M, made_up.frames("/job/a.py:9 big"))
        trace.event("free_requested", address + 2 * M, 18 * M)
        trace.event("free_completed", address + 2 * M, 18 * M)
        last = number == 10
        if last:
            trace.event("free_requested", address, 2 * M)
            trace.event("free_completed", address, 2 * M)
        blocks = [
            {"address": address, "size": 2 * M, "requested_size": 2 * M, "state": "active_allocated", "frames": []},
            {"address": address + 2 * M, "size": 18 * M, "requested_size": 0, "state": "inactive", "frames": []},
        ]
        free = [{"address": address, "size": 20 * M, "requested_size": 0, "state": "inactive", "frames": []}]
        segment = trace.segment(address, 20 * M)
        segments.append({**segment, "blocks": free if last else blocks})
    return Snapshot.from_object({"segments": segments, "device_traces": [trace.events]})


def test_what_is_reserved_and_free_and_what_pins_it() -> None:
    (reserve,) = fragmented().report(("end",)).devices[0].reserve
    (pool,) = reserve.pools
    assert (pool.reserved, pool.active, pool.free) == (220 * M, 20 * M, 200 * M)
    assert (pool.segments, pool.empty_segments, pool.empty_bytes, pool.largest_free) == (11, 1, 20 * M, 20 * M)
    assert len(reserve.pinned) == 8
    assert all((pin.size, pin.active, pin.largest_free) == (20 * M, 2 * M, 18 * M) for pin in reserve.pinned)
    assert {name_of(pin.holders[0].place) for pin in reserve.pinned} == {"cache.py:1 in keep", "cache.py:2 in keep"}
    assert reserve.expandable == 40 * M  # ten blocks of 2 and one of 18, in pages of 20
    text = fragmented().to_text()
    assert "expandable segments would have reserved 40.00M by then: 180.00M less" in text
    assert "a segment of 20.00M is kept by 2.00M of cache.py:1 in keep" in text


# ---- growth ----


@pytest.mark.parametrize(
    ("lows", "grows"),
    [
        ([i * K for i in range(16)], True),
        ([100 * K] * 4 + [100 * K + i * K for i in range(12)], True),
        ([0, *[M] * 15], False),  # set-up
        ([min(i, 8) * K for i in range(16)], False),  # a cache that fills
        ([i * K for i in range(15)] + [0], False),  # given back
        ([i // 2 * K for i in range(16)], True),  # kept seldom
        ([0] * 16, False),
    ],
)
def test_growth_goes_on_to_the_end(lows: list[int], grows: bool) -> None:
    growth = growth_of(lows, 100, 10.0)
    assert (growth is not None) == grows
    if growth:
        assert growth.bytes == lows[-1] - lows[3]


def test_few_allocations_are_no_growth() -> None:
    assert growth_of([i * K for i in range(16)], 3, 10.0) is None


# ---- forms ----


def test_source_text_is_shown_and_marked_when_it_is_newer(tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("import torch\nx = torch.ones(3)\n")
    trace = Trace(start=int((source.stat().st_mtime + 100) * 1e6))
    trace.allocate(2 * M, f"{source}:2 main")
    snapshot = Snapshot.from_object(made_up.snapshot(trace))
    assert "x = torch.ones(3)\n" in snapshot.to_text()
    os.utime(source, (source.stat().st_mtime + 5000,) * 2)
    from pytorch_memlab_c.snapshot import source_text

    source_text._modified.cache_clear()
    assert "x = torch.ones(3)  (the file is newer than the snapshot)" in snapshot.to_text()


def test_json_has_all_of_it(tmp_path: Path) -> None:
    LEAK.to_json(tmp_path / "leak.json")
    document = json.loads((tmp_path / "leak.json").read_text())
    assert (document["version"], document["kind"], document["tool"]) == (1, "snapshot", "pytorch_memlab_c")
    (device,) = document["devices"]
    peak = device["moments"][0]
    assert peak["levels"]["active"] == 172 * M == sum(entry["bytes"] for entry in peak["holders"])
    assert peak["holders"][0]["place"] == {"kind": "line", "file": "/job/log.py", "line": 7, "function": "remember"}


def test_data_frames(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    frame = LEAK.to_dataframe().set_index("function")
    assert frame.loc["remember", "peak"] == frame.loc["remember", "at_peak"] == 128 * M
    assert frame.attrs["peaks"] == {"cuda:0": 172 * M} == {"cuda:0": frame["at_peak"].sum()}
    allocations = LEAK.allocations_dataframe()
    assert len(allocations) == 1 + 64 * 3
    live = allocations[allocations["freed"].isna()]
    assert live["size"].sum() == (32 + 128) * M
    assert set(live["function"]) == {"build", "remember"}
    forward = allocations[allocations["function"] == "forward"]
    assert (forward["freed_seconds"] - forward["made_seconds"]).median() == pytest.approx(0.006)


def test_the_timeline_adds_up_at_every_point() -> None:
    (device,) = LEAK.report(("peak",), timeline=True).devices
    timeline = device.timeline
    assert max(timeline.active) == 172 * M
    for i, moment in enumerate(timeline.moments):
        levels = LEAK.devices[0].levels_at(moment)
        assert (timeline.allocated[i], timeline.active[i], timeline.reserved[i]) == tuple(levels)
        assert sum(values[i] for _, values in timeline.layers) == timeline.active[i]


def test_durations_are_readable() -> None:
    shown = [duration(seconds) for seconds in (None, 2e-6, 0.0025, 1.5, 600, 7500)]
    assert shown == ["", "2 us", "2.5 ms", "1.50 s", "10.0 min", "2 h 05 min"]


def test_the_page_escapes_what_is_in_the_file(tmp_path: Path) -> None:
    trace = Trace()
    trace.allocate(2 * M, "/job/<script>alert(1)</script>.py:1 </script><b>f")
    Snapshot.from_object(made_up.snapshot(trace)).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert" not in page and "</script><b>" not in page
    assert page.count("<script") == page.count("</script>") == 2


def test_a_snapshot_can_be_loaded_while_it_is_written(tmp_path: Path) -> None:
    """The whole file is read at once: what is appended later changes nothing."""
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps(made_up.snapshot(made_up.leak(2))) + b"rest that is none of it")
    assert Snapshot.load(path).devices[0].peaks["end"].levels.active == 36 * M
