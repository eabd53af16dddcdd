"""`MemReporter` on a CUDA GPU: its sums are those of PyTorch's allocator, to the byte."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

from gpu_device import environment, gpu
from run_program import Run, run_program

START = """
import warnings
warnings.simplefilter("error")
import torch
from pytorch_memlab_c import MemReporter
from program_support import report

def ladder(device="cuda:0"):
    (section,) = MemReporter()._display(False, device, None, 10).sections
    level = section.level
    free, total = torch.cuda.mem_get_info(device)
    assert level.allocated == torch.cuda.memory_allocated(device)
    assert level.reserved == torch.cuda.memory_reserved(device)
    assert level.used == total - free
    assert level.seen - level.elsewhere + level.rounding + level.unreachable == level.allocated
    assert level.allocated <= level.reserved <= level.used
    return [level.seen, level.rounding, level.unreachable]
"""


def run(source: str, tmp_path: Any) -> Run:
    return run_program(START + dedent(source), tmp_path, env=environment())


def shown(out: str) -> dict[str, str]:
    """Used MEM by name, of one report."""
    return {m[1]: m[2] for m in re.finditer(r"^(\S+) +\(.*\) +(\S+)$", out, re.MULTILINE)}


@gpu()
def test_the_linear_example(tmp_path):
    """The peer's first two examples; no kernel has run before the first report: Python holds all that is allocated."""
    result = run(
        """
        linear = torch.nn.Linear(1024, 1024).cuda()
        MemReporter().report()
        print("=====")
        first = ladder()
        inp = torch.Tensor(512, 1024).cuda()
        reporter = MemReporter(linear)
        workspaces = torch.cuda.memory_allocated()
        out = linear(inp).mean()
        report(first=first, before=ladder())
        reporter.report()
        print("=====")
        out.backward()
        reporter.report()
        report(after=ladder(), frame=int(reporter.snapshot()["allocator_bytes"].sum()))
        """,
        tmp_path,
    )
    first, before, after = result.stdout.split("=====")
    assert first.splitlines()[2:5] == [
        "Storage on cuda:0",
        "linear.weight                                   (1024, 1024)     4.00M",
        "linear.bias                                          (1024,)     4.00K",
    ]
    assert "The allocated memory on cuda:0: 4.00M" in first and "not reachable from Python: 0 bytes" in first
    assert shown(before) == {"weight": "4.00M", "bias": "4.00K", "inp": "2.00M", "out": "4.00B"}
    assert shown(after) == {**shown(before), "weight.grad": "4.00M", "bias.grad": "4.00K"}
    parameters = 4 * (1024 * 1024 + 1024)
    assert result.values["first"] == [parameters, 0, 0]
    assert result.values["before"][:2] == [parameters + 2 * 2**20 + 4, 508]
    assert result.values["after"][:2] == [2 * parameters + 2 * 2**20 + 4, 508]
    assert result.values["frame"] == sum(result.values["after"][:2])


@gpu()
def test_tied_parameters_and_a_recurrent_layer(tmp_path):
    result = run(
        """
        linear, linear2 = torch.nn.Linear(1024, 1024).cuda(), torch.nn.Linear(1024, 1024).cuda()
        linear2.weight = linear.weight
        container = torch.nn.Sequential(linear, linear2)
        container(torch.Tensor(512, 1024).cuda()).mean().backward()
        MemReporter(container).report(verbose=True, model=container)
        print("=====")
        ladder()
        del linear, linear2, container
        lstm = torch.nn.LSTM(1024, 1024).cuda()
        MemReporter(lstm).report(verbose=True, model=lstm)
        ladder()
        out, _ = lstm(torch.Tensor(10, 10, 1024).cuda())
        ladder()
        out.mean().backward()
        ladder()
        """,
        tmp_path,
    )
    tied, lstm = result.stdout.split("=====")
    assert shown(tied) == {
        "0.weight+1.weight": "4.00M",
        "0.weight+1.weight.grad": "4.00M",
        **{f"{i}.bias{grad}": "4.00K" for i in (0, 1) for grad in ("", ".grad")},
    }
    assert "Used Memory: 8.02M" in tied and "Used Memory: 32.03M" in lstm


