"""How a profiled program ends: its exit status, and where its report goes when the working directory does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from cli_support import RUN, environment, python, run, write
from gpu_device import REAL

FUNCTION = """\
    from program_support import Block
    def f():
        block = Block(1024)
    f()
    """


@pytest.mark.parametrize("suffix", ["html", "csv", "json", "txt"])
def test_ctrl_c_ends_by_the_signal_whatever_is_written(tmp_path, suffix):
    write(tmp_path, {"script.py": FUNCTION + "import time\n    print('ready', flush=True)\n    time.sleep(60)\n"})
    process = subprocess.Popen(
        [sys.executable, *RUN, "-f", "f", "-o", f"r.{suffix}", "script.py"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT, stderr
    assert f"wrote r.{suffix}" in stderr and "KeyboardInterrupt" in stderr
    assert (tmp_path / f"r.{suffix}").stat().st_size


@pytest.mark.parametrize("option", ["relative", "absolute"])
@pytest.mark.parametrize("suffix", ["html", "csv", "json", "txt"])
def test_the_report_is_written_where_it_was_asked_for_though_the_working_directory_is_gone(tmp_path, option, suffix):
    program = """
    import os, tempfile
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
    print("end")
    """
    write(tmp_path, {"script.py": FUNCTION + program})
    path = tmp_path / f"r.{suffix}"
    end = run(tmp_path, "-f", "f", "-o", path.name if option == "relative" else str(path), "script.py")
    assert (end.returncode, end.stdout) == (0, "end\n"), end.stderr
    assert f"wrote {path}" in end.stderr
    assert "Block(1024)" in path.read_text()


def test_the_table_is_printed_though_the_working_directory_is_gone(tmp_path):
    program = "import os, tempfile\n    with tempfile.TemporaryDirectory() as folder:\n        os.chdir(folder)\n"
    write(tmp_path, {"script.py": FUNCTION + program})
    end = run(tmp_path, "-f", "f", "script.py")
    assert end.returncode == 0 and "block = Block(1024)" in end.stdout, end.stderr


REMOVES = FUNCTION + "import os, shutil, sys\n    shutil.rmtree('out')\n    "


@pytest.mark.parametrize(
    "ending, status",
    [("pass", 1), ("sys.exit()", 1), ("sys.exit(0)", 1), ("sys.exit(7)", 7), ("sys.exit('bad')", 1), ("1 / 0", 1)],
)
def test_a_report_that_could_not_be_written_sets_a_status_only_where_the_program_had_none(tmp_path, ending, status):
    write(tmp_path, {"script.py": REMOVES + ending + "\n"})
    (tmp_path / "out").mkdir()
    end = run(tmp_path, "-f", "f", "-o", "out/a.json", "-o", "b.json", "script.py")
    assert end.returncode == status
    assert "out/a.json could not be written" in end.stderr and "wrote b.json" in end.stderr


def test_what_the_program_printed_and_registered_is_not_lost_when_the_report_cannot_be_written(tmp_path):
    ending = "import atexit\n    atexit.register(print, 'at exit')\n    print('no flush', end='')\n"
    write(tmp_path, {"script.py": REMOVES + ending})
    (tmp_path / "out").mkdir()
    end = run(tmp_path, "-f", "f", "-o", "out/a.json", "script.py")
    assert (end.returncode, end.stdout) == (1, "no flushat exit\n")


@pytest.mark.parametrize(
    "words", [["-o", "late.html"], ["--output", "late.json"], ["--output=late.csv"], ["-olate.html"]]
)
def test_an_output_option_after_the_program_is_the_programs_and_a_warning_says_so(tmp_path, words):
    write(tmp_path, {"script.py": FUNCTION + "import sys\n    print(sys.argv[1:])\n"})
    end = run(tmp_path, "-f", "f", "script.py", *words)
    assert end.returncode == 0 and str(words) in end.stdout
    assert f"pytorch_memlab_c: {' '.join(words)} goes to the program, as it follows its name" in end.stderr


@pytest.mark.parametrize("words", [["-o", "model.pt"], ["-o"], ["--out", "late.html"], ["late.html"], ["-omodel"]])
def test_a_programs_own_options_are_no_cause_for_a_warning(tmp_path, words):
    write(tmp_path, {"script.py": FUNCTION})
    assert run(tmp_path, "-f", "f", "script.py", *words).stderr == ""


def test_no_warning_where_a_report_is_written_anyway(tmp_path):
    write(tmp_path, {"script.py": FUNCTION})
    end = run(tmp_path, "-f", "f", "-o", "own.json", "script.py", "-o", "late.html")
    assert end.stderr == "pytorch_memlab_c: wrote own.json\n"
    assert json.loads((tmp_path / "own.json").read_text())


def test_merge_names_its_columns_by_the_files_as_they_are_called(tmp_path):
    write(tmp_path, {"script.py": FUNCTION})
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for name in ("a/one.json", "b/one.json", "one.v2.json"):
        run(tmp_path, "-f", "f", "-o", name, "script.py")
    files = ["a/one.json", "b/one.json", "one.v2.json"]
    merged = python(tmp_path, "-m", "pytorch_memlab_c", "merge", *files)
    assert all(name in merged.stdout.split() for name in files), merged.stdout
    merged = python(tmp_path, "-m", "pytorch_memlab_c", "merge", "a/one.json", "one.v2.json")
    assert {"one", "one.v2"} <= set(merged.stdout.split()), merged.stdout


@pytest.mark.skipif(REAL, reason="there is a GPU")
def test_a_device_that_is_not_there_is_reported_before_the_program_runs(tmp_path):
    write(tmp_path, {"script.py": "print('it runs')\n"})
    end = run(tmp_path, "--device", "cuda:0", "script.py")
    assert (end.returncode, end.stdout) == (2, "")
    assert "error: --device cuda:0: " in end.stderr and len(end.stderr.splitlines()) == 1
    assert "--device cpu" in end.stderr or "PyTorch cannot be imported" in end.stderr
    assert run(tmp_path, "--device", "cpu", "script.py").stdout.startswith("it runs\n")


def test_advice_on_the_command_line_names_its_options(tmp_path):
    write(tmp_path, {"script.py": FUNCTION})
    run(tmp_path, "-f", "f", "-c", "hits", "-o", "r.json", "script.py")
    shown = python(tmp_path, "-m", "pytorch_memlab_c", "report", "r.json", "-c", "inactive_split_bytes.all.peak")
    assert shown.returncode == 2 and "-c inactive_split_bytes.all.peak" in shown.stderr
    assert "LineProfiler" not in shown.stderr
    shown = python(tmp_path, "-m", "pytorch_memlab_c", "report", "r.json", "-c", "saved")
    assert shown.returncode == 2 and "--saved" in shown.stderr and "LineProfiler" not in shown.stderr
