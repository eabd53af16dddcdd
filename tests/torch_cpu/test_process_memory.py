"""`measure_peak_memory` on CPU tensors (spec.md 6), and what all its devices have in common."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from program_support import allocate, free, level
from run_program import run_program

from pytorch_memlab_c import _native, measure_peak_memory
from pytorch_memlab_c.engine import following
from pytorch_memlab_c.process import peak

torch = pytest.importorskip("torch")
MEGABYTE = 1_000_000


def delta(workload, device="cpu"):
    return measure_peak_memory(workload, device=device)["delta_bytes"]


class TestFigures:
    @pytest.mark.parametrize(
        "device", ["cpu", "cpu:0", torch.device("cpu"), torch.device("cpu", 0), torch.ones(1).device]
    )
    def test_all_fields_and_one_type(self, device):
        """Case 49: whatever is given, the same kind of answer."""
        result = measure_peak_memory(lambda: torch.empty(MEGABYTE), device=device)
        assert list(result) == ["device", "metric", "baseline_bytes", "peak_bytes", "delta_bytes"]
        assert (result["device"], result["metric"]) == ("cpu", "pytorch_tensor_bytes")
        assert result["delta_bytes"] == 4 * MEGABYTE
        assert result["peak_bytes"] == result["baseline_bytes"] + 4 * MEGABYTE
        assert all(type(result[key]) is int for key in list(result)[2:])
        assert json.loads(json.dumps(result)) == result

    def test_the_highest_moment_not_the_sum(self):
        def workload():
            for _ in range(5):
                torch.empty(MEGABYTE)
            a = torch.empty(MEGABYTE, dtype=torch.uint8)
            b = torch.empty(MEGABYTE, dtype=torch.float64)
            del a, b

        assert delta(workload) == 9 * MEGABYTE

    def test_what_lives_already_is_the_baseline(self):
        held = torch.empty(MEGABYTE)
        first = measure_peak_memory(lambda: torch.empty(10), device="cpu")
        del held
        second = measure_peak_memory(lambda: torch.empty(10), device="cpu")
        assert first["baseline_bytes"] - second["baseline_bytes"] == 4 * MEGABYTE
        assert first["delta_bytes"] == second["delta_bytes"] == 40

    def test_tensors_from_before_the_first_measurement_are_in_the_baseline(self, tmp_path):
        values = run_program(
            """
            import torch
            from program_support import report
            held = [torch.empty(1000) for _ in range(100)]
            view = held[0][10:]
            from pytorch_memlab_c import measure_peak_memory
            report(**measure_peak_memory(lambda: held.clear(), device="cpu"))
            report(after=measure_peak_memory(lambda: None, device="cpu")["baseline_bytes"])
            """,
            tmp_path,
        ).values
        assert values["baseline_bytes"] - values["after"] == 99 * 4000, "held[0]'s storage lives on in the view"
        assert values["delta_bytes"] == 0

    def test_a_workload_that_allocates_nothing(self):
        """Cases 48 and 50: a figure of 0 that is true, and never a negative one."""
        held = [torch.empty(MEGABYTE)]
        assert delta(lambda: None) == 0
        assert delta(held.clear) == 0

    def test_it_is_called_exactly_once_and_what_it_returns_is_dropped(self):
        calls = []
        measure_peak_memory(lambda: calls.append(torch.empty(MEGABYTE)), device="cpu")
        assert len(calls) == 1
        before = level()
        measure_peak_memory(lambda: torch.empty(MEGABYTE), device="cpu")
        assert level() == before

    def test_small_networks_are_never_negative(self):
        """Case 50."""
        model = torch.nn.Linear(2, 2)
        x = torch.ones(1, 2)
        assert delta(lambda: model(x).sum().backward()) > 0
        assert delta(lambda: model.zero_grad(set_to_none=True)) == 0


class TestTrainingStep:
    """The peak of an MLP training step against PyTorch's own memory timeline, to the byte."""

    PROGRAM = """
        import json, os, warnings
        import torch
        from program_support import report
        from pytorch_memlab_c import measure_peak_memory

        warnings.simplefilter("ignore")
        torch.manual_seed(0)

        def training():
            model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
            optimizer = torch.optim.Adam(model.parameters())
            batch = torch.randn(64, 256)
            def step():
                optimizer.zero_grad(set_to_none=True)
                loss = model(batch).square().mean()
                loss.backward()
                optimizer.step()
            return step, model, optimizer, batch

        def timeline(workload):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True,
                                        record_shapes=True, with_stack=True) as profiler:
                workload()
            profiler.export_memory_timeline("timeline.json", device="cpu")
            with open("timeline.json") as file:
                _, points = json.load(file)
            levels = [sum(map(int, point)) for point in points]
            return levels[0], max(levels)
    """

    def test_the_first_step_equals_pytorchs_timeline(self, tmp_path):
        values = run_program(
            self.PROGRAM
            + """
        start, highest = timeline(training()[0])
        report(timeline=highest - start, highest=highest, **measure_peak_memory(training()[0], device="cpu"))
        """,
            tmp_path,
        ).values
        assert values["delta_bytes"] == values["timeline"] == 6_841_424
        assert values["peak_bytes"] == values["highest"]

    def test_a_later_step_has_the_timelines_peak_and_the_true_baseline(self, tmp_path):
        """The timeline's own start lacks gradients from before it, a different part of them each time."""
        values = run_program(
            self.PROGRAM
            + """
        step, *parts = training()
        step()
        highest = timeline(step)[1]
        del step, parts
        step, model, optimizer, batch = training()
        step()
        result = measure_peak_memory(step, device="cpu")
        parameters = list(model.parameters())
        states = [value for state in optimizer.state.values() for value in state.values()]
        held = [*parameters, *(p.grad for p in parameters), *states, batch]
        report(highest=highest, held=sum(t.nbytes for t in held), **result)
        """,
            tmp_path,
        ).values
        assert values["peak_bytes"] == values["highest"]
        assert values["baseline_bytes"] == values["held"]
        assert values["delta_bytes"] == values["highest"] - values["held"]


