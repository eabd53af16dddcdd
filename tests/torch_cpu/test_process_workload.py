"""`profile_workload` (spec.md 6): rows, context, totals, diagnostics, and one profiler at a time."""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import threading
from types import SimpleNamespace

import pytest
from gpu_device import environment, gpu
from run_program import run_program

import pytorch_memlab_c
from pytorch_memlab_c import measure_peak_rss, profile_workload
from pytorch_memlab_c.engine import following
from pytorch_memlab_c.process import devices, operators, report, workload
from pytorch_memlab_c.process.metrics import complete

torch = pytest.importorskip("torch")
CPU = [torch.profiler.ProfilerActivity.CPU]
ROW = ["operator", "shapes", "calls", "cpu_self_seconds", "device_self_seconds", "cpu_net_bytes"]


def multiply():
    """Three matrix products of one shape, one of another."""
    a, b = torch.ones(30, 20), torch.ones(20, 10)
    for _ in range(3):
        a @ b
    b @ torch.ones(10, 5)


def row(result, operator, shapes=None):
    found = [r for r in result["operators"] if r["operator"] == operator and shapes in (None, r["shapes"])]
    assert len(found) == 1, [(r["operator"], r["shapes"]) for r in result["operators"]]
    return found[0]


class TestRows:
    def test_one_for_each_operator_and_its_shapes(self):
        result = profile_workload(multiply, device="cpu")
        first = row(result, "aten::mm", [[30, 20], [20, 10]])
        assert list(first) == ROW
        assert (first["calls"], first["cpu_net_bytes"]) == (3, 3 * 30 * 10 * 4)
        assert row(result, "aten::mm", [[20, 10], [10, 5]])["calls"] == 1

    def test_time_on_the_device_is_none_where_it_was_not_measured(self):
        result = profile_workload(multiply, device="cpu")
        assert {r["device_self_seconds"] for r in result["operators"]} == {None}
        assert result["totals"]["device_self_seconds"]["status"] == "unavailable"
        assert result["diagnostics"] == []

    def test_they_are_ranked_by_cpu_self_time(self):
        result = profile_workload(multiply, device="cpu")
        times = [r["cpu_self_seconds"] for r in result["operators"]]
        assert times == sorted(times, reverse=True) and times[0] > 0
        assert result["context"]["ranked_by"] == "cpu_self_seconds"

    def test_net_bytes_are_the_operators_own_and_may_be_negative(self):
        """Case 45: an operator that frees its input; allocated and freed stand apart in the totals."""

        def work():
            held = [torch.empty(1000)]
            torch.empty(500).set_(torch.empty(250))
            held.clear()

        result = profile_workload(work, device="cpu")
        net = sum(r["cpu_net_bytes"] for r in result["operators"])
        assert min(r["cpu_net_bytes"] for r in result["operators"]) < 0
        totals = result["totals"]
        assert totals["cpu_allocated_bytes"]["value"] == totals["cpu_freed_bytes"]["value"] == 4000 + 2000 + 1000
        assert net == 0
        assert "negative" in result["context"]["scopes"]["cpu_net_bytes"]

    def test_inside_of_a_composed_operator_is_not_counted_twice(self):
        result = profile_workload(lambda: torch.ones(1000), device="cpu")
        assert row(result, "aten::ones")["cpu_net_bytes"] == 0
        assert row(result, "aten::empty")["cpu_net_bytes"] == 4000

    def test_backward_is_in_the_table(self):
        """Case 46: the threads that it covers are named, and others are not in it."""

        def work():
            x = torch.ones(7, 7, requires_grad=True)
            (x @ x).sum().backward()
            thread = threading.Thread(target=lambda: torch.ones(3).acosh())
            thread.start()
            thread.join()

        result = profile_workload(work, device="cpu")
        names = {r["operator"] for r in result["operators"]}
        assert row(result, "aten::mm")["calls"] == 3
        assert "aten::acosh" not in names
        assert "not of other threads" in result["context"]["scopes"]["threads"]

    def test_ranges_that_the_program_named_are_no_operators(self):
        def work():
            with torch.profiler.record_function("my range"):
                torch.ones(3)

        assert "my range" not in {r["operator"] for r in profile_workload(work, device="cpu")["operators"]}

    def test_rows_above_the_limit_are_left_out_and_counted(self, monkeypatch):
        monkeypatch.setattr(workload, "ROW_LIMIT", 3)
        result = profile_workload(multiply, device="cpu")
        context = result["context"]
        assert len(result["operators"]) == context["row_limit"] == 3
        assert context["total_grouped_operators"] > 3
        shown = sum(r["cpu_self_seconds"] for r in result["operators"])
        assert result["totals"]["cpu_self_seconds"]["value"] > shown, "totals are of all rows"

    def test_a_workload_without_operators(self):
        result = profile_workload(lambda: None, device="cpu")
        assert result["operators"] == [] and result["context"]["total_grouped_operators"] == 0
        assert "0 of 0 operators" in str(result)


