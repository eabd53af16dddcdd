"""Public reports about devices and counters (cases 40 to 44 and 48), and the forms of `set_target_gpu` (spec.md 2).

CUDA's part is made up with `inject_event` here (slot 1 + i is `cuda:i`); the real allocator is the simulated GPU's
part.
"""

from __future__ import annotations

import pytest
from program_support import level, lines, peaks
from run_program import cells, run_program, titles

from pytorch_memlab_c import LineProfiler, profile, set_target_gpu

# A program without torch: devices are made up. `cuda(i, bytes)` sets what `cuda:i` holds; reserved in steps of 2 MiB.
MADE_UP = """
from pytorch_memlab_c import LineProfiler, _native, profile, set_target_gpu
from program_support import Block, allocate, decorated, free, lines, report, report_lines

held = {}
def cuda(index, size):
    held[index] = held.get(index, 0) + size
    _native.inject_event(1 + index, size, held[index], -(-held[index] // 2**21) * 2**21)

def rows(profiler, name=None, columns=None, device=None):
    frame = profiler.records().to_dataframe(name, columns, device)
    frame = frame.astype(object).where(frame.notna(), None).drop(columns="code")
    return [[int(i[1])] + list(r) for i, r in zip(frame.index, frame.itertuples(index=False))]
"""


def made_up(program, tmp_path, **more):
    import textwrap

    return run_program(MADE_UP + textwrap.dedent(program), tmp_path, **more)


# ---- 40: another device than the target allocated ----


def test_case_40_another_device_that_allocated_is_named(tmp_path):
    run = made_up(
        """
        def f():
            cuda(1, 4096)
            cuda(2, 512)
        with LineProfiler(f, device="cuda:0") as profiler:
            f()
        profiler.print_stats()
        """,
        tmp_path,
    )
    assert "f: no allocation was counted on cuda:0 while it ran; cuda:1 and cuda:2 had some" in run.stdout
    assert "device='cuda:1'" in run.stdout and "set_target_gpu(1)" in run.stdout


def test_case_40_all_devices_can_be_shown(tmp_path):
    run = made_up(
        """
        def f():
            cuda(1, 4096)
            x = 1
            cuda(2, 512)
            allocate(100)
        with LineProfiler(f, device="all") as profiler:
            f()
        first = f.__code__.co_firstlineno
        shown = [[row[0] - first] + row[1:] for row in rows(profiler, columns=["net", "hits"])]
        report(shown=shown)
        profiler.print_stats()
        """,
        tmp_path,
    )
    assert titles(run.stdout) == ["f  [cuda:1]", "f  [cuda:2]", "f  [cpu]"]
    by_device = {d: [row[1] for row in run.values["shown"] if row[3] == d] for d in ("cuda:1", "cuda:2", "cpu")}
    assert by_device == {"cuda:1": [0, 4096, 0, 0, 0], "cuda:2": [0, 0, 0, 512, 0], "cpu": [0, 0, 0, 0, 100]}


def test_case_40_each_device_keeps_its_own_figures_whatever_the_target(tmp_path):
    run = made_up(
        """
        def f():
            cuda(0, 1024)
            cuda(1, 4096)
            cuda(1, -4096)
        with LineProfiler(f) as profiler:
            f()
        report(**{d.replace(":", ""): {t: [x.hits, x.peak, x.net] for t, x in lines(profiler, device=d).items()
            if x.hits}
                  for d in ("cuda:0", "cuda:1")})
        """,
        tmp_path,
    )
    assert run.values["cuda0"] == {
        "cuda(0, 1024)": [1, 1024, 1024],
        "cuda(1, 4096)": [1, 1024, 0],
        "cuda(1, -4096)": [1, 1024, 0],
    }
    assert run.values["cuda1"] == {
        "cuda(0, 1024)": [1, 0, 0],
        "cuda(1, 4096)": [1, 4096, 4096],
        "cuda(1, -4096)": [1, 4096, -4096],
    }


# ---- 43: what spills to another device ----


