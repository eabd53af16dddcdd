"""The simulated GPU. What touches CUDA runs in a process of its own (simulated_gpu_process.py)."""

from __future__ import annotations

import importlib.util
import sys

import pytest
import simulated_gpu_process as processes

from pytorch_memlab_c import simulate
from pytorch_memlab_c.simulate import availability, configuration


def _reason_to_skip() -> str | None:
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed"
    if not sys.platform.startswith("linux"):
        return "the simulated GPU needs Linux"
    if availability.cuda_version_of_build() is None:
        return "this PyTorch is a CPU-only build"
    return None


_SKIP = _reason_to_skip()


def simcuda(test):
    return pytest.mark.simcuda(pytest.mark.skipif(_SKIP is not None, reason=_SKIP or "")(test))


@pytest.fixture(scope="module")
def gpu():
    """Runs code where two simulated A100 are enabled and torch is imported."""
    zygote = processes.Zygote("a100-80gb", 2)
    yield zygote
    zygote.close()


# ---- parameters: no torch needed ----


class TestParameters:
    @pytest.mark.parametrize(
        ("text", "size"),
        [
            ("24 GB", 24 << 30),
            ("24GiB", 24 << 30),
            (" 1.5 GB ", 3 << 29),
            ("512 MB", 512 << 20),
            (1 << 30, 1 << 30),
        ],
    )
    def test_memory(self, text, size):
        assert configuration.parse_memory(text) == size

    @pytest.mark.parametrize(
        "text", ["", "24", "GB", "24 G", "-1 GB", "24 TB", "1e3 GB", "24 GB!", None, 1.5, True, 0, "0 GB", 1 << 60]
    )
    def test_wrong_memory_is_a_value_error(self, text):
        with pytest.raises(ValueError, match="memory="):
            configuration.parse_memory(text)

    def test_unknown_preset_lists_those_there_are(self):
        with pytest.raises(ValueError, match="unknown GPU 'h900'.*t4-16gb.*h100-80gb"):
            simulate.enable("h900")

    @pytest.mark.parametrize(
        ("short", "full"), [("rtx4090", "rtx4090-24gb"), (" H100 ", "h100-80gb"), ("l4", "l4-24gb")]
    )
    def test_a_short_name_stands_for_the_only_such_card(self, short, full):
        found = configuration.devices_asked_for(short, 1, None, None)
        assert found == configuration.devices_asked_for(full, 1, None, None)

    @pytest.mark.parametrize("short", ["a100", "", "-", "h", "h100-"])
    def test_a_short_name_of_several_cards_or_none(self, short):
        with pytest.raises(ValueError, match="several GPUs: name one of a100-40gb, a100-80gb|unknown GPU"):
            simulate.enable(short)

    @pytest.mark.parametrize("count", [0, 9, -1, True, 1.0, "2"])
    def test_wrong_count(self, count):
        with pytest.raises(ValueError, match="from 1 to 8"):
            simulate.enable("t4-16gb", count=count)

    @pytest.mark.parametrize("capability", [8, (8,), (8, 9, 0), (1, 0), (8, 10), ("8", "9"), (8.0, 9)])
    def test_wrong_capability(self, capability):
        with pytest.raises(ValueError, match="capability="):
            simulate.enable(memory="24 GB", capability=capability)

    def test_preset_and_memory_exclude_each_other(self):
        with pytest.raises(ValueError, match="not both"):
            simulate.enable("t4-16gb", memory="24 GB")

    def test_nothing_given(self):
        with pytest.raises(ValueError, match="give a preset"):
            simulate.enable()

    @pytest.mark.parametrize(
        ("text", "model", "count"),
        [
            ("h100-80gb", simulate.presets()["h100-80gb"], 1),
            ("h100-80gb:2", simulate.presets()["h100-80gb"], 2),
            ("24GB", configuration.custom_model("24GB", None), 1),
            ("24 GB@8.9:8", configuration.custom_model("24GB", (8, 9)), 8),
        ],
    )
    def test_environment_value(self, text, model, count):
        assert configuration.parse_environment(text) == configuration.Configuration(model, count)

    @pytest.mark.parametrize(
        "text", ["h900", "h100-80gb:", "h100-80gb:x", "h100-80gb:9", "24GB@8", "24@8.9", ":2", "@8.9"]
    )
    def test_wrong_environment_value(self, text):
        with pytest.raises(ValueError):
            configuration.parse_environment(text)

    def test_presets_are_named_by_size_and_labelled(self):
        for name, model in simulate.presets().items():
            box = int(name.split("-")[1].removesuffix("gb")) << 30
            assert 0.9 * box < model.total_memory <= box
            assert model.name.startswith("Simulated ")

    def test_not_enabled(self):
        assert not simulate.is_enabled()
        assert simulate.describe() == "no simulated GPU"


