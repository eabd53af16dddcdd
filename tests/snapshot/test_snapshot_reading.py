"""Files that are memory snapshots, and files that are not: made up, no torch."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import pickle
import pickletools
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import made_up_traces as made_up
import pytest
from made_up_traces import M, Trace

from pytorch_memlab_c.snapshot import Snapshot, SnapshotError


def load(tmp_path: Path, data: bytes) -> Snapshot:
    (tmp_path / "made.pickle").write_bytes(data)
    return Snapshot.load(tmp_path / "made.pickle")


def figures(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    return [(d.name, d.events_count, d.peaks, d.allocations.tolist()) for d in snapshot.devices]


LEAK = made_up.snapshot(made_up.leak())


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_all_protocols_read_alike(tmp_path: Path, protocol: int) -> None:
    got = figures(load(tmp_path, pickle.dumps(LEAK, protocol)))
    assert got == figures(Snapshot.from_object(LEAK))
    assert got[0][2]["active"].levels.active == (32 + 63 * 2 + 8 + 2 + 4) * M
    assert got[0][2]["end"].levels.active == (32 + 64 * 2) * M


def test_a_pickle_without_memo_or_with_an_optimized_one_reads_alike(tmp_path: Path) -> None:
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, 4)
    pickler.fast = True
    pickler.dump(LEAK)
    assert figures(load(tmp_path, stream.getvalue())) == figures(Snapshot.from_object(LEAK))
    optimized = pickletools.optimize(pickle.dumps(LEAK, 4))
    assert figures(load(tmp_path, optimized)) == figures(Snapshot.from_object(LEAK))


def test_compressed_files_are_read_by_what_they_are(tmp_path: Path) -> None:
    data = pickle.dumps(LEAK)
    assert figures(load(tmp_path, gzip.compress(data))) == figures(Snapshot.from_object(LEAK))
    with pytest.raises(SnapshotError, match="no pickle"):
        load(tmp_path, bz2.compress(data))


def zstandard(data: bytes) -> bytes:
    try:
        from compression import zstd

        return zstd.compress(data)
    except ImportError:
        return pytest.importorskip("zstandard", reason="zstandard is not installed").compress(data)


def test_zstandard_files_are_read(tmp_path: Path) -> None:
    data = pickle.dumps(LEAK)
    assert figures(load(tmp_path, zstandard(data))) == figures(Snapshot.from_object(LEAK))
    frames = zstandard(data[:7000]) + zstandard(data[7000:])
    assert figures(load(tmp_path, frames)) == figures(Snapshot.from_object(LEAK))


def test_zstandard_is_read_as_a_stream() -> None:
    """A gigabyte in a file of a few kilobytes: refused as no snapshot, with 300 MB of addresses to spare."""
    text = b"\x80\x04]" + b"N" * (1 << 30)
    code = """if True:
        import resource, sys
        from pytorch_memlab_c.snapshot import Snapshot, SnapshotError
        try:
            import zstandard
        except ImportError:
            from compression import zstd
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20),) * 2)
        try:
            Snapshot.load("-")
        except SnapshotError as error:
            print(error)
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    run = subprocess.run([sys.executable, "-c", code], input=zstandard(text), capture_output=True)
    assert b"not a memory snapshot: far more other data" in run.stdout, run.stderr


@pytest.mark.parametrize("part", [0.01, 0.3, 0.6, 0.99])
def test_a_zstandard_file_that_is_cut_off_says_so(tmp_path: Path, part: float) -> None:
    data = zstandard(pickle.dumps(LEAK))
    with pytest.raises(SnapshotError, match="cut off"):
        load(tmp_path, data[: max(5, int(len(data) * part))])


def test_a_damaged_zstandard_file_says_so(tmp_path: Path) -> None:
    data = zstandard(pickle.dumps(LEAK))
    with pytest.raises(SnapshotError, match="damaged compressed data|cannot be read"):
        load(tmp_path, data[:4] + b"\xff" * 200)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard])
def test_something_else_that_is_compressed_gets_one_clear_line(tmp_path: Path, compress: Any) -> None:
    for data, message in (
        (b"hello, world", "no pickle"),
        (b"", "is empty|nothing was compressed"),
        (b"PK\x03\x04 a zip file", "no pickle"),
        (pickle.dumps({"a": 1}), "without segments"),
    ):
        with pytest.raises(SnapshotError, match=message):
            load(tmp_path, compress(data))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads Zstandard itself")
def test_zstandard_without_a_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(SnapshotError, match="pip install zstandard"):
        load(tmp_path, b"\x28\xb5\x2f\xfd rest")


# ---- what is no snapshot ----


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/never-to-be-made",)


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("model/data.pkl", "x")
    return stream.getvalue()


BAD = {
    "the file is empty": b"",
    "names posix.system": pickle.dumps(Bomb(), 2),
    r"names posix\.system .*nothing is run": pickle.dumps(Bomb(), 4),
    "names collections.OrderedDict": pickle.dumps(__import__("collections").OrderedDict(a=1), 2),
    "no pickle of protocol 2 to 5": b"hello, world",
    "no pickle of protocol": pickle.dumps(LEAK, 0),
    "a zip file, as torch.save": zipped(),
    "without segments and device_traces": pickle.dumps({"state": [1, 2, 3]}),
    "without segments and device_trace": pickle.dumps([1, 2, 3]),
    "without segments and device_": pickle.dumps("text"),
    "cut off after": pickle.dumps(LEAK)[:5000],
    "do not fit together": b"\x80\x04e.",
    "is no plain data": pickle.dumps({1, 2}),
    "far more other data": b"\x80\x04" + b"](" * 100 + b"e" * 100 + b".",
    "compressed file is cut off": gzip.compress(pickle.dumps(LEAK))[:400],
    "cannot be read|damaged compressed": gzip.compress(pickle.dumps(LEAK))[:200] + b"\xff" * 2000,
}