def test_case_43_rows_of_each_device_show_a_spill(tmp_path):
    run = made_up(
        """
        @profile(device="all")
        def gather():
            for i in range(3):
                cuda(i, 1000)
            cuda(0, 2000)   # outputs gathered on the first
        gather()
        """,
        tmp_path,
    )
    assert titles(run.stdout) == ["gather  [cuda:0]", "gather  [cuda:1]", "gather  [cuda:2]"]
    spill, *others = [
        cells(part, "cuda(0, 2000)   # outputs gathered on the first") for part in run.stdout.split("## gather")[1:]
    ]
    assert spill[:3] == ["2.93K", "2.00M", "1.95K"]
    assert [row[:3] for row in others] == [["1000.00B", "2.00M", "0.00B"]] * 2


# ---- 44 and 48: CPU figures are sizes of tensors, never a lazy 0 ----


def test_case_44_a_tensor_on_the_cpu_counts_its_size():
    torch = pytest.importorskip("torch")

    def f():
        big = torch.ones(3, 128, 1024, 10, dtype=torch.uint8)
        return big.numel() * big.element_size()

    before = level()
    with LineProfiler(f, device="cpu") as profiler:
        size = f()
    assert size == 3 * 128 * 1024 * 10
    assert lines(profiler)["big = torch.ones(3, 128, 1024, 10, dtype=torch.uint8)"][:3] == (1, before + size, size)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float64", "complex128", "int16"])
def test_case_44_every_element_type(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)

    def f():
        t = torch.empty(1009, dtype=kind)
        return t.element_size()

    with LineProfiler(f, device="cpu") as profiler:
        size = f() * 1009
    assert lines(profiler)["t = torch.empty(1009, dtype=kind)"].net == size


def test_case_44_tensors_that_existed_before_count_in_the_level(tmp_path):
    pytest.importorskip("torch")
    run = run_program(
        """
        import torch
        kept = torch.ones(1000)
        views = [kept[i:] for i in range(5)]
        meta = torch.empty(10**12, device="meta")
        freed = torch.ones(500)

        from pytorch_memlab_c import LineProfiler
        from program_support import report_lines

        def f():
            global freed
            x = torch.ones(250)
            del freed
            return x.shape

        with LineProfiler(f, device="cpu") as profiler:
            f()
        report_lines(f=profiler)
        """,
        tmp_path,
    )
    assert run.values["f"] == {
        "x = torch.ones(250)": [1, 7000, 1000],
        "del freed": [1, 7000, -2000],
        "return x.shape": [1, 5000, 0],
    }


def test_case_48_the_default_on_a_machine_without_cuda_is_the_cpu_with_real_figures(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import profile

        @profile
        def f():
            x = torch.ones(1024)
            return x.shape

        f()
        """,
        tmp_path,
    )
    assert cells(run.stdout, "x = torch.ones(1024)") == ["4.00K", "4.00K", "1"]
    assert "device: cpu (tensor bytes)" in run.stdout
    assert "CUDA is not available" in run.stdout


# ---- 41 and 42: counters that are not there, counters that are the user's ----


def test_case_41_a_report_without_cuda_statistics(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import LineProfiler
        from program_support import report
        def f():
            return torch.cuda.memory_stats() if torch.cuda.is_available() else {}
        profiler = LineProfiler(f, columns=["num_ooms", "segment.all.peak", "active_bytes.all.peak", "hits"])
        profiler.print_stats()
        with profiler:
            f()
        profiler.print_stats()
        row = profiler.to_dataframe().iloc[1]
        report(missing=[bool(row.isna()[c]) for c in ("num_ooms", "segment.all.peak")], hits=int(row["hits"]))
        """,
        tmp_path,
    )
    assert run.values == {"missing": [True, True], "hits": 1}
    assert "CUDA is not available" in run.stdout
    assert run.stderr == ""