# ---- enabling ----


class TestEnable:
    @simcuda
    def test_importing_the_module_does_not_import_torch(self):
        processes.fresh("import sys, pytorch_memlab_c.simulate; assert 'torch' not in sys.modules")

    @simcuda
    @pytest.mark.parametrize("first", ["import torch", "import pytorch_memlab_c"])
    def test_before_and_after_import_torch(self, first):
        processes.fresh(
            f"""
            {first}
            from pytorch_memlab_c import simulate
            simulate.enable("h100-80gb", count=2)
            assert simulate.is_enabled()
            assert simulate.describe().startswith("simulated: 2 x Simulated NVIDIA H100 80GB HBM3, 79.11 GiB each")
            import torch
            assert torch.cuda.is_available() and torch.cuda.device_count() == 2
            a = torch.arange(1000.0)
            assert torch.equal(a.cuda().to("cuda:1").cpu(), a)
            torch.nn.Conv2d(3, 8, 3).cuda()(torch.zeros(2, 3, 9, 9, device="cuda")).sum().backward()
            torch.linalg.inv(torch.zeros(4, 4, device="cuda:1"))
            assert torch.cuda.memory_allocated(1) > 4096
            """
        )

    @simcuda
    def test_prints_nothing(self):
        result = processes.fresh(
            "from pytorch_memlab_c import simulate; simulate.enable('t4-16gb'); import torch; torch.zeros(1).cuda()"
        )
        assert result.stdout == "" and result.stderr == ""

    @simcuda
    @pytest.mark.parametrize("count", [1, 8])
    def test_number_of_devices(self, count):
        processes.fresh(
            f"""
            from pytorch_memlab_c import simulate
            simulate.enable(memory="2 GB", capability=(8, 9), count={count})
            import torch
            assert torch.cuda.device_count() == {count}
            for i in range({count}):
                properties = torch.cuda.get_device_properties(i)
                assert properties.name == "Simulated GPU 2 GB" and properties.total_memory == 2 << 30
                assert torch.cuda.get_device_capability(i) == (8, 9)
                assert torch.zeros(1, device=f"cuda:{{i}}").device.index == i
            """
        )

    @simcuda
    def test_twice(self):
        processes.fresh(
            """
            from pytorch_memlab_c import simulate
            simulate.enable("t4-16gb")
            simulate.enable("t4-16gb", count=1)
            for other in ({"preset": "t4-16gb", "count": 2}, {"preset": "l4-24gb"}):
                try:
                    simulate.enable(**other)
                except RuntimeError as error:
                    assert "simulates already: simulated: 1 x Simulated NVIDIA T4" in str(error), error
                else:
                    raise AssertionError(other)
            import torch
            simulate.enable("t4-16gb")
            torch.zeros(1).cuda()
            simulate.enable("t4-16gb")
            """
        )

    @simcuda
    def test_too_late_is_an_error(self):
        processes.fresh(
            """
            import torch
            torch.cuda.is_initialized = lambda: True
            from pytorch_memlab_c import simulate
            try:
                simulate.enable("t4-16gb")
            except RuntimeError as error:
                assert "in use in this process already" in str(error)
            else:
                raise AssertionError
            """
        )

    @simcuda
    def test_after_the_devices_were_asked_for(self):
        # PyTorch keeps the number of devices: if it was another one, enable() must say so.
        processes.fresh(
            """
            import torch
            before = torch.cuda.device_count() if torch.cuda.is_available() else 0
            from pytorch_memlab_c import simulate
            try:
                simulate.enable("t4-16gb", count=8)
            except RuntimeError as error:
                assert before != 8 and f"it found {before}" in str(error), error
                assert not simulate.is_enabled()
            else:
                assert before == 8
            """
        )

    def test_cpu_only_build(self, tmp_path):
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text("from . import version\n")
        (tmp_path / "torch" / "version.py").write_text(
            "from typing import Optional\n__version__ = '2.9.0+cpu'\ncuda: Optional[str] = None\n"
        )
        paths = {"PYTHONPATH": f"{tmp_path}:{processes.REPOSITORY}"}
        for first in ("pass", "import torch"):
            result = processes.fresh(
                f"""
                {first}
                from pytorch_memlab_c import simulate
                try:
                    simulate.enable("t4-16gb")
                except RuntimeError as error:
                    print(error)
                """,
                **paths,
            )
            assert "CPU-only build" in result.stdout and "CUDA build of PyTorch" in result.stdout

    def test_unknown_cuda_version(self):
        with pytest.raises(simulate.SimulationUnavailable, match="built for CUDA 11.8.*12 and 13"):
            availability.check_build("11.8")

    def test_not_linux(self, monkeypatch):
        monkeypatch.setattr(sys, "platform", "darwin")
        with pytest.raises(RuntimeError, match="needs Linux"):
            simulate.enable("t4-16gb")

    @simcuda
    @pytest.mark.parametrize("torch_first", [True, False])
    def test_after_the_profiler_was_used(self, torch_first):
        # Both rewrite what libc10_cuda calls.
        processes.fresh(
            f"""
            if {torch_first}:
                import torch
            from pytorch_memlab_c import LineProfiler, simulate

            def work(device):
                x = torch.ones(1 << 20).to(device, copy=True)
                if device == "cuda":
                    stream = torch.cuda.Stream()
                    x.record_stream(stream)
                del x

            if {torch_first}:
                with LineProfiler(work, device="cpu"):
                    work("cpu")
            else:
                from pytorch_memlab_c.engine import following
                following.prepare()
            simulate.enable("a100-80gb")
            import torch
            with LineProfiler(work, device="cuda") as profiler:
                work("cuda")
            table = profiler.to_dataframe()
            assert table["active_bytes.all.peak"].max() == 4 << 20, table
            assert torch.cuda.memory_stats()["active_bytes.all.current"] == 4 << 20
            assert not torch.empty(1 << 20, device="cuda").cpu().any()
            """
        )

    @simcuda
    def test_looking_for_torch_without_importing_it(self):
        processes.fresh(
            """
            import importlib.util
            from pytorch_memlab_c import simulate
            simulate.enable("t4-16gb")
            assert importlib.util.find_spec("torch").loader is not None
            import torch
            assert not torch.backends.cuda.cudnn_sdp_enabled()
            assert torch.zeros(3, device="cuda").tolist() == [0, 0, 0]
            """
        )