@pytest.mark.parametrize("message", BAD)
def test_other_files_get_one_clear_line(tmp_path: Path, message: str) -> None:
    with pytest.raises(SnapshotError, match=message) as caught:
        load(tmp_path, BAD[message])
    assert "\n" not in str(caught.value)
    assert not Path("/tmp/never-to-be-made").exists()


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    data = pickle.dumps(made_up.snapshot(made_up.leak(2)))
    for length in range(1, len(data), 7):
        with pytest.raises(SnapshotError, match="cut off"):
            load(tmp_path, data[:length])


def test_objects_that_are_no_snapshots() -> None:
    for thing in (None, {"a": 1}, [1], object(), {"segments": 3}, {"device_traces": [3]}):
        with pytest.raises(SnapshotError, match="not a memory snapshot"):
            Snapshot.from_object(thing)


def test_nested_lists_of_any_length_take_no_memory() -> None:
    """2 GB of them: read in a process with 400 MB of addresses to spare."""
    code = """if True:
        import resource
        from pytorch_memlab_c import _native
        def readinto(view, state=[0]):
            pattern = PATTERN * (len(view) // len(PATTERN) + 1)
            view[:] = pattern[: len(view)]
            if not state[0]:
                view[:2] = b"\\x80\\x04"
            state[0] += len(view)
            return len(view) if state[0] < 2 << 30 else 0
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20),) * 2)
        try:
            _native.SnapshotData(readinto)
        except ValueError as error:
            print(error.args[0])
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    for pattern in (b"]", b"]\x94", b"](", b"]a", b"K\x01\x85"):
        run = subprocess.run(
            [sys.executable, "-c", code.replace("PATTERN", repr(pattern))], capture_output=True, text=True
        )
        assert run.stdout.strip() in ("too much", "damaged"), (pattern, run.stdout, run.stderr)


def test_damage_at_random_is_an_error_or_a_snapshot() -> None:
    whole = bytearray(pickle.dumps(made_up.snapshot(made_up.leak(6))))
    random.seed(5)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(random.randint(1, 6)):
            data[random.randrange(len(data))] = random.choice([random.randrange(256), *b"]}(ue.ah\x94"])
        try:
            snapshot = Snapshot(io.BytesIO(data).readinto, "damaged")
            snapshot.to_text()
        except SnapshotError:
            pass


# ---- what a snapshot may have, and may lack ----


def test_memory_snapshot_alone_is_sizes_and_segments() -> None:
    trace = made_up.leak(3)
    snapshot = Snapshot.from_object(made_up.snapshot(trace)["segments"])
    (device,) = snapshot.devices
    assert device.peaks["end"].levels.active == (32 + 3 * 2) * M
    assert device.events_count == 0
    text = snapshot.to_text()
    assert "no events were recorded" in text and "log.py:7 in remember" in text


def test_a_later_version_is_read_and_what_is_new_is_said() -> None:
    trace = Trace()
    trace.allocate(2 * M, "/job/a.py:1 f")
    trace.event("teleport", 0, 0, colour="red")
    snapshot = Snapshot.from_object(made_up.snapshot(trace, graphs=[{"a": (1, 2.5, None)}]))
    assert snapshot.devices[0].peaks["active"].levels.active == 2 * M
    (note,) = snapshot.notes
    assert all(name in note for name in ("teleport", "colour", "graphs"))


def test_nothing_recorded_says_so() -> None:
    assert "nothing was recorded" in Snapshot.from_object({"segments": [], "device_traces": [[], []]}).to_text()


def test_several_devices_and_the_host_are_apart() -> None:
    first, second = made_up.leak(2), Trace(device=1)
    second.allocate(6 * M, "/job/b.py:2 g")
    host = Trace(device=-1)
    host.allocate(4 * M, "/job/c.py:3 pin")
    whole = made_up.snapshot(first, second)
    whole["host_traces"] = host.events
    whole["host_segments"] = [host.segment(address, size) for address, size in host.segments.items()]
    snapshot = Snapshot.from_object(whole)
    ends = {device.name: device.peaks["end"].levels.active for device in snapshot.devices}
    assert ends == {"cuda:0": 36 * M, "cuda:1": 6 * M, "host (pinned)": 4 * M}
    assert [d.name for d in snapshot.report(device="cuda:1").devices] == ["cuda:1"]
    assert [d.name for d in snapshot.report(device="host").devices] == ["host (pinned)"]
    with pytest.raises(ValueError, match="it has cuda:0, cuda:1"):
        snapshot.report(device="cuda:7")


def test_skipped_actions_are_made_up_for() -> None:
    """`skip_actions`: without completed frees each ends when it is asked for; without requests, when it is
    completed."""
    for skipped in ("free_requested", "free_completed"):
        whole = made_up.snapshot(made_up.leak(4))
        whole["device_traces"] = [[e for e in t if e["action"] != skipped] for t in whole["device_traces"]]
        (device,) = Snapshot.from_object(whole).devices
        assert device.peaks["end"].levels == device.in_file
        assert device.peaks["active"].levels.active == (32 + 3 * 2 + 8 + 2 + 4) * M
        assert not device.lost


def test_xpu_snapshots_are_named_so() -> None:
    whole = made_up.snapshot(made_up.leak(1), allocator_settings={"PYTORCH_XPU_ALLOC_CONF": ""})
    assert Snapshot.from_object(whole).devices[0].name == "xpu:0"