def average(name, cpu, device=0.0, kind="CPU", **more):
    return SimpleNamespace(
        key=name,
        input_shapes=more.get("shapes", [[2, 3], []]),
        count=more.get("count", 1),
        self_cpu_time_total=cpu,
        self_cpu_memory_usage=more.get("net", 0),
        device_type=SimpleNamespace(name=kind),
        is_user_annotation=more.get("annotation", False),
        **{more.get("attribute", "self_device_time_total"): device},
    )


class TestRowsOfADevice:
    """Made-up profiles: what a GPU's look like."""

    def test_device_time_ranks_first(self):
        rows = operators.operator_rows(
            [average("slow on the CPU", 9e6), average("small", 1.0, 2.0), average("large", 1.0, 5e6)]
        )
        assert [r["operator"] for r in rows] == ["large", "small", "slow on the CPU"]
        assert [r["device_self_seconds"] for r in rows] == [pytest.approx(5), pytest.approx(2e-6), None]
        assert rows[2]["cpu_self_seconds"] == pytest.approx(9)

    def test_kernels_have_no_rows_of_their_own(self):
        rows = operators.operator_rows([average("aten::mm", 1, 3), average("gemm_kernel", 0, 3, kind="CUDA")])
        assert [r["operator"] for r in rows] == ["aten::mm"]

    def test_older_pytorch_names_cuda_only(self):
        (only,) = operators.operator_rows([average("aten::mm", 1, 3e6, attribute="self_cuda_time_total")])
        assert only["device_self_seconds"] == pytest.approx(3)

    def test_equal_times_have_a_fixed_order(self):
        one = [average("b", 1), average("a", 1, shapes=[[2]]), average("a", 1, shapes=[[1]])]
        expected = [("a", [[1]]), ("a", [[2]]), ("b", [[2, 3], []])]
        for averages in (one, one[::-1]):
            rows = operators.operator_rows(averages)
            assert [(r["operator"], r["shapes"]) for r in rows] == expected

    def test_shapes_of_lists_of_tensors_are_json(self):
        (only,) = operators.operator_rows([average("aten::cat", 1, shapes=[[(2, 2), (3, 2)], [], "ScalarList"])])
        assert json.loads(json.dumps(only["shapes"])) == only["shapes"] == [[[2, 2], [3, 2]], [], "ScalarList"]


class TestReport:
    def test_it_is_plain_json(self):
        result = profile_workload(multiply, device="cpu")
        assert json.loads(json.dumps(result)) == result
        assert list(result) == ["schema_version", "context", "operators", "totals", "diagnostics"]
        assert isinstance(result, dict)

    def test_the_context(self):
        context = profile_workload(multiply, device=torch.device("cpu"))["context"]
        assert context["device"] == "cpu"
        assert context["row_limit"] == 100
        assert context["versions"] == {
            "pytorch_memlab_c": pytorch_memlab_c.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        }
        assert {"cpu_self_seconds", "device_self_seconds", "cpu_net_bytes", "threads"} <= set(context["scopes"])

    def test_a_caller_may_put_the_peak_rss_into_the_totals(self):
        result = profile_workload(multiply, device="cpu")
        assert "process_peak_rss" not in result["totals"]
        result["totals"]["process_peak_rss"] = measure_peak_rss(["true"])
        assert json.loads(json.dumps(result)) == result
        assert re.search(r"^process_peak_rss: \d\.\d\dM|^process_peak_rss: \d+\.\d\dK", str(result), re.M)

    def test_its_text_is_a_table_with_units(self):
        text = str(profile_workload(multiply, device="cpu"))
        lines = text.splitlines()
        assert lines[0].startswith("cpu: ") and "operators (by input shapes), by cpu_self_seconds" in lines[0]
        assert lines[2].split() == "operator input shapes calls CPU self device self CPU net".split()
        (product,) = (line for line in lines if line.startswith("aten::mm") and "[30, 20], [20, 10]" in line)
        assert re.fullmatch(r"aten::mm +\[\[30, 20\], \[20, 10\]\] +3 +\d+\.\d\d(us|ms|s) +- +3\.52K", product)
        assert "device_self_seconds: unavailable" in text
        assert all(len(line) == len(line.rstrip()) for line in lines)

    def test_the_text_shows_the_top_twenty(self):
        result = report.WorkloadReport(profile_workload(multiply, device="cpu"))
        result["operators"] = [{**result["operators"][0], "operator": f"op{i}"} for i in range(50)]
        result["context"]["total_grouped_operators"] = 50
        text = str(result)
        assert text.startswith("cpu: 20 of 50 operators")
        assert "op19 " in text and "op20 " not in text

    @pytest.mark.parametrize(
        "seconds, text",
        [
            (None, "-"),
            (0, "0.00us"),
            (2e-6, "2.00us"),
            (9.99e-4, "999.00us"),
            (1e-3, "1.00ms"),
            (0.9999, "999.90ms"),
            (61, "61.00s"),
        ],
    )
    def test_times(self, seconds, text):
        assert report.readable_seconds(seconds) == text

    def test_a_lower_bound_is_shown_as_one(self):
        result = profile_workload(multiply, device="cpu")
        metric = complete(2048, unit="bytes", scope="somewhere", method="made up")
        result["totals"]["other"] = {**metric, "status": "partial", "value": None}
        assert "other: at least 2.00K (somewhere)" in str(result)


