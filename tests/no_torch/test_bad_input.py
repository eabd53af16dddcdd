"""Wrong input is a clear error or the documented answer, and nothing that was measured is lost."""

from __future__ import annotations

import re
import sys

import pytest
from program_support import allocate, free, hits, lines
from run_program import run_program, titles

from pytorch_memlab_c import LineProfiler, clear_global_line_profiler, profile, profile_every, set_target_gpu


def f():
    allocate(100)
    free(100)


@pytest.fixture
def measured():
    """A profiler that has something to lose."""
    with LineProfiler(f, device="cpu") as profiler:
        f()
    yield profiler
    assert hits(profiler) == {"allocate(100)": 1, "free(100)": 1}


# ---- columns ----


@pytest.mark.parametrize("wrong", ["active_bytes.al.peak", "active_bytes", "", "peak", "Net", 5, None])
def test_a_wrong_column_is_a_value_error_that_lists_the_valid_ones(measured, wrong):
    for ask in (measured.to_dataframe, measured.print_stats, measured.display):
        with pytest.raises(ValueError, match="Valid columns: hits, .*net.*active_bytes.all.peak.*num_ooms"):
            ask(columns=[wrong])
    for make in (LineProfiler, profile, profile_every(1).__call__):
        if make is LineProfiler or make is profile:
            with pytest.raises(ValueError, match="Valid columns"):
                make(f, columns=[wrong])
    with pytest.raises(ValueError, match="Valid columns"):
        profile_every(1, columns=[wrong])(f)


def test_a_wrong_column_names_the_nearest(measured):
    with pytest.raises(ValueError, match="Did you mean 'active_bytes.all.peak'"):
        measured.to_dataframe(columns=["active_byte.all.peak"])


def test_a_wrong_column_at_decoration_leaves_no_profiler_behind(tmp_path):
    run = run_program(
        """
        from pytorch_memlab_c import profile, profile_every
        def f(): pass
        for attempt in (lambda: profile(f, columns=["x"]), lambda: profile(f, device="x"), lambda: profile(5),
                        lambda: profile_every(1)(len), lambda: profile(print)):
            try: attempt()
            except (ValueError, TypeError): pass
            else: raise SystemExit("no error")
        """,
        tmp_path,
    )
    assert run.stdout == "" and run.stderr == ""


def test_a_column_that_needs_statistics_and_was_not_recorded_says_how(measured):
    profiler = LineProfiler(f, columns=["hits"], device="cpu")
    with pytest.raises(ValueError, match=r"was not recorded.*LineProfiler\(\.\.\., columns=\['num_ooms'\]\)"):
        profiler.to_dataframe(columns=["num_ooms"])


@pytest.mark.parametrize(
    "column", ["num_ooms", "oversize_segments.peak", "max_split_size", "requested_bytes.small_pool.freed", "net"]
)
def test_every_key_of_memory_stats_is_a_column(column):
    with LineProfiler(f, columns=[column], device="cpu") as profiler:
        f()
    assert list(profiler.to_dataframe().columns) == [column, "device", "code"]
    assert column.split(".")[0] in profiler.records().to_text(columns=[column])


def test_a_single_column_may_be_a_plain_string(measured):
    assert list(measured.to_dataframe(columns="hits").columns) == ["hits", "device", "code"]


# ---- devices ----

WRONG_DEVICES = [
    (-1, ValueError), (32, ValueError), (10**30, ValueError), ("gpu", ValueError), ("cuda:", ValueError),
    ("cuda:-1", ValueError), ("cuda:x", ValueError), ("cuda:1:2", ValueError), ("cuda:99", ValueError),
    ("", ValueError),
    ("cpu:1", ValueError), ("mps", ValueError), ("meta", ValueError), (1.0, TypeError), (True, TypeError),
    (b"cuda", TypeError), ([0], TypeError), (object(), TypeError),
]  # fmt: skip


@pytest.mark.parametrize(("device", "error"), WRONG_DEVICES, ids=lambda value: repr(value)[:20])
def test_a_wrong_device(measured, device, error):
    from pytorch_memlab_c.engine.target_device import target_name

    before = target_name()
    for ask in (set_target_gpu, lambda d: LineProfiler(f, device=d), lambda d: LineProfiler(f, target_gpu=d)):
        with pytest.raises(error, match="device|out of range|cuda"):
            ask(device)
    assert target_name() == before


def test_all_is_no_target(measured):
    with pytest.raises(ValueError, match="'all' is not a device"):
        set_target_gpu("all")


def test_target_gpu_and_device_together(measured):
    with pytest.raises(ValueError, match="target_gpu or device, not both"):
        LineProfiler(f, target_gpu=0, device="cpu")


