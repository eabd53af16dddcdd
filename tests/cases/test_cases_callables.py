"""Public reports about decorators and callables (cases 1 to 3, 8 to 11); kinds of callables have their own file."""

from __future__ import annotations

import subprocess
import sys

import pytest
from engines import NOT_RUN
from program_support import allocate, column, decorated, free, hits, level, lines, nets, peaks
from run_program import cells, run_program, titles

from pytorch_memlab_c import LineProfiler, profile, profile_every

# ---- 1: a function that is never called ----


def test_case_1_a_function_never_called_is_named_and_no_error():
    def f():
        allocate(100)

    def g():
        allocate(1000)
        free(1000)

    with LineProfiler(f, g, device="cpu") as profiler:
        g()
    text = profiler.records().to_text(func=f)
    assert f"f: {NOT_RUN}" in text
    assert titles(text) == [f.__qualname__]
    assert profiler.to_dataframe(f)["hits"].tolist() == [0, 0]


def test_case_1_a_decorated_function_never_called_is_named_at_exit(tmp_path):
    run = run_program(
        """
        from pytorch_memlab_c import profile
        from program_support import allocate

        @profile
        def f():
            allocate(100)

        @profile
        def g():
            allocate(4096)

        g()
        """,
        tmp_path,
    )
    assert titles(run.stdout) == ["f", "g"]
    assert "f: never called" in run.stdout and "g: never called" not in run.stdout
    assert cells(run.stdout, "allocate(4096)") == ["4.00K", "4.00K", "1"]
    assert run.stderr == ""


# ---- 2: no source ----

WITHOUT_SOURCE = """
from pytorch_memlab_c import LineProfiler
from program_support import allocate, report_lines
source = "def f():\\n    allocate(1024)\\n    allocate(512)\\n"
exec(source)
with LineProfiler(f) as profiler:
    f()
report_lines(f=profiler)
profiler.print_stats()
"""


@pytest.mark.parametrize("way", ["exec", "-c", "stdin"])
def test_case_2_without_source_line_numbers_and_values_are_kept(tmp_path, way):
    command = {"exec": None, "-c": ["-c", WITHOUT_SOURCE], "stdin": ["-c", f"exec({WITHOUT_SOURCE!r})"]}[way]
    run = run_program(WITHOUT_SOURCE, tmp_path, command=command)
    assert run.values["f"] == {"2": [1, 1024, 1024], "3": [1, 1536, 512]}
    assert titles(run.stdout) == ["f"]
    assert [line.split()[-1] for line in run.stdout.splitlines() if "1.00K" in line] == ["2"]


def test_case_2_a_function_typed_in_the_plain_interpreter(tmp_path):
    typed = "from pytorch_memlab_c import LineProfiler\nfrom program_support import *\n"
    typed += "def f():\n    allocate(1024)\n\np = LineProfiler(f)\nwith p:\n    f()\n\np.display()\n"
    from run_program import SUPPORT

    run = subprocess.run(
        [sys.executable, "-i", "-q"], input=typed, capture_output=True, text=True, cwd=SUPPORT, timeout=60
    )
    _, heading, table = run.stdout.partition("## f\n")
    assert heading and table.count("1.00K") == 2  # peak and net, shown once
    assert "Error" not in run.stderr


# ---- 3: empty reports say why; display prints in a script ----


def test_case_3_display_prints_in_a_script(capsys):
    def f():
        allocate(2048)
        free(2048)

    before = level()
    with LineProfiler(f, device="cpu") as profiler:
        f()
    shown = profiler.display()
    printed = capsys.readouterr().out
    assert printed == f"{shown}\n"
    assert titles(printed) == [f.__qualname__]
    assert column(profiler, "peak")["allocate(2048)"] == before + 2048


def test_case_3_nothing_allocated_is_said():
    def f():
        return 1

    with LineProfiler(f, device="cpu") as profiler:
        f()
    assert "no allocation was counted on any device while it ran" in profiler.records().to_text()


def test_case_3_no_function_is_said():
    with LineProfiler() as profiler:
        pass
    assert "no function was added" in profiler.records().to_text()