def test_case_41_a_report_before_anything_ran(tmp_path):
    pytest.importorskip("torch")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import LineProfiler, profile
        @profile(device="cuda:0", columns=["active.all.peak"])
        def f():
            pass
        f()
        """,
        tmp_path,
    )
    assert titles(run.stdout) == ["f"]
    assert run.stderr == ""


def test_case_42_a_peak_read_inside_a_profiled_line_is_not_moved_by_the_profiler(tmp_path):
    """The engine itself keeps no counter of the program's: reading its levels changes none of the open lines."""
    run = made_up(
        """
        def f():
            cuda(0, 5000)
            cuda(0, -4000)
            with LineProfiler(g) as inner:     # another profiler begins and ends inside the line below
                g()
            cuda(0, -1000)
        def g():
            cuda(0, 100); cuda(0, -100)
        def outer():
            f()
        with LineProfiler(outer, device="cuda:0") as profiler:
            outer()
        report(**{"f": [lines(profiler, device="cuda:0")["f()"].peak]})
        """,
        tmp_path,
    )
    assert run.values["f"] == [5000]


# ---- set_target_gpu ----


def test_a_line_is_charged_to_the_device_that_is_the_target_when_it_ends(tmp_path):
    run = made_up(
        """
        def f():
            cuda(0, 100); cuda(1, 7)
            set_target_gpu(1)
            cuda(0, 1000); cuda(1, 70)
            set_target_gpu("cuda:0")
            cuda(0, 10000); cuda(1, 700)
        with LineProfiler(f) as profiler:
            f()
        report(rows=[r[1:] for r in rows(profiler, columns=["active_bytes.all.peak", "net", "hits"])])
        profiler.print_stats()
        """,
        tmp_path,
    )
    assert run.values["rows"] == [
        [0, 0, 0, "cuda:0"],
        [100, 100, 1, "cuda:0"],
        [7, 0, 1, "cuda:1"],
        [77, 70, 1, "cuda:1"],
        [1100, 0, 1, "cuda:0"],
        [11100, 10000, 1, "cuda:0"],
    ]
    assert cells(run.stdout, "cuda(0, 1000); cuda(1, 70)") == ["77.00B", "2.00M", "70.00B", "1", "cuda:1"]


def test_the_sample_of_the_peer_with_two_targets_in_one_function(tmp_path):
    """Each layer is charged to the device it was made on."""
    run = made_up(
        """
        @profile
        def func():
            cuda(0, 40960)
            set_target_gpu(1)
            cuda(1, 81920)
            set_target_gpu(0)
            cuda(0, 40960)
        func()
        """,
        tmp_path,
    )
    assert cells(run.stdout, "cuda(1, 81920)")[:2] == ["80.00K", "2.00M"]
    assert cells(run.stdout, "set_target_gpu(0)")[:2] == ["40.00K", "2.00M"]
    report = run.stdout.replace("cuda(0, 40960)", "first", 1)
    assert cells(report, "first")[0] == "40.00K"
    assert cells(report, "cuda(0, 40960)")[0] == "80.00K"


def test_set_target_gpu_as_a_context_manager_nests_and_none_resets(tmp_path):
    run = made_up(
        """
        from pytorch_memlab_c.engine.target_device import target_name
        seen = [target_name()]
        with set_target_gpu(1) as manager:
            seen.append(target_name())
            with set_target_gpu("2"):
                seen.append(target_name())
                set_target_gpu(3)
                seen.append(target_name())
            seen.append(target_name())
            with set_target_gpu(None):
                seen.append(target_name())
            seen.append(target_name())
        seen.append(target_name())
        try:
            with set_target_gpu("cpu"):
                seen.append(target_name())
                raise KeyError
        except KeyError:
            seen.append(target_name())
        set_target_gpu(2)
        set_target_gpu(None)
        seen.append(target_name())
        report(seen=seen)
        """,
        tmp_path,
    )
    default, rest = run.values["seen"][0], run.values["seen"][1:]
    assert rest == ["cuda:1", "cuda:2", "cuda:3", "cuda:1", default, "cuda:1", default, "cpu", default, default]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (0, "cuda:0"), (1, "cuda:1"), ("1", "cuda:1"), ("cuda", "cuda:0"), ("cuda:3", "cuda:3"), (" CUDA:3 ", "cuda:3"),
        ("cpu", "cpu"), ("cpu:0", "cpu"),
    ],
)  # fmt: skip
def test_forms_of_a_device(tmp_path, form, name):
    run = made_up(
        f"""
        from pytorch_memlab_c.engine.target_device import target_name
        def f():
            pass
        set_target_gpu({form!r})
        report(target=target_name(), device=LineProfiler(f, device={form!r}).records().device,
               gpu=LineProfiler(f, target_gpu={form!r}).records().device)
        """,
        tmp_path,
    )
    assert run.values == {"target": name, "device": name, "gpu": name}