class TestDiagnostics:
    def test_mps_rows_describe_the_dispatch(self, monkeypatch):
        monkeypatch.setattr(torch.mps, "synchronize", lambda: None)
        monkeypatch.setattr(workload, "find_device", lambda device: devices.Device("mps", "mps", 1))
        result = profile_workload(multiply, device="mps")
        (diagnostic,) = result["diagnostics"]
        assert list(diagnostic) == ["code", "severity", "metric", "message"]
        assert (diagnostic["code"], diagnostic["severity"]) == ("mps_cpu_dispatch_only", "warning")
        assert diagnostic["metric"] == "device_self_seconds" and "CPU only" in diagnostic["message"]
        assert diagnostic["message"] in str(result)
        assert row(result, "aten::mm", [[20, 10], [10, 5]])["device_self_seconds"] is None

    def test_a_platform_that_shows_no_cpu_allocations(self, monkeypatch):
        monkeypatch.setattr(following, "cpu_is_followed", lambda: False)
        result = profile_workload(multiply, device="cpu")
        assert [d["code"] for d in result["diagnostics"]] == ["cpu_allocations_not_visible"]
        assert result["totals"]["cpu_allocated_bytes"]["known_value"] is None

    @gpu()
    def test_a_gpu_whose_kernels_were_not_recorded(self, tmp_path):
        """Also on a real one: either there is device time, or a diagnostic says that there is none."""
        values = run_program(
            """
            import torch
            from pytorch_memlab_c import profile_workload
            from program_support import report
            x = torch.ones(64, 64, device="cuda")
            report(result=profile_workload(lambda: x @ x, device="cuda"))
            """,
            tmp_path,
            env=environment(),
        ).values["result"]
        measured = [r["device_self_seconds"] for r in values["operators"] if r["device_self_seconds"] is not None]
        codes = [d["code"] for d in values["diagnostics"]]
        assert values["context"]["device"] == "cuda:0"
        assert (codes == ["device_time_not_measured"]) == (measured == [])
        assert 0 not in measured
        assert values["context"]["ranked_by"] == ("device_self_seconds" if measured else "cpu_self_seconds")

    @pytest.mark.parametrize("device, error", [("meta", NotImplementedError), ("cpu:3", RuntimeError)])
    def test_a_device_that_cannot_be_used(self, device, error):
        called = []
        with pytest.raises(error):
            profile_workload(lambda: called.append(1), device=device)
        assert called == []