def test_case_3_no_cuda_is_said(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    run = run_program(
        """
        import torch
        from pytorch_memlab_c import LineProfiler
        def f():
            return 1
        with LineProfiler(f) as profiler:
            f()
        profiler.display()
        """,
        tmp_path,
    )
    assert "CUDA is not available" in run.stdout
    assert "no allocation was counted on any device while it ran" in run.stdout


def test_case_3_cleared_results_are_said():
    def f():
        allocate(10)
        free(10)

    with LineProfiler(f, device="cpu") as profiler:
        f()
    profiler.clear()
    assert NOT_RUN in profiler.records().to_text()


# ---- 8: told apart by identity ----


def test_case_8_twins_with_the_same_code_and_lines(tmp_path, monkeypatch):
    source = "from program_support import allocate, free\ndef main():\n    allocate(64)\n    free(64)\n"
    for name in ("twin_one", "twin_two"):
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    import twin_one
    import twin_two

    with LineProfiler(twin_one.main, device="cpu") as profiler:
        twin_two.main()
        twin_two.main()
        twin_one.main()
    assert hits(profiler) == {"allocate(64)": 1, "free(64)": 1}


def test_case_8_equal_code_objects_of_one_file_are_two():
    source = "def f():\n    allocate(64)\n"
    twins = []
    for _ in range(2):
        namespace = {"allocate": lambda size: None}
        exec(compile(source, "same.py", "exec"), namespace)
        twins.append(namespace["f"])
    assert twins[0].__code__ == twins[1].__code__
    with LineProfiler(*twins, device="cpu") as profiler:
        twins[0]()
        twins[1]()
        twins[1]()
    assert [f.lines[-1].hits for f in profiler.records().functions] == [1, 2]


def test_the_same_function_added_twice_is_counted_once():
    def f():
        return 1

    profiler = LineProfiler(f, f, device="cpu")
    profiler.add_function(f)
    with profiler:
        f()
    assert hits(profiler) == {"return 1": 1}


# ---- 9: several profilers at once ----


def test_case_9_overlapping_profilers_get_full_data():
    def f():
        allocate(100)
        free(100)

    before = level()
    first, second = LineProfiler(f, device="cpu"), LineProfiler(f, device="cpu")
    first.enable()
    f()
    second.enable()
    f()
    first.disable()
    f()
    second.disable()
    f()
    for profiler in (first, second):
        assert lines(profiler)["allocate(100)"][:3] == (2, before + 100, 200)
    assert sys.gettrace() is None or "Hook" not in type(sys.gettrace()).__name__


def test_case_9_a_decorated_function_inside_a_line_profiler():
    @profile(device="cpu")
    def f():
        allocate(100)
        free(100)

    before = level()
    with LineProfiler(f, device="cpu") as profiler:
        f()
        f()
    f()
    assert lines(profiler)["allocate(100)"][:3] == (2, before + 100, 200)
    assert lines(decorated(f.__qualname__))["allocate(100)"][:3] == (3, before + 100, 300)


@pytest.mark.parametrize("second, tables", [({"device": "cpu"}, 1), ({"device": "cpu", "columns": ("hits", "net")}, 2)])
def test_case_9_decorated_twice(second, tables):
    @profile(**second)
    @profile(device="cpu")
    def f():
        allocate(100)
        free(100)

    from pytorch_memlab_c.line_profiler import decorators

    f()
    both = [p for p in decorators._profilers if p.records().functions[0].qualname == f.__qualname__]
    assert [hits(p) for p in both] == [{"allocate(100)": 1, "free(100)": 1}] * tables


# ---- 10: inner functions ----


def test_case_10_bytes_of_an_inner_function_count_on_the_calling_line():
    def outer():
        def inner():
            allocate(1000)
            allocate(500)
            free(500)

        inner()
        free(1000)

    before = level()
    with LineProfiler(outer, device="cpu") as profiler:
        outer()
    assert peaks(profiler) == {"def inner():": before, "inner()": before + 1500, "free(1000)": before + 1000}
    assert nets(profiler)["inner()"] == 1000


# ---- 11: forms of the decorator ----


@pytest.mark.parametrize(
    "form",
    [
        "@profile",
        "@profile()",
        "@profile(columns=['tensor_bytes.peak', 'hits'])",
        "@profile(device='cpu')",
        "@profile(None, ['hits', 'net'])",
    ],
)
def test_case_11_all_forms_of_the_decorator_work(tmp_path, form):
    run = run_program(
        f"""
        from pytorch_memlab_c import profile
        from program_support import allocate
        {form}
        def f():
            allocate(4096)
        f()
        """,
        tmp_path,
    )
    values = {"columns=": ["4.00K", "1"], "['hits', 'net']": ["1", "4.00K"]}
    expected = next((row for key, row in values.items() if key in form), ["4.00K", "4.00K", "1"])
    assert cells(run.stdout, "allocate(4096)") == expected


@pytest.mark.parametrize("form", ["profile_every(1)", "profile_every(output_interval=1, enable=True)"])
def test_case_11_all_forms_of_profile_every_work(form, capsys):
    namespace = {"profile_every": profile_every, "allocate": allocate, "free": free}
    exec(f"@{form}\ndef f():\n    allocate(4096); free(4096)\n", namespace)
    namespace["f"]()
    assert titles(capsys.readouterr().out) == ["f"]


def test_functions_profiled_are_not_changed_by_line_profiler():
    def f():
        return 1

    code, attributes = f.__code__, dict(vars(f))
    with LineProfiler(f, device="cpu"):
        f()
    assert f.__code__ is code and vars(f) == attributes