def test_a_torch_device_is_a_form_too():
    torch = pytest.importorskip("torch")
    from pytorch_memlab_c.engine.target_device import parse_slot

    assert parse_slot(torch.device("cpu")) == 0
    assert parse_slot(torch.device("cuda:2")) == 3
    assert parse_slot(torch.device("cuda")) == 1

    def f():
        x = torch.ones(10)
        return x.shape

    before = level()
    with set_target_gpu(torch.device("cpu")), LineProfiler(f) as profiler:
        f()
    assert peaks(profiler)["x = torch.ones(10)"] == before + 40
    with LineProfiler(f, device=torch.device("cpu")) as profiler:
        f()
    assert profiler.records().device == "cpu"


def test_without_cuda_the_default_is_the_cpu_also_after_a_reset(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import LineProfiler, set_target_gpu
        from pytorch_memlab_c.engine.target_device import target_name
        from program_support import report

        def f():
            x = torch.ones(1000)
            return x.shape

        with LineProfiler(f) as profiler:
            with set_target_gpu("cpu"):
                f()
            f()
        frame = profiler.to_dataframe()
        report(target=target_name(), device=list(frame["device"].fillna("")), hits=int(frame["hits"].iloc[1]),
               columns=list(frame.columns),
               net=int(profiler.to_dataframe(columns="net.total")["net.total"].iloc[1]))
        """,
        tmp_path,
    )
    assert run.values["target"] == "cpu"
    assert run.values["net"] == 8000 and run.values["hits"] == 2
    assert run.values["device"] == ["cpu", "cpu", "cpu"]


def test_without_cuda_lines_that_ran_before_the_first_target_was_set_are_the_cpus(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import LineProfiler, set_target_gpu
        from program_support import report

        def f():
            x = torch.ones(1000)
            return x.shape

        with LineProfiler(f) as profiler:
            f()
        set_target_gpu("cpu")
        report(net=int(profiler.to_dataframe(columns=["net"])["net"].iloc[1]))
        """,
        tmp_path,
    )
    assert run.values["net"] == 4000


def test_the_decorators_take_a_device(tmp_path):
    run = made_up(
        """
        from pytorch_memlab_c import profile_every

        @profile(device="cuda:1")
        def f():
            cuda(0, 5000); cuda(1, 2048)

        @profile_every(1, device="cpu")
        def g():
            cuda(0, 5000); allocate(1024)

        f()
        g()
        """,
        tmp_path,
    )
    assert titles(run.stdout) == ["g", "f"]
    assert cells(run.stdout, "cuda(0, 5000); cuda(1, 2048)")[0] == "2.00K"
    assert cells(run.stdout, "cuda(0, 5000); allocate(1024)")[0] == "1.00K"
    assert "device: cuda:1" in run.stdout and "device: cpu" in run.stdout


def test_decorating_for_a_device_that_is_not_there_runs_and_says_so(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import profile
        @profile(device="cuda:1")
        def f():
            x = torch.ones(1000)
            return x.shape
        f()
        """,
        tmp_path,
    )
    assert "cuda:1 was asked for, but " in run.stdout  # no device here, or no CUDA in this build
    assert "no allocation was counted on cuda:1 while it ran; cpu had some" in run.stdout


def test_a_profile_decorator_for_a_wrong_device_is_an_error():
    for device, error in (("gpu", ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error):

            @profile(device=device)
            def f(): ...
