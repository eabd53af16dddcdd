"""Public reports about source that is not ASCII (case 31)."""

from __future__ import annotations

import pytest
from run_program import cells, run_program, titles

from pytorch_memlab_c import LineProfiler


def run_under_profiler(function, *arguments, **named):
    with LineProfiler(function, device="cpu") as profiler:
        function(*arguments, **named)
    return profiler


# ---- 31: source that is not ASCII ----

UMLAUTS = """\
from pytorch_memlab_c import profile
from program_support import allocate

@profile
def größe(𝔵="中"):
    allocate(4096)  # Größe ✓
größe()
"""


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "utf-8"},
        {"PYTHONUTF8": "1"},
    ],
    ids=lambda env: ",".join(f"{k}={v}" for k, v in env.items()),
)
def test_case_31_source_that_is_not_ascii_is_reported(tmp_path, env):
    run = run_program(UMLAUTS, tmp_path, env=env)
    (row,) = [line for line in run.stdout.splitlines() if "allocate(4096)" in line]
    assert row.split()[:4] == ["4.00K", "4.00K", "1", "6>"]
    assert run.stderr == ""
    if env.get("PYTHONIOENCODING") == "utf-8":
        assert titles(run.stdout) == ["größe"] and row.endswith("# Größe ✓")
    if env.get("PYTHONIOENCODING") == "ascii":
        assert titles(run.stdout) == ["gr\\xf6\\xdfe"] and row.endswith("# Gr\\xf6\\xdfe \\u2713")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8-sig"])
def test_case_31_a_coding_cookie(tmp_path, encoding):
    text = UMLAUTS.replace('𝔵="中"', "x=1").replace("✓", "ä")
    cookie = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    (tmp_path / "encoded.py").write_bytes((cookie + text).encode(encoding))
    run = run_program("", tmp_path, command=["encoded.py"], env={"PYTHONIOENCODING": "utf-8"})
    assert titles(run.stdout) == ["größe"]
    assert cells(run.stdout, "allocate(4096)  # Größe ä") == ["4.00K", "4.00K", "1"]


def test_case_31_files_are_written_whatever_the_locale(tmp_path):
    source = UMLAUTS.replace("@profile", "").replace("\ngröße()", "") + (
        "from pytorch_memlab_c import LineProfiler\n"
        "with LineProfiler(größe) as p: größe()\n"
        "p.to_json('r.json'); p.to_csv('r.csv'); p.to_html('r.html')\n"
    )
    run_program(source, tmp_path, env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    from pytorch_memlab_c import LineRecords

    assert LineRecords.from_json(tmp_path / "r.json").functions[0].qualname == "größe"
    assert "Größe ✓" in (tmp_path / "r.csv").read_text("utf-8")
    assert "größe" in (tmp_path / "r.html").read_text("utf-8")