class TestExceptions:
    def test_the_workloads_exception_passes_and_the_window_is_closed(self, monkeypatch):
        """Case 18."""
        windows = []

        def make():
            windows.append(_native.PeakWindow())
            return windows[-1]

        monkeypatch.setattr(peak, "_native", SimpleNamespace(PeakWindow=make))
        for error in (ZeroDivisionError("lost"), KeyboardInterrupt(), SystemExit(3)):

            def workload(error=error):
                raise error

            with pytest.raises(type(error)) as caught:
                measure_peak_memory(workload, device="cpu")
            assert caught.value is error
        assert [window.is_open for window in windows] == [False] * 3
        assert sys.gettrace() is None and threading.gettrace() is None

    def test_an_exception_keeps_no_tensor_alive(self):
        """Case 20."""

        def workload():
            big = torch.empty(MEGABYTE)  # noqa: F841
            raise KeyError("lost")

        before = level()
        try:
            measure_peak_memory(workload, device="cpu")
        except KeyError:
            pass
        assert level() == before

    def test_what_cannot_be_called_is_a_type_error(self):
        with pytest.raises(TypeError):
            measure_peak_memory(3, device="cpu")

    def test_the_device_must_be_named(self):
        with pytest.raises(TypeError):
            measure_peak_memory(lambda: None)