def test_a_torch_device_of_another_kind():
    torch = pytest.importorskip("torch")
    for device in ("meta", "mps"):
        with pytest.raises(ValueError, match="cannot? be profiled|not a device"):
            set_target_gpu(torch.device(device))


def test_cuda_asked_for_where_there_is_none(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import LineProfiler, set_target_gpu
        from program_support import report
        def f(): pass
        errors = []
        for ask in (set_target_gpu, lambda d: LineProfiler(f, device=d), lambda d: LineProfiler(f, target_gpu=d)):
            for device in (0, "cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:1")):
                try:
                    ask(device)
                except RuntimeError as error:
                    errors.append(str(error))
        report(errors=errors)
        """,
        tmp_path,
    )
    assert len(run.values["errors"]) == 15
    assert all("was asked for, but" in error and "device='cpu'" in error for error in run.values["errors"])


def test_a_build_of_torch_without_cuda(tmp_path):
    """A stand-in for the CPU build: `torch.cuda._is_compiled()` says no and there is no CUDA statistics function."""
    pytest.importorskip("torch")
    run = run_program(
        """
        import torch
        torch.cuda._is_compiled = lambda: False
        torch.cuda.is_available = lambda: False
        for name in ("_cuda_memoryStats", "_cuda_resetPeakMemoryStats"):
            if hasattr(torch._C, name): delattr(torch._C, name)
        from pytorch_memlab_c import LineProfiler, profile, set_target_gpu
        from program_support import lines, report

        @profile
        def f():
            x = torch.ones(1000)
            return x.shape

        try:
            LineProfiler(f, device="cuda:0")
        except RuntimeError as error:
            report(error=str(error))
        with LineProfiler(f) as profiler:
            f()
        report(net=lines(profiler)["x = torch.ones(1000)"].net, device=profiler.records().device)
        set_target_gpu("cpu")
        f()
        set_target_gpu(None)
        f()
        """,
        tmp_path,
    )
    assert "has no CUDA" in run.values["error"]
    assert run.values["net"] == 4000 and run.values["device"] == "cpu"
    assert "4.00K" not in run.stderr and run.stderr == ""
    row = next(line for line in run.stdout.splitlines() if re.search(r"\d> +x = torch", line))
    assert row.split()[:3] == ["3.91K", "3.91K", "3"]  # the decorated function's three runs


# ---- not a function ----


class WithCall:
    def __call__(self):
        return 1


WRONG_FUNCTIONS = [
    (len, "compiled, it has no Python lines; profile its caller"),
    ([].append, "compiled, it has no Python lines; profile its caller"),
    (str.join, "compiled, it has no Python lines; profile its caller"),
    (int, "name the methods to profile"),
    (WithCall, "name the methods to profile"),
    (WithCall(), "give type\\(obj\\).__call__"),
    (None, "not the result of calling it"),
    (5, "not the result of calling it"),
    ("f", "not the result of calling it"),
    (sys, "not the result of calling it"),
    (property(), "has no Python code of its own"),
]


@pytest.mark.parametrize(("target", "why"), WRONG_FUNCTIONS, ids=lambda value: repr(value)[:20])
def test_not_a_function_is_a_type_error_that_says_what_to_give(measured, target, why):
    for ask in (LineProfiler, measured.add_function, lambda t: profile_every(1)(t)):
        with pytest.raises(TypeError, match=why):
            ask(target)
    if target is not None:  # profile(None) is `@profile()`
        with pytest.raises(TypeError, match=why):
            profile(target)


def test_a_module_of_torch_is_profiled_by_its_forward():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="give module.forward"):
        LineProfiler(torch.nn.Linear(1, 1))


def test_case_12_the_result_of_a_call_in_place_of_the_function():
    with pytest.raises(TypeError, match="give a function or method, not the result of calling it"):
        LineProfiler(f())


def test_a_wrong_function_among_good_ones_changes_nothing(measured):
    with pytest.raises(TypeError):
        measured.add_function(len)
    assert [x.qualname for x in measured.records().functions] == ["f"]


@pytest.mark.parametrize("wrong", ["g", "F", len, 5, ["f", "g"]])
def test_asking_for_a_function_that_was_not_profiled(measured, wrong):
    for ask in (measured.to_dataframe, measured.print_stats, measured.display):
        with pytest.raises(ValueError, match="Known functions: f"):
            ask(wrong)


# ---- profile_every ----


@pytest.mark.parametrize("interval", [0, -1, 1.0, "1", None, True, f])
def test_a_wrong_interval(interval):
    with pytest.raises(ValueError, match="output_interval is .*at least 1"):
        profile_every(interval)


# ---- enabling and disabling ----


def test_enabling_twice_needs_disabling_twice():
    profiler = LineProfiler(f, device="cpu")
    before = sys.gettrace()
    profiler.enable()
    profiler.enable()
    f()
    profiler.disable()
    assert profiler.enabled
    f()
    profiler.disable()
    assert not profiler.enabled and sys.gettrace() is before
    f()
    assert hits(profiler)["allocate(100)"] == 2


def test_disabling_what_is_not_enabled_does_nothing(measured):
    before = sys.gettrace()
    measured.disable()
    measured.disable()
    assert sys.gettrace() is before and not measured.enabled


def test_a_profiler_can_be_enabled_again_and_goes_on_counting():
    profiler = LineProfiler(f, device="cpu")
    for _ in range(3):
        with profiler:
            f()
    assert hits(profiler) == {"allocate(100)": 3, "free(100)": 3}


def test_re_entrant_with_blocks():
    profiler = LineProfiler(f, device="cpu")
    with profiler as outer:
        with profiler as inner:
            f()
        assert inner is outer is profiler and profiler.enabled
        f()
    assert hits(profiler)["allocate(100)"] == 2 and not profiler.enabled


def test_enabled_inside_itself_by_the_profiled_function():
    def g():
        with profiler:
            allocate(10)
        free(10)

    profiler = LineProfiler(g, device="cpu")
    with profiler:
        g()
    assert {text: count for text, count in hits(profiler).items() if "(10)" in text} == {
        "allocate(10)": 1,
        "free(10)": 1,
    }


def test_clear_while_enabled_and_inside_the_function():
    def g(clear):
        allocate(10)
        if clear:
            profiler.clear()
        free(10)

    with LineProfiler(g, device="cpu") as profiler:
        g(False)
        g(True)
        assert hits(profiler) == {"free(10)": 1}
        assert "profiler.clear()" not in lines(profiler)  # the segment had begun before
        g(False)
    assert hits(profiler) == {"allocate(10)": 1, "if clear:": 1, "free(10)": 2}


def test_a_function_added_while_enabled_is_measured_from_its_next_call():
    profiler = LineProfiler(device="cpu")
    with profiler:
        f()
        profiler.add_function(f)
        f()
    assert hits(profiler) == {"allocate(100)": 1, "free(100)": 1}


def test_records_are_independent_of_the_profiler(measured):
    records = measured.records()
    other = LineProfiler(f, device="cpu")
    with other:
        f()
    kept = other.records()
    other.clear()
    assert records.functions[0].calls == 1 and kept.functions[0].calls == 1
    assert other.records().functions[0].calls == 0


# ---- writing ----


def test_an_unwritable_path_is_an_error_and_keeps_the_figures(measured, tmp_path):
    for write in (measured.to_json, measured.to_csv, measured.to_html):
        with pytest.raises(OSError):
            write(tmp_path / "missing" / "file")


def test_a_closed_standard_output_at_exit_is_no_traceback(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import profile
        @profile
        def f(): return 1
        f()
        sys.stdout.close()
        """,
        tmp_path,
    )
    assert "Traceback" not in run.stderr
    assert "the profile could not be written" in run.stderr