# ---- the environment variable ----


class TestEnvironment:
    @simcuda
    def test_any_process(self, tmp_path):
        changes = processes.with_start_up_file(tmp_path)
        result = processes.fresh(
            """
            import sys
            assert "torch" not in sys.modules and "pytorch_memlab_c" not in sys.modules
            import torch
            assert torch.cuda.device_count() == 2
            assert torch.cuda.get_device_name(1) == "Simulated NVIDIA H100 80GB HBM3"
            torch.zeros(10).cuda(1)
            """,
            PYTORCH_MEMLAB_SIMULATE="h100-80gb:2",
            **changes,
        )
        assert result.stdout == "" and result.stderr == ""

    @simcuda
    def test_same_request_in_code(self, tmp_path):
        changes = processes.with_start_up_file(tmp_path)
        for order in (("import torch", "ENABLE"), ("ENABLE", "import torch")):
            code = "\n".join(order).replace(
                "ENABLE", "from pytorch_memlab_c import simulate; simulate.enable(memory='24GB', capability=(8, 9))"
            )
            processes.fresh(
                code + "\nassert torch.cuda.get_device_name() == 'Simulated GPU 24 GB'",
                PYTORCH_MEMLAB_SIMULATE="24GB@8.9",
                **changes,
            )

    def test_unset_costs_nothing(self, tmp_path):
        changes = processes.with_start_up_file(tmp_path)
        processes.fresh("import sys; assert '_pytorch_memlab_c_startup' not in sys.modules", **changes)

    def test_wrong_value_stops_the_import_of_torch(self, tmp_path):
        changes = processes.with_start_up_file(tmp_path)
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text("")
        result = processes.fresh("print('started')", PYTORCH_MEMLAB_SIMULATE="h100:x", **changes)
        assert result.stdout == "started\n" and result.stderr == ""
        result = processes.fresh(
            "try:\n    import torch\nexcept ImportError:\n    pass",
            check=False,
            PYTORCH_MEMLAB_SIMULATE="h900",
            **changes,
        )
        assert result.returncode == 1
        assert "ValueError: PYTORCH_MEMLAB_SIMULATE=h900: unknown GPU 'h900'; there are: t4-16gb" in result.stderr

    def test_cpu_only_build_says_so_and_goes_on(self, tmp_path):
        changes = processes.with_start_up_file(tmp_path)
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text("value = 1\n")
        (tmp_path / "torch" / "version.py").write_text("cuda = None\n")
        result = processes.fresh("import torch; print(torch.value)", PYTORCH_MEMLAB_SIMULATE="t4-16gb", **changes)
        assert result.stdout == "1\n"
        assert (
            result.stderr.count("\n") == 1
            and "PYTORCH_MEMLAB_SIMULATE has no effect: this PyTorch is a CPU-only" in result.stderr
        )

    @simcuda
    @pytest.mark.parametrize("backend", ["gloo", "nccl"])
    def test_spawned_workers(self, tmp_path, backend):
        changes = processes.with_start_up_file(tmp_path)
        (tmp_path / "work.py").write_text(
            "import os, torch\n"
            "import torch.distributed as dist\n"
            "from torch.nn.parallel import DistributedDataParallel\n"
            "def work(rank):\n"
            "    torch.cuda.set_device(rank)\n"
            f"    dist.init_process_group('{backend}', init_method='file://' + os.path.abspath('store'), "
            "rank=rank, world_size=2)\n"
            "    model = DistributedDataParallel(torch.nn.Linear(100, 100).cuda(), device_ids=[rank])\n"
            "    model(torch.zeros(5, 100, device='cuda')).sum().backward()\n"
            "    assert torch.cuda.memory_allocated(rank) >= 2 * 40960\n"
            "    assert torch.cuda.memory_allocated(1 - rank) == 0\n"
            "    dist.destroy_process_group()\n"
            "if __name__ == '__main__':\n"
            "    torch.multiprocessing.spawn(work, nprocs=2)\n"
        )
        processes.fresh(
            "import runpy; runpy.run_path('work.py', run_name='__main__')",
            folder=tmp_path,
            PYTORCH_MEMLAB_SIMULATE="h100-80gb:2",
            **changes,
        )

    @simcuda
    def test_visible_devices(self):
        code = """
        from pytorch_memlab_c import simulate
        simulate.enable("t4-16gb", count=4)
        import torch
        count = torch.cuda.device_count()
        print(count, [torch.cuda.get_device_properties(i).pci_bus_id for i in range(count)])
        """
        for visible, expected in (("3,1", "2 [4, 2]"), ("", "0 []"), ("2", "1 [3]"), ("0,7,1", "1 [1]")):
            assert processes.fresh(code, CUDA_VISIBLE_DEVICES=visible).stdout.strip() == expected