class TestOneProfiler:
    """Cases 39 and 47."""

    def outer_names(self, profiler):
        return {average.key for average in profiler.key_averages()}

    def test_an_outer_profiler_is_left_alone(self):
        called = []
        with torch.profiler.profile(activities=CPU) as outer:
            torch.ones(3).sin()
            with pytest.raises(RuntimeError, match="another PyTorch profiler is running"):
                profile_workload(lambda: called.append(1), device="cpu")
            torch.ones(3).cos()
        assert called == []
        assert {"aten::sin", "aten::cos"} <= self.outer_names(outer)

    def test_also_one_on_another_thread(self):
        errors = []

        def inner():
            with pytest.raises(RuntimeError, match="another PyTorch profiler") as caught:
                profile_workload(multiply, device="cpu")
            errors.append(caught.value)

        with torch.profiler.profile(activities=CPU) as outer:
            thread = threading.Thread(target=inner)
            thread.start()
            thread.join()
            torch.ones(3).cos()
        assert len(errors) == 1
        assert "aten::cos" in self.outer_names(outer)

    def test_also_one_that_stands_ready(self):
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)
        outcomes = []
        with torch.profiler.profile(activities=CPU, schedule=schedule) as outer:
            for _ in range(3):
                torch.ones(3).cos()
                try:
                    profile_workload(multiply, device="cpu")
                    outcomes.append("profiled")
                except RuntimeError:
                    outcomes.append("refused")
                outer.step()
            assert outcomes == ["profiled", "refused", "refused"]
            assert "aten::cos" in self.outer_names(outer)

    def test_two_threads_one_is_told(self):
        inside, leave = threading.Event(), threading.Event()
        results = []

        def work():
            inside.set()
            assert leave.wait(20)
            multiply()

        thread = threading.Thread(target=lambda: results.append(profile_workload(work, device="cpu")))
        thread.start()
        assert inside.wait(20)
        with pytest.raises(RuntimeError, match="another profile_workload is running"):
            profile_workload(multiply, device="cpu")
        leave.set()
        thread.join()
        assert row(results[0], "aten::mm", [[30, 20], [20, 10]])["calls"] == 3
        assert profile_workload(multiply, device="cpu")["operators"]

    def test_one_inside_another_is_refused_and_the_outer_has_its_rows(self):
        def work():
            with pytest.raises(RuntimeError, match="another profile_workload is running"):
                profile_workload(multiply, device="cpu")
            torch.ones(3).cos()

        assert row(profile_workload(work, device="cpu"), "aten::cos")["calls"] == 1

    def test_a_workload_that_runs_a_profiler_of_its_own(self, tmp_path):
        inner = []

        def work():
            with torch.profiler.profile(activities=CPU) as own:
                torch.ones(3).cos()
            inner.append(own)

        with pytest.raises(RuntimeError, match="profiler of its own"):
            profile_workload(work, device="cpu", trace_path=tmp_path / "trace.json")
        assert "aten::cos" in self.outer_names(inner[0])
        assert os.listdir(tmp_path) == []
        assert profile_workload(multiply, device="cpu")["operators"]

    @pytest.mark.parametrize("error", [ZeroDivisionError("lost"), KeyboardInterrupt(), SystemExit(2)])
    def test_the_workloads_exception_passes_and_the_profiler_is_stopped(self, error):
        def work():
            raise error

        with pytest.raises(type(error)) as caught:
            profile_workload(work, device="cpu")
        assert caught.value is error
        assert not torch.autograd._profiler_enabled()
        assert profile_workload(multiply, device="cpu")["operators"]

    @pytest.mark.parametrize("step", ["_prepare_profiler", "_enable_profiler"])
    def test_a_profiler_that_cannot_start_is_not_left_half_open(self, monkeypatch, step):
        def fail(*args, **kwargs):
            raise RuntimeError("profile_memory is set otherwise")

        with monkeypatch.context() as patch:
            patch.setattr(torch.autograd.profiler, step, fail)
            with pytest.raises(RuntimeError, match="set otherwise"):
                profile_workload(multiply, device="cpu")
        assert not torch.autograd._profiler_enabled()
        assert profile_workload(multiply, device="cpu")["operators"]


class TestTrace:
    @pytest.mark.parametrize("name, read", [("trace.json", open), ("trace.json.gz", gzip.open)])
    def test_it_is_a_chrome_trace(self, tmp_path, name, read):
        profile_workload(multiply, device="cpu", trace_path=str(tmp_path / name))
        with read(tmp_path / name, "rt") as file:
            events = json.load(file)["traceEvents"]
        assert sum(event.get("name") == "aten::mm" for event in events) == 4
        assert os.listdir(tmp_path) == [name]

    def test_the_earlier_file_stays_if_the_workload_fails(self, tmp_path):
        path = tmp_path / "trace.json"
        path.write_text("earlier")
        with pytest.raises(ZeroDivisionError):
            profile_workload(lambda: 1 / 0, device="cpu", trace_path=path)
        assert path.read_text() == "earlier" and os.listdir(tmp_path) == ["trace.json"]

    def test_a_file_that_is_half_written_never_shows(self, tmp_path, monkeypatch):
        def half(self, path):
            with open(path, "w") as file:
                file.write('{"traceEvents": [')
            raise OSError("disk full")

        monkeypatch.setattr(torch.profiler.profile, "export_chrome_trace", half)
        path = tmp_path / "trace.json"
        path.write_text("earlier")
        with pytest.raises(OSError, match="disk full"):
            profile_workload(multiply, device="cpu", trace_path=path)
        assert path.read_text() == "earlier" and os.listdir(tmp_path) == ["trace.json"]

    def test_a_place_that_cannot_be_written_is_found_before_the_workload_runs(self, tmp_path):
        called = []
        for path in (tmp_path / "none" / "trace.json", tmp_path):
            with pytest.raises(OSError):
                profile_workload(lambda: called.append(1), device="cpu", trace_path=path)
        assert called == []
