"""Figures on a CUDA GPU against PyTorch's own counters: exact by line, and invisible to the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpu_device import environment, gpu
from run_program import SUPPORT, cells, run_program

ROOT = Path(__file__).parents[2]
SAMPLERS = ["events", "statistics"]


def run(source: str, directory: Path, **options: Any) -> Any:
    env = {**environment(), "PYTHONPATH": str(ROOT / "examples"), **options.pop("env", {})}
    env["PYTHONPATH"] = f"{SUPPORT}:{env['PYTHONPATH']}"
    return run_program(source, directory, env=env, **options)


OUTER = """
import torch
from pytorch_memlab_c import LineProfiler, profile
from program_support import report

def outer():
    linear = torch.nn.Linear(100, 100).cuda()
    linear2 = torch.nn.Linear(100, 100).cuda()
    linear3 = torch.nn.Linear(100, 100).cuda()
"""


class TestExact:
    @gpu()
    @pytest.mark.parametrize("sampler", SAMPLERS)
    def test_three_linear_layers(self, tmp_path, sampler):
        program = OUTER + "\nwith LineProfiler(outer) as profiler:\n    outer()\nprofiler.display()\n"
        out = run(program, tmp_path, env={"PYTORCH_MEMLAB_SAMPLER": sampler}).stdout
        assert cells(out, "def outer():")[0] == "0.00B"
        for name, active in (("linear", "40.00K"), ("linear2", "80.00K"), ("linear3", "120.00K")):
            row = cells(out, f"{name} = torch.nn.Linear(100, 100).cuda()")
            assert row == [active, "2.00M", "40.00K", "1"]

    @gpu()
    def test_three_linear_layers_decorated(self, tmp_path):
        out = run(OUTER.replace("def outer", "@profile\ndef outer") + "\nouter()\n", tmp_path).stdout
        assert cells(out, "def outer():") == ["0.00B", "0.00B", "0.00B", "0"]
        assert cells(out, "linear3 = torch.nn.Linear(100, 100).cuda()") == ["120.00K", "2.00M", "40.00K", "1"]

    @gpu()
    @pytest.mark.parametrize("sampler", SAMPLERS)
    def test_the_highest_peaks_of_a_training_step_are_those_that_pytorch_counts(self, tmp_path, sampler):
        measure = """
            import torch, train_transformer as example
            from program_support import report
            from pytorch_memlab_c import LineProfiler
            model, optimizer, tokens = example.build("cuda")
            step = example.train_step.__wrapped__
            torch.cuda.reset_peak_memory_stats()
            {run}
            report(max_allocated=torch.cuda.max_memory_allocated(), max_reserved=torch.cuda.max_memory_reserved())
        """
        plain = run(measure.format(run="step(model, optimizer, tokens)"), tmp_path).values
        profiled = run(
            measure.format(
                run="""
            with LineProfiler(step, example.Block.forward, example.Transformer.forward) as profiler:
                step(model, optimizer, tokens)
            highest = profiler.to_dataframe().max(numeric_only=True)
            report(active=int(highest["active_bytes.all.peak"]), reserved=int(highest["reserved_bytes.all.peak"]))
            """
            ),
            tmp_path,
            env={"PYTORCH_MEMLAB_SAMPLER": sampler},
        ).values
        assert profiled["active"] == plain["max_allocated"] == profiled["max_allocated"]
        assert profiled["reserved"] == plain["max_reserved"] == profiled["max_reserved"]

    @gpu()
    def test_backward_on_autograds_own_thread_counts_on_the_line_that_waits(self, tmp_path):
        values = run(
            """
            import torch
            from program_support import report
            from pytorch_memlab_c import LineProfiler

            def step(x):
                loss = (x * x).sum()
                loss.backward()
                return loss

            x = torch.ones(1000, 1000, device="cuda", requires_grad=True)
            step(x).detach()
            x.grad = None
            torch.cuda.reset_peak_memory_stats()
            with LineProfiler(step) as profiler:
                step(x)
            frame = profiler.to_dataframe(columns=["active_bytes.all.peak", "net"]).set_index("code")
            report(peak=int(frame.filter(like="backward", axis=0)["active_bytes.all.peak"].iloc[0]),
                   net=int(frame.filter(like="backward", axis=0)["net"].iloc[0]),
                   pytorch=torch.cuda.max_memory_allocated())
            """,
            tmp_path,
        ).values
        assert values["peak"] == values["pytorch"]
        assert values["net"] >= 4_000_000


class TestAgreement:
    """Random programs: events, statistics and the reference tracer give the same figures. A failure names its seed."""

    @gpu(devices=2)
    @pytest.mark.parametrize("first", range(0, 500, 50))
    def test_random_programs(self, tmp_path, first):
        program = str(SUPPORT / "agreement.py")
        out = run("", tmp_path, command=[program, str(first), "50"], timeout=600).stdout
        assert "50 programs agree" in out


class TestColumns:
    @gpu()
    def test_any_statistic_of_a_line_that_calls_a_profiled_function(self, tmp_path):
        values = run(
            """
            import torch
            from program_support import report
            from pytorch_memlab_c import LineProfiler

            def inner():
                xs = [torch.empty(600_000, device="cuda") for _ in range(3)]
                del xs

            def outer():
                torch.cuda.empty_cache()
                a = torch.empty(100, device="cuda")
                inner()
                b = torch.empty(100, device="cuda")

            names = ["allocation.all.peak", "allocation.all.allocated", "segment.large_pool.peak", "num_device_alloc",
                     "allocation.all.current", "requested_bytes.all.peak"]
            with LineProfiler(outer, inner, columns=names) as profiler:
                outer()
            rows = profiler.to_dataframe("outer", names).set_index("code")
            report(**{code.strip(): list(map(int, row)) for code, row in rows[names].dropna().iterrows()})
            """,
            tmp_path,
        ).values
        large = 3 * 4 * 600_000
        assert values['a = torch.empty(100, device="cuda")'] == [1, 1, 0, 1, 1, 400]
        assert values["inner()"] == [4, 3, 1, 1, 1, 400 + large]
        assert values['b = torch.empty(100, device="cuda")'] == [2, 1, 1, 0, 2, 800]

    @gpu()
    def test_without_columns_the_first_runs_of_each_line_are_recorded(self, tmp_path):
        values = run(
            """
            import torch
            from program_support import report
            from pytorch_memlab_c import LineProfiler

            def f(n):
                for i in range(n):
                    x = [torch.empty(10, device="cuda") for _ in range(i)]

            with LineProfiler(f) as profiler:
                f(150)
            column = "allocation.all.allocated"
            report(most=int(profiler.to_dataframe(columns=[column])[column].max()),
                   gross=int(profiler.to_dataframe(columns=["allocations"])["allocations"].max()))
            """,
            tmp_path,
        ).values
        assert values == {"most": 99, "gross": sum(range(150))}  # the first run makes 0, the hundredth 99


class TestInvisible:
    PROGRAM = """
        import torch
        from program_support import report
        from pytorch_memlab_c import LineProfiler

        def work(x):
            a = torch.empty(3_000_000, device="cuda")
            del a
            b = torch.empty(1000, device="cuda")
            x = x * 2
            peak = torch.cuda.max_memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            c = torch.empty(500_000, device="cuda")
            del c
            return peak, torch.cuda.max_memory_allocated(), torch.cuda.memory_stats()["allocation.all.peak"], b

        {enter}
        *seen, b = work(torch.ones(1_000_000, device="cuda"))
        {leave}
        report(seen=seen, reserved=torch.cuda.memory_reserved(), allocated=torch.cuda.memory_allocated(),
               peak=torch.cuda.max_memory_allocated(), peak_reserved=torch.cuda.max_memory_reserved(),
               segments=torch.cuda.memory_stats()["segment.all.peak"])
        {check}
    """

    @gpu()
    @pytest.mark.parametrize("sampler", SAMPLERS)
    @pytest.mark.parametrize("columns", ["None", "()", "['allocation.all.peak']"])
    def test_what_the_program_reads_is_the_same(self, tmp_path, sampler, columns):
        plain = run(self.PROGRAM.format(enter="", leave="", check=""), tmp_path).values
        (tmp_path / "results.json").unlink()
        profiled = run(
            self.PROGRAM.format(
                enter=f"profiler = LineProfiler(work, columns={columns}); profiler.enable()",
                leave="profiler.disable()",
                check="frame = profiler.to_dataframe(columns=['active_bytes.all.peak']).set_index('code');"
                "c = frame.filter(like='c = ', axis=0).iloc[0, 0]; report(c=int(c))",
            ),
            tmp_path,
            env={"PYTORCH_MEMLAB_SAMPLER": sampler},
        ).values
        c = profiled.pop("c")
        assert profiled == plain
        assert c == plain["seen"][1], "the user's own reset takes nothing from the line"

    @gpu()
    def test_a_function_that_raised_frees_its_tensors(self, tmp_path):
        values = run(
            """
            import torch
            from program_support import report
            from pytorch_memlab_c import LineProfiler, profile

            @profile
            def f(x):
                big = torch.empty(1_000_000, device="cuda")
                raise KeyError("lost")

            before = torch.cuda.memory_allocated()
            try:
                f(torch.empty(1_000_000, device="cuda"))
            except KeyError as error:
                report(error=repr(error))
            report(left=torch.cuda.memory_allocated() - before)
            """,
            tmp_path,
        ).values
        assert values == {"error": "KeyError('lost')", "left": 0}


class TestDevices:
    SAMPLE = """
        import torch
        from program_support import report
        from pytorch_memlab_c import LineProfiler, profile, set_target_gpu

        def sample():
            net1 = torch.nn.Linear(1024, 1024).cuda(0)
            set_target_gpu(1)
            net2 = torch.nn.Linear(1024, 1024).cuda(1)
            set_target_gpu(0)
            net3 = torch.nn.Linear(1024, 1024).cuda(0)
    """

    @gpu(devices=2)
    def test_the_target_may_change_inside_the_function(self, tmp_path):
        out = run(self.SAMPLE + "\n        profile(sample)()\n", tmp_path).stdout
        assert cells(out, "net1 = torch.nn.Linear(1024, 1024).cuda(0)") == ["4.00M", "22.00M", "4.00M", "1", "cuda:0"]
        assert cells(out, "set_target_gpu(1)") == ["0.00B", "0.00B", "0.00B", "1", "cuda:1"]
        assert cells(out, "net2 = torch.nn.Linear(1024, 1024).cuda(1)") == ["4.00M", "22.00M", "4.00M", "1", "cuda:1"]
        assert cells(out, "net3 = torch.nn.Linear(1024, 1024).cuda(0)") == ["8.01M", "22.00M", "4.00M", "1", "cuda:0"]

    @gpu(devices=2)
    def test_all_devices_side_by_side(self, tmp_path):
        values = run(
            self.SAMPLE
            + """
        with LineProfiler(sample, device="all") as profiler:
            sample()
        frame = profiler.to_dataframe(columns=["active_bytes.all.peak"]).reset_index()
        last = frame[frame.code.str.contains("net3")]
        report(**{row.device: row["active_bytes.all.peak"] for _, row in last.iterrows() if row.device != "cpu"})
        """.replace('row["active_bytes.all.peak"]', 'int(row["active_bytes.all.peak"])'),
            tmp_path,
        ).values
        weight, bias = 4 << 20, 4096
        assert values == {"cuda:0": 2 * (weight + bias), "cuda:1": weight + bias}

    @gpu(devices=2)
    def test_another_device_allocated(self, tmp_path):
        """Case 40: all zeros when the tensors are on another GPU than the target."""
        out = run(
            """
            import torch
            from pytorch_memlab_c import profile
            @profile
            def f():
                x = torch.empty(1000, device="cuda:1")
            f()
            """,
            tmp_path,
        ).stdout
        assert "cuda:1" in out.partition("x = torch")[2] and "no allocation was counted on cuda:0" in out

    @gpu(devices=2)
    def test_data_parallel_replicas_are_not_mixed(self, tmp_path):
        """Cases 36 and 43: replicas run on threads of their own, each on its device; both devices show their bytes."""
        values = run(
            """
            import torch
            from program_support import report
            from pytorch_memlab_c import LineProfiler, profile

            class Net(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = torch.nn.Linear(1024, 1024)

                def forward(self, x):
                    y = self.layer(x)
                    return y

            net = torch.nn.DataParallel(Net().cuda(), device_ids=[0, 1])
            x = torch.ones(64, 1024, device="cuda")
            with torch.no_grad():
                net(x)
                with LineProfiler(Net.forward, device="all") as profiler:
                    net(x)
            frame = profiler.to_dataframe(columns=["hits", "allocations", "active_bytes.all.peak"]).reset_index()
            layer = frame[frame.code.str.contains("self.layer")].set_index("device")
            report(hits=int(layer.hits["cuda:0"]), second=int(layer["active_bytes.all.peak"]["cuda:1"]))
            """,
            tmp_path,
        ).values
        assert values["hits"] == 2
        assert values["second"] >= 1024 * 1024 * 4

    @gpu()
    def test_a_report_before_cuda_is_used(self, tmp_path):
        """Case 41: `memory_stats()` is empty before the first use."""
        out = run(
            """
            from pytorch_memlab_c import LineProfiler
            import torch
            def f():
                return 1
            with LineProfiler(f) as profiler:
                f()
            profiler.display(columns=["active_bytes.all.peak", "num_ooms"])
            """,
            tmp_path,
        ).stdout
        assert "return 1" in out and "no allocation was counted" in out