# ---- the device as PyTorch sees it ----


@simcuda
class TestDevice:
    def test_properties(self, gpu):
        gpu.run(
            """
            properties = torch.cuda.get_device_properties(1)
            assert properties.name == torch.cuda.get_device_name(1) == "Simulated NVIDIA A100-SXM4-80GB"
            assert (properties.major, properties.minor) == (8, 0)
            assert properties.total_memory == simulate.presets()["a100-80gb"].total_memory
            assert properties.multi_processor_count == 108 and properties.warp_size == 32
            assert properties.max_threads_per_multi_processor == 2048
            assert properties.shared_memory_per_block_optin == 163 << 10
            assert properties.L2_cache_size == 40 << 20
            assert len({torch.cuda.get_device_properties(i).uuid for i in range(2)}) == 2
            assert torch.cuda.mem_get_info() == (properties.total_memory,) * 2
            assert torch.cuda.can_device_access_peer(0, 1)
            """
        )

    def test_nothing_is_initialized_before_use(self, gpu):
        gpu.run("assert not torch.cuda.is_initialized() and torch.cuda.is_available()")

    def test_streams_and_events(self, gpu):
        gpu.run(
            """
            stream = torch.cuda.Stream(priority=-1)
            assert stream.priority == -1 and stream != torch.cuda.Stream()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            with torch.cuda.stream(stream):
                assert torch.cuda.current_stream() == stream
                start.record()
                end.record()
            stream.wait_event(end)
            stream.synchronize(); end.synchronize(); torch.cuda.synchronize()
            assert stream.query() and end.query()
            assert 0 <= start.elapsed_time(end) < 1000
            torch.cuda.current_stream().wait_stream(stream)
            """
        )

    def test_event_without_timing(self, gpu):
        gpu.run(
            """
            first, second = torch.cuda.Event(), torch.cuda.Event()
            first.record(); second.record()
            try:
                first.elapsed_time(second)
            except (RuntimeError, ValueError):
                pass
            else:
                raise AssertionError
            torch.zeros(1).cuda()
            """
        )

    def test_threads(self, gpu):
        gpu.run(
            """
            import threading
            problems = []
            def work(index):
                try:
                    torch.cuda.set_device(index % 2)
                    for i in range(100):
                        a = torch.full((1000 + 17 * i,), float(index))
                        b = a.cuda(non_blocking=True)
                        assert b.device.index == index % 2 and torch.equal(b.cpu(), a)
                        if i % 25 == 0:
                            torch.cuda.empty_cache()
                except BaseException as error:
                    problems.append(error)
            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            [t.start() for t in threads]; [t.join() for t in threads]
            assert not problems, problems
            assert torch.cuda.memory_allocated(0) == torch.cuda.memory_allocated(1) == 0
            """
        )

    def test_profiler(self, gpu):
        gpu.run(
            """
            with torch.profiler.profile(profile_memory=True) as profile:
                torch.zeros(1000, device="cuda") + 1
            assert profile.key_averages()
            """
        )


