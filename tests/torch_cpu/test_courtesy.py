"""`Courtesy` without a GPU: the host's memory, the progress bar, and a process in which nothing can be lent."""

from __future__ import annotations

import sys
import types

import pytest
from run_program import run_program

from pytorch_memlab_c import Courtesy, YieldedMemory
from pytorch_memlab_c.courtesy import host_memory
from pytorch_memlab_c.courtesy.progress import CopyProgress

MIB = 1 << 20


class TestWithoutCuda:
    def test_nothing_is_lent_and_nothing_imported(self, tmp_path):
        run = run_program(
            """
            import sys
            from program_support import report
            from pytorch_memlab_c import Courtesy
            with Courtesy() as courtesy:
                lent = courtesy.yield_memory()
            courtesy.restore()
            report(lent=str(lent), bytes=courtesy.lent_bytes, torch="torch" in sys.modules)
            """,
            tmp_path,
        )
        assert run.values == {"lent": "lent nothing (0 storages)", "bytes": 0, "torch": False}

    def test_cpu_tensors_stay(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        tensor = torch.arange(4.0)
        with Courtesy() as courtesy:
            assert tensor.sum() == 6 and courtesy.lent_bytes == 0
        assert Courtesy().yield_memory() == YieldedMemory()


def machine(folder, available_kib, groups, membership):
    """A made-up /proc and /sys/fs/cgroup; `groups`: {path: {file: text}}."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable:   {available_kib} kB\n")
    (folder / "proc" / "self" / "cgroup").write_text(membership)
    for path, files in groups.items():
        (folder / "cgroup" / path).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / "cgroup" / path / name).write_text(text)
    return host_memory.available_bytes(folder / "proc", folder / "cgroup")


class TestHostMemory:
    def test_the_machines(self, tmp_path):
        assert machine(tmp_path, 2048, {}, "0::/\n") == 2 * MIB

    def test_a_group_has_less(self, tmp_path):
        group = {
            "memory.max": f"{3 * MIB}\n",
            "memory.current": f"{2 * MIB}\n",
            "memory.stat": "anon 7\ninactive_file 4096\n",
        }
        assert machine(tmp_path, 1 << 20, {"job/step": group}, "0::/job/step\n") == MIB + 4096

    def test_the_group_above_binds_too(self, tmp_path):
        above = {"memory.max": f"{MIB}\n", "memory.current": f"{2 * MIB}\n"}
        inner = {"memory.max": "max\n", "memory.current": "0\n"}
        assert machine(tmp_path, 1 << 20, {"job": above, "job/step": inner}, "0::/job/step\n") == 0

    def test_version_one_of_groups(self, tmp_path):
        group = {"memory.limit_in_bytes": f"{5 * MIB}\n", "memory.usage_in_bytes": f"{MIB}\n"}
        membership = "7:cpu,cpuacct:/x\n4:memory:/job\n"
        assert machine(tmp_path, 1 << 20, {"memory/job": group}, membership) == 4 * MIB

    def test_not_known(self, tmp_path):
        assert host_memory.available_bytes(tmp_path, tmp_path) is None

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
    def test_this_machine(self):
        available = host_memory.available_bytes()
        assert available is not None and available > 0


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Bar:
    made: list[Bar] = []

    def __init__(self, **options):
        self.options, self.updates, self.closed = options, [], False
        Bar.made.append(self)

    def update(self, nbytes):
        self.updates.append(nbytes)

    def close(self):
        self.closed = True


@pytest.fixture
def tqdm(monkeypatch):
    Bar.made = []
    package, auto = types.ModuleType("tqdm"), types.ModuleType("tqdm.auto")
    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", package)
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)


def copy(seconds_a_piece, pieces=10, **options):
    clock = Clock()
    progress = CopyProgress(pieces * MIB, "lending", clock=clock, **options)
    for _ in range(pieces):
        clock.now += seconds_a_piece
        progress.advance(MIB)
    progress.close()


class TestProgress:
    def test_a_long_copy_has_a_bar(self, tqdm):
        copy(0.2)
        (bar,) = Bar.made
        assert (bar.options["total"], bar.options["initial"], bar.options["desc"]) == (10 * MIB, MIB, "lending")
        assert bar.updates == [MIB] * 9 and bar.closed

    def test_a_short_one_has_none(self, tqdm):
        copy(0.09)
        assert Bar.made == []

    def test_none_if_not_wanted(self, tqdm):
        copy(0.2, wanted=False)
        assert Bar.made == []

    def test_without_tqdm(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "tqdm", None)
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
        copy(0.2)

    def test_a_bar_that_cannot_be_drawn_stops_nothing(self, tqdm, monkeypatch):
        def closed(self, nbytes):
            raise ValueError("I/O operation on closed file")

        monkeypatch.setattr(Bar, "update", closed)
        copy(0.2)
        assert len(Bar.made) == 1

    def test_the_real_bar(self, capsys):
        pytest.importorskip("tqdm", reason="tqdm is not installed")
        copy(0.2)
        assert "lending" in capsys.readouterr().err