@gpu()
def test_the_product_of_a_sum(tmp_path):
    """Case 55, and what is left for C++ alone."""
    values = run(
        """
        inp = torch.ones(1000, 1000, device="cuda", requires_grad=True)
        out = inp * (inp + 2)
        report(alive=ladder(), rows=sorted(r.name for r in MemReporter()._display(0, "cuda", None, 9).sections[0].rows))
        before = ladder()
        a, b = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
        held = torch.cuda.memory_allocated()
        a @ b
        report(workspace=torch.cuda.memory_allocated() - held, unreachable=ladder()[2] - before[2])
        """,
        tmp_path,
    ).values
    assert values["alive"][::2] == [12_000_000, 0]
    assert values["rows"] == ["MulBackward0.saved_other", "inp", "out"]
    assert values["workspace"] == values["unreachable"] > 0


@gpu()
def test_rounding_is_that_of_the_allocators_blocks(tmp_path):
    """Small blocks round to 512 bytes; a large one may be given a whole segment."""
    values = run(
        """
        small = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (1, 512, 513)]
        report(small=ladder())
        large = torch.empty(11_900_000, dtype=torch.uint8, device="cuda")
        report(large=ladder(), block=torch.cuda.memory_allocated() - 2048)
        view, alias = large[5:], torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(large))
        sparse = torch.sparse_coo_tensor(torch.zeros(1, 3, dtype=torch.long, device="cuda"),
                                         torch.zeros(3, device="cuda"), (9,), check_invariants=False)
        report(shared=ladder())
        """,
        tmp_path,
    ).values
    assert values["small"] == [1026, 2048 - 1026, 0]
    assert values["block"] > 12_000_000
    assert values["large"] == [1026 + 11_900_000, 2048 - 1026 + values["block"] - 11_900_000, 0]
    assert values["shared"][0] == values["large"][0] + 24 + 12 and values["shared"][2] == 0


@gpu(devices=2)
def test_devices_apart_and_in_order(tmp_path):
    result = run(
        """
        model = torch.nn.Linear(10, 10)
        kept = [torch.ones(1000, device="cuda:1"), torch.ones(500, device="cuda:0"), torch.ones(3, device="meta")]
        optimizer = torch.optim.Adam([kept[0].requires_grad_()])
        reporter = MemReporter(model)
        reporter.add_optimizer(optimizer)
        kept[0].sum().backward()
        optimizer.step()
        reporter.report()
        print("=====")
        reporter.report(device=1)
        print("=====")
        reporter.report(device="cuda")
        print("=====")
        reporter.report(device=torch.device("cuda", 0))
        report(first=ladder("cuda:0"), second=ladder("cuda:1"))
        """,
        tmp_path,
    )
    sections = [re.findall(r"^Storage on (.*)$", part, re.MULTILINE) for part in result.stdout.split("=====")]
    assert sections == [["cuda:0", "cuda:1", "cpu", "meta"], ["cuda:1"], ["cuda:0", "cuda:1"], ["cuda:0"]]
    every = shown(result.stdout.split("=====")[0])
    assert every["Adam.groups.0.params.0"] == every["Adam.groups.0.params.0.exp_avg"] == "3.91K"
    assert every["Adam.groups.0.params.0.step"] == "4.00B"
    assert result.values["first"][0] == 2000 and result.values["second"][0] >= 16_000


@gpu()
def test_before_cuda_is_used_nothing_starts_it(tmp_path):
    run(
        """
        kept = torch.ones(3)
        MemReporter().report()
        MemReporter().snapshot()
        assert not torch.cuda.is_initialized()
        """,
        tmp_path,
    )


@gpu()
def test_pinned_host_memory_is_called_what_it_is(tmp_path):
    text = run_program(
        """
        import torch
        from pytorch_memlab_c import MemReporter
        torch.ones(1, device="cuda")
        plain = torch.ones(1000)
        pinned = torch.ones(2000).pin_memory()
        view = pinned[:10]
        MemReporter().report(verbose=True)
        """,
        tmp_path,
        env=environment(),
    ).stdout
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines()}
    assert "pinned (pinned)" in rows and "7.81K" in rows["pinned (pinned)"], text
    assert "plain" in rows and "3.91K" in rows["plain"], text