@simcuda
class TestCopies:
    @pytest.mark.parametrize("count", [1, 1000, (1 << 20) + 3])
    def test_round_trip(self, gpu, count):
        gpu.run(
            f"""
            a = torch.randint(0, 255, ({count},), dtype=torch.uint8)
            b = a.cuda()
            assert torch.equal(b.cpu(), a) and torch.equal(b.to("cuda:1").cpu(), a)
            assert torch.equal(b.clone().cpu(), a) and torch.equal(b[1:].cpu(), a[1:])
            b.copy_(a)
            assert torch.equal(b.cpu(), a)
            """
        )

    def test_zeros_take_no_memory(self, gpu):
        gpu.run(
            """
            import resource
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            a = torch.zeros(60 << 30, dtype=torch.uint8, device="cuda")
            b = a.to("cuda:1")
            b[1 << 30:2 << 30].zero_()
            assert a[-1].item() == b[-1].item() == 0
            assert torch.cuda.memory_allocated(1) == 60 << 30
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10
            """
        )

    def test_a_new_tensor_does_not_read_an_old_one(self, gpu):
        # GradScaler and others read flags from tensors that only kernels have filled.
        gpu.run(
            """
            old = torch.ones(1000).cuda()
            address = old.data_ptr()
            del old
            new = torch.empty(1000, device="cuda")
            assert new.data_ptr() == address and not new.cpu().any()
            """
        )

    def test_pinned_memory(self, gpu):
        gpu.run(
            """
            a = torch.randn(10000)
            assert not a.is_pinned()
            p = a.pin_memory()
            assert p.is_pinned() and p[5000:].is_pinned() and torch.equal(p, a)
            assert torch.empty(10, pin_memory=True).is_pinned()
            d = p.cuda(non_blocking=True)
            back = torch.empty(10000, pin_memory=True)
            back.copy_(d, non_blocking=True)
            torch.cuda.synchronize()
            assert torch.equal(back, a)
            """
        )

    def test_registered_memory(self, gpu):
        gpu.run(
            """
            runtime = torch.cuda.cudart()
            a = torch.zeros(10000)
            assert int(runtime.cudaHostRegister(a.data_ptr(), 40000, 0)) == 0
            assert a.is_pinned()
            assert int(runtime.cudaHostRegister(a.data_ptr(), 40000, 0)) == 712
            assert int(runtime.cudaHostUnregister(a.data_ptr())) == 0
            assert not a.is_pinned()
            """
        )

    def test_data_loader(self, gpu):
        gpu.run(
            """
            from torch.utils.data import DataLoader, TensorDataset
            data = TensorDataset(torch.arange(64.0).reshape(16, 4))
            for workers in (0, 2):
                for i, (batch,) in enumerate(DataLoader(data, batch_size=4, pin_memory=True, num_workers=workers)):
                    assert batch.is_pinned()
                    assert torch.equal(batch.cuda(non_blocking=True).cpu(), data.tensors[0][4 * i: 4 * i + 4])
            """
        )

    def test_values_of_kernels(self, gpu):
        gpu.run(
            """
            a = torch.tensor([1, 0, 2], device="cuda")
            assert a.tolist() == [1, 0, 2]
            assert a.nonzero().shape[1] == 1
            float(a.float().sum()); a.unique(); a[a > 0]; repr(a); a.sort(); torch.randperm(10, device="cuda")
            assert not torch.isnan(a).any().item()
            """
        )