class TestTogether:
    def test_measurements_nest(self):
        inner = []

        def workload():
            a = torch.empty(MEGABYTE)  # noqa: F841
            inner.append(delta(lambda: torch.empty(2 * MEGABYTE)))

        assert delta(workload) == 12 * MEGABYTE
        assert inner == [8 * MEGABYTE]

    def test_several_threads_at_once(self):
        """All are open when the first allocates, so each sees the peak of all; none waits for another to end."""
        barrier = threading.Barrier(4, timeout=20)
        results = []

        def workload():
            barrier.wait()
            held = torch.empty(MEGABYTE)
            barrier.wait()
            del held

        threads = [threading.Thread(target=lambda: results.append(delta(workload))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [16 * MEGABYTE] * 4

    def test_what_a_thread_of_the_workload_allocates_counts(self):
        def workload():
            thread = threading.Thread(target=lambda: torch.empty(MEGABYTE))
            thread.start()
            thread.join()

        assert delta(workload) == 4 * MEGABYTE

    def test_under_torch_profiler_it_is_the_same(self):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True):
            assert delta(lambda: torch.empty(MEGABYTE)) == 4 * MEGABYTE

    def test_it_works_without_pytorch_and_counts_made_up_events(self, tmp_path):
        values = run_program(
            """
            import sys
            from pytorch_memlab_c import measure_peak_memory
            from program_support import allocate, free, report

            def workload():
                allocate(30)
                free(30)

            report(**measure_peak_memory(workload, device="cpu"), torch="torch" in sys.modules)
            """,
            tmp_path,
        ).values
        assert (values["peak_bytes"], values["delta_bytes"], values["torch"]) == (30, 30, False)

    def test_pytorch_may_be_imported_by_the_workload(self, tmp_path):
        values = run_program(
            """
            from pytorch_memlab_c import measure_peak_memory
            from program_support import report

            def workload():
                import torch
                torch.empty(1_000_000)

            report(**measure_peak_memory(workload, device="cpu"))
            """,
            tmp_path,
        ).values
        assert 4_000_000 <= values["delta_bytes"] < 4_100_000


class TestErrors:
    @pytest.mark.parametrize("device", ["meta", "xla", torch.device("meta")])
    def test_a_kind_of_device_that_is_not_supported(self, device):
        with pytest.raises(NotImplementedError, match="cpu, cuda, xpu, mps"):
            measure_peak_memory(lambda: None, device=device)

    @pytest.mark.parametrize("device", ["cpu:1", torch.device("cpu", 5), "nonsense"])
    def test_a_device_that_is_not_there(self, device):
        with pytest.raises(RuntimeError) as caught:
            measure_peak_memory(lambda: None, device=device)
        assert not isinstance(caught.value, NotImplementedError)

    @pytest.mark.parametrize("device", [None, 1.5, []])
    def test_what_is_no_device(self, device):
        with pytest.raises(TypeError):
            measure_peak_memory(lambda: None, device=device)

    def test_a_build_without_cuda(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "_is_compiled", lambda: False)
        with pytest.raises(NotImplementedError, match="has no CUDA"):
            measure_peak_memory(lambda: None, device="cuda")

    @pytest.mark.parametrize("device", ["cuda", "cuda:0"])
    def test_a_machine_without_a_gpu(self, monkeypatch, device):
        monkeypatch.setattr(torch.cuda, "_is_compiled", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        with pytest.raises(RuntimeError, match="there is none here") as caught:
            measure_peak_memory(lambda: None, device=device)
        assert not isinstance(caught.value, NotImplementedError)

    def test_a_gpu_with_another_number(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "_is_compiled", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        with pytest.raises(RuntimeError, match="cuda:2 is not there; this process has cuda:0 to cuda:1"):
            measure_peak_memory(lambda: None, device="cuda:2")

    def test_a_platform_that_shows_no_cpu_events(self, monkeypatch):
        monkeypatch.setattr(following, "cpu_is_followed", lambda: False)
        called = []
        with pytest.raises(NotImplementedError, match="CPU tensors cannot be measured here"):
            measure_peak_memory(lambda: called.append(1), device="cpu")
        assert called == []

    def test_without_pytorch_only_the_cpu_can_be_named(self, tmp_path):
        run_program(
            """
            import sys
            sys.modules["torch"] = None
            from pytorch_memlab_c import measure_peak_memory, peak_memory, profile_workload
            for use in (lambda: measure_peak_memory(print, device="cuda"), lambda: peak_memory("cuda:0"),
                        lambda: profile_workload(print, device="cpu")):
                try:
                    use()
                except NotImplementedError as error:
                    assert "not installed" in str(error), error
                else:
                    raise AssertionError("no error")
            """,
            tmp_path,
        )

    def test_importing_the_package_imports_neither_pytorch_nor_subprocess(self):
        source = "import sys, pytorch_memlab_c.process as p; p.measure_peak_memory; print('torch' in sys.modules)"
        assert subprocess.check_output([sys.executable, "-c", source], text=True) == "False\n"


def test_made_up_events_and_tensors_are_one_level():
    def workload():
        allocate(100)
        torch.empty(25)
        free(100)

    assert delta(workload) == 200