def test_a_full_device_as_standard_output(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import profile_every
        @profile_every(1)
        def f(): return 5
        sys.stdout = open("/dev/full", "w", buffering=1)
        assert f() == 5      # the program goes on
        sys.stdout = sys.__stdout__
        print("went on")
        """,
        tmp_path,
        check=False,
    )
    assert "went on" in run.stdout
    assert "the profile could not be written" in run.stderr


def test_clear_global_line_profiler_drops_what_was_gathered(tmp_path):
    run = run_program(
        """
        from pytorch_memlab_c import clear_global_line_profiler, profile
        from program_support import allocate, decorated, report_lines

        clear_global_line_profiler()

        @profile
        def f(size):
            allocate(size)

        @profile
        def g():
            return 1

        f(4096)
        g()
        clear_global_line_profiler()
        f(1024)
        report_lines(f=decorated("f"))
        """,
        tmp_path,
    )
    assert run.values["f"] == {"allocate(size)": [1, 5120, 1024]}
    assert titles(run.stdout) == ["f", "g"]
    assert "g: never called" in run.stdout


def test_clear_global_line_profiler_may_be_called_any_time():
    assert clear_global_line_profiler() is None


# ---- a sampler that does not exist ----


def test_a_wrong_sampler_is_named(tmp_path):
    pytest.importorskip("torch")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import LineProfiler
        LineProfiler(lambda: 1)
        """,
        tmp_path,
        env={"PYTORCH_MEMLAB_SAMPLER": "magic"},
        check=False,
    )
    assert run.returncode == 1
    assert "PYTORCH_MEMLAB_SAMPLER is 'magic'" in run.stderr