# ---- the allocator: the figures hardware gives ----


@simcuda
class TestAllocator:
    def test_linear_layers(self, gpu):
        gpu.run(
            """
            layers = [torch.nn.Linear(100, 100).cuda() for _ in range(3)]
            assert torch.cuda.memory_allocated() == 3 * 40960
            assert torch.cuda.memory_reserved() == 2 << 20
            del layers
            assert torch.cuda.memory_allocated() == 0 and torch.cuda.memory_reserved() == 2 << 20
            """
        )

    def test_device_memory_follows(self, gpu):
        gpu.run(
            """
            total = torch.cuda.mem_get_info()[1]
            a = torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
            assert torch.cuda.mem_get_info() == (total - (30 << 20), total)
            assert torch.cuda.mem_get_info(1) == (total, total)
            del a
            torch.cuda.empty_cache()
            assert torch.cuda.memory_reserved() == 0 and torch.cuda.mem_get_info() == (total, total)
            """
        )

    def test_record_stream(self, gpu):
        gpu.run(
            """
            stream = torch.cuda.Stream()
            x = torch.empty(1 << 20, device="cuda")
            with torch.cuda.stream(stream):
                x.record_stream(stream)
            del x
            stats = torch.cuda.memory_stats()
            assert stats["allocated_bytes.all.current"] == 0
            assert stats["active_bytes.all.current"] == 4 << 20
            y = torch.empty(1, device="cuda")
            assert torch.cuda.memory_stats()["active_bytes.all.current"] == 512
            """
        )

    def test_out_of_memory_and_recovery(self, gpu):
        gpu.run(
            """
            keep = torch.empty(50 << 30, dtype=torch.uint8, device="cuda")
            for _ in range(2):
                try:
                    torch.empty(40 << 30, dtype=torch.uint8, device="cuda")
                except torch.OutOfMemoryError as error:
                    message = str(error)
                else:
                    raise AssertionError
            assert "Tried to allocate 40.00 GiB. GPU 0 has a total capacity of 79.25 GiB" in message
            assert "of which 29.25 GiB is free." in message
            assert "this process has 50.00 GiB memory in use" in message
            assert "50.00 GiB is allocated by PyTorch" in message
            assert torch.cuda.memory_stats()["num_ooms"] == 2
            del keep
            again = torch.empty(79 << 30, dtype=torch.uint8, device="cuda")
            assert torch.cuda.memory_allocated() == 79 << 30
            """
        )

    def test_memory_fraction(self, gpu):
        gpu.run(
            """
            torch.cuda.set_per_process_memory_fraction(0.25)
            torch.empty(19 << 30, dtype=torch.uint8, device="cuda")
            try:
                torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError:
                pass
            else:
                raise AssertionError
            """
        )

    def test_memory_history(self, gpu):
        gpu.run(
            """
            torch.cuda.memory._record_memory_history()
            a = torch.empty(1000, device="cuda")
            snapshot = torch.cuda.memory._snapshot()
            assert snapshot["segments"][0]["total_size"] == 2 << 20
            assert any(event["action"] == "alloc" and event["size"] == 4000 for event in snapshot["device_traces"][0])
            """
        )

    @pytest.mark.parametrize("setting", ["expandable_segments:True", "backend:cudaMallocAsync", "max_split_size_mb:32"])
    def test_other_allocators(self, setting):
        result = processes.fresh(
            """
            from pytorch_memlab_c import simulate
            simulate.enable("a100-80gb", count=2)
            import torch
            a = [torch.rand(3 << 20).cuda(i % 2) for i in range(10)]
            b = [x.to("cuda:1").cpu() for x in a]
            assert all(torch.equal(x.cpu(), y) for x, y in zip(a, b))
            assert torch.cuda.memory_allocated() == torch.cuda.memory_allocated(1) == 5 * (12 << 20)
            free, total = torch.cuda.mem_get_info()
            assert total - free == torch.cuda.memory_reserved()
            try:
                torch.empty(100 << 30, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError:
                pass
            else:
                raise AssertionError
            big = torch.empty(70 << 30, dtype=torch.uint8, device="cuda")
            del a, b, big
            torch.cuda.empty_cache()
            assert torch.cuda.mem_get_info() == (total, total)
            """,
            PYTORCH_CUDA_ALLOC_CONF=setting,
        )
        assert "not supported" not in result.stderr

    def test_graph_capture(self, gpu):
        gpu.run(
            """
            layer = torch.nn.Linear(256, 256).cuda()
            x = torch.zeros(64, 256, device="cuda")
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                layer(x).sum().backward()
            torch.cuda.current_stream().wait_stream(side)
            before = torch.cuda.memory_allocated()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                assert torch.cuda.is_current_stream_capturing()
                y = layer(x)
            assert not torch.cuda.is_current_stream_capturing()
            assert torch.cuda.memory_allocated() >= before + y.numel() * 4  # cuBLAS's workspace is allocated anew
            graph.replay(); graph.replay()
            torch.cuda.synchronize()
            del y, graph
            torch.cuda.empty_cache()
            """
        )


# ---- models ----


@simcuda
class TestModels:
    def test_transformer_with_amp_and_adamw(self, gpu):
        gpu.run(
            """
            layer = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True).cuda()
            optimizer = torch.optim.AdamW(layer.parameters())
            scaler = torch.amp.GradScaler()
            parameters = sum(p.numel() for p in layer.parameters())
            for _ in range(2):
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = layer(torch.randn(4, 64, 256, device="cuda")).sum()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
            assert len(optimizer.state) == len(list(layer.parameters()))  # the step was not skipped
            assert all(p.grad is None for p in layer.parameters())
            float(loss.detach())
            assert torch.cuda.memory_allocated() > 3 * 4 * parameters
            """
        )

    def test_attention_embedding_and_norms(self, gpu):
        gpu.run(
            """
            import torch.nn.functional as F
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                q, k, v = (torch.randn(2, 4, 128, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
                F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
                assert q.grad.shape == q.shape
            embedding = torch.nn.Embedding(1000, 64).cuda()
            out = torch.nn.LayerNorm(64).cuda()(embedding(torch.randint(0, 1000, (8, 16)).cuda()))
            F.cross_entropy(out.flatten(0, 1), torch.zeros(128, dtype=torch.long, device="cuda")).backward()
            torch.nn.BatchNorm2d(8).cuda()(torch.zeros(2, 8, 4, 4, device="cuda")).sum().backward()
            torch.nn.functional.softmax(torch.zeros(5, 5, device="cuda"), -1)
            """
        )

    @pytest.mark.parametrize("kind", ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d"])
    def test_convolutions(self, gpu, kind):
        gpu.run(
            f"""
            layer = torch.nn.{kind}(3, 8, 3, padding=1).cuda()
            size = [2, 3] + [16] * {kind[-2]}
            layer(torch.randn(size, device="cuda", requires_grad=True)).sum().backward()
            assert layer.weight.grad.shape == layer.weight.shape
            """
        )

    @pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
    def test_recurrent_layers(self, gpu, kind):
        gpu.run(
            f"""
            for bidirectional in (False, True):
                layer = torch.nn.{kind}(16, 32, num_layers=2, bidirectional=bidirectional).cuda()
                out, state = layer(torch.randn(5, 3, 16, device="cuda"))
                assert out.shape == (5, 3, 64 if bidirectional else 32)
                out.sum().backward()
                assert all(p.grad is not None for p in layer.parameters())
            """
        )

    def test_linear_algebra_fft_and_sparse(self, gpu):
        gpu.run(
            """
            a = torch.randn(8, 8, device="cuda")
            torch.linalg.svd(a); torch.linalg.qr(a); torch.linalg.eigh(a); torch.linalg.inv(a)
            torch.linalg.cholesky(a, upper=False); torch.linalg.solve(a, a)
            torch.linalg.lstsq(a, a); torch.linalg.det(a)
            torch.fft.rfft2(a); torch.fft.ifft(torch.fft.fft(a))
            s = torch.eye(8).to_sparse_csr().cuda()
            assert (s @ a).shape == (8, 8)
            """
        )

    def test_fork_before_use(self, gpu):
        # The zygote itself is the test of a fork after enable(); here one more, from a fork that has not used CUDA.
        gpu.run(
            """
            import os
            pid = os.fork()
            if pid == 0:
                torch.zeros(1).cuda()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            torch.zeros(1).cuda()
            """
        )

    def test_fork_after_use_is_pytorchs_error(self, gpu):
        gpu.run(
            """
            import os
            keep = torch.ones(100).cuda()
            pid = os.fork()
            if pid == 0:
                try:
                    torch.zeros(1).cuda()
                except RuntimeError as error:
                    os._exit(0 if "forked subprocess" in str(error) else 1)
                os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert keep.cpu().all()
            """
        )
