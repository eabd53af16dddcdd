"""`report`, `diff`, `merge` and `rss`, and the files that `-o` writes."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from cli_support import python, run, write
from program_support import Block
from report_samples import whole
from run_program import cells, titles

from pytorch_memlab_c import LineProfiler, LineRecords
from pytorch_memlab_c.cli import main
from pytorch_memlab_c.data.columns import valid_columns
from pytorch_memlab_c.data.holder_types import HolderRecords
from pytorch_memlab_c.simulate.models import PRESETS

SIMULATED = "CUDA figures are simulated"

pytestmark = pytest.mark.usefixtures("only_made_up_bytes")

BEFORE = """\
def step(blocks):
    size = 1024
    x = Block(size)
    y = Block(2 * size)
    del x
    return y

def other():
    Block(10)
"""


def records_of(folder: Path, source: str, name: str, file: str = "train.py") -> str:
    """Profiles all functions of a source that stands in `file`; the path of their report."""
    path = folder / file
    path.write_text(source)
    namespace: dict = {"Block": Block, "__name__": "train"}
    exec(compile(source, str(path), "exec"), namespace)
    functions = [value for value in namespace.values() if hasattr(value, "__code__")]
    with LineProfiler(*functions, device="cpu") as profiler:
        for function in functions:
            function(*[None] * function.__code__.co_argcount)
    profiler.to_json(folder / name)
    return str(folder / name)


def answer(capsys, *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_the_changed_line_comes_first_and_then_the_largest(tmp_path, capsys):
    before = records_of(tmp_path, BEFORE, "before.json")
    after = records_of(tmp_path, BEFORE.replace("2 * size", "5 * size"), "after.json")
    table = answer(capsys, "diff", before, after).splitlines()
    assert table[3].split() == "3.00K 6.00K +3.00K 2.00K 5.00K +3.00K 4 step - y = Block(2 * size)".split()
    assert table[4].split() == "+ y = Block(5 * size)".split()
    assert [row.split()[-2:] for row in table[5:7]] == [["del", "x"], ["return", "y"]]
    assert table[5].split()[:6] == ["3.00K", "6.00K", "+3.00K", "-1.00K", "-1.00K", "0.00B"]
    assert table[-1] == "highest tensor_bytes.peak: 3.00K before, 6.00K after (+3.00K)"
    assert "other" not in "\n".join(table)


def test_lines_put_in_between_do_not_move_the_others(tmp_path, capsys):
    before = records_of(tmp_path, BEFORE, "before.json")
    changed = BEFORE.replace("    x =", "    # a comment\n    first = Block(512)\n    x =").replace(
        "\n\ndef", "\n\n\n\ndef"
    )
    after = records_of(tmp_path, changed, "after.json")
    table = answer(capsys, "diff", before, after).splitlines()
    assert table[3].split() == "512.00B 512.00B >4 step + first = Block(512)".split()
    assert [row.split()[:3] + row.split()[6:8] for row in table[4:8]] == [
        ["1.00K", "1.50K", "+512.00B", "3>5", "step"],
        ["3.00K", "3.50K", "+512.00B", "4>6", "step"],
        ["3.00K", "3.50K", "+512.00B", "5>7", "step"],
        ["2.00K", "2.50K", "+512.00B", "6>8", "step"],
    ]
    assert not any("comment" in row for row in table)


def test_a_line_that_changed_among_new_ones_is_known_again(tmp_path, capsys):
    before = records_of(tmp_path, BEFORE, "before.json")
    new = "    label = 'a text of its own'\n    if blocks is None:\n        y = Block(4 * size)\n"
    after = records_of(tmp_path, BEFORE.replace("    y = Block(2 * size)\n", new), "after.json")
    table = answer(capsys, "diff", before, after).splitlines()
    assert table[3].split()[:3] == ["3.00K", "5.00K", "+2.00K"]
    assert table[3].split()[6:] == "4>6 step - y = Block(2 * size)".split()
    assert table[4].split() == "+ y = Block(4 * size)".split()


def test_another_file_of_the_same_function_and_functions_of_one_side(tmp_path, capsys):
    before = records_of(tmp_path, BEFORE, "before.json", "train_a.py")
    after = records_of(tmp_path, BEFORE.replace("other", "another").replace("1024", "2048"), "after.json", "train_b.py")
    table = answer(capsys, "diff", before, after)
    assert f"note: other is only in {before}" in table and f"note: another is only in {after}" in table
    assert table.splitlines()[4].split() == "+ size = 2048".split()
    assert answer(capsys, "diff", before, before).startswith("no line differs\n")


def test_columns_and_functions_of_a_diff(tmp_path, capsys):
    before = records_of(tmp_path, BEFORE, "before.json")
    after = records_of(tmp_path, BEFORE.replace("Block(10)", "Block(30)").replace("1024", "2048"), "after.json")
    table = answer(capsys, "diff", before, after, "-f", "other", "-c", "allocated", "-c", "allocations").splitlines()
    assert table[2].split() == "10.00B 30.00B +20.00B 1 1 0 9 other - Block(10)".split()
    assert len(table) == 6


def test_reports_of_different_devices_are_not_compared(tmp_path, capsys):
    path = records_of(tmp_path, BEFORE, "cpu.json")
    document = json.loads(Path(path).read_text().replace('"cpu"', '"cuda:0"'))
    (tmp_path / "gpu.json").write_text(json.dumps(document))
    table = answer(capsys, "diff", path, str(tmp_path / "gpu.json"))
    assert "note: step: cpu before, cuda:0 after; these are not compared" in table


def test_a_report_again_with_other_functions_columns_and_formats(tmp_path, capsys):
    path = records_of(tmp_path, BEFORE, "report.json")
    text = answer(capsys, "report", path)
    assert titles(text) == ["step", "other"] and text == LineRecords.from_json(path).to_text()
    text = answer(capsys, "report", path, "-f", "other", "-c", "allocated", "-c", "hits")
    assert titles(text) == ["other"] and cells(text, "Block(10)") == ["10.00B", "1"]
    outputs = [str(tmp_path / f"out.{suffix}") for suffix in ("html", "csv", "txt", "json")]
    assert answer(capsys, "report", path, "-f", "step", *[word for o in outputs for word in ("-o", o)]) == ""
    html, table, text, again = (Path(output).read_text() for output in outputs)
    assert "<html" in html and "step" in html
    assert [row["function"] for row in csv.DictReader(io.StringIO(table))] == ["step"] * 6
    assert titles(text) == ["step"]
    assert [function.qualname for function in LineRecords.from_json(again).functions] == ["step"]


def test_ranks_side_by_side(tmp_path, capsys):
    files = [
        records_of(tmp_path, BEFORE, "report.rank0.json"),
        records_of(tmp_path, BEFORE.replace("size = 1024", "size = 4096"), "report.rank1.json"),
    ]
    table = answer(capsys, "merge", *files, "-f", "step").splitlines()
    assert table[0] == "## step"
    assert [row.split() for row in table[2:5]] == [
        ["tensor_bytes", "tensor_bytes", "line", "code"],
        ["peak", "peak"],
        ["rank0", "rank1"],
    ]
    assert table[9].split() == "3.00K 12.00K 4 y = Block(2 * size)".split()
    assert answer(capsys, "merge", *files, "-c", "net", "-o", str(tmp_path / "ranks.csv")) == ""
    rows = list(csv.DictReader(open(tmp_path / "ranks.csv")))
    values = [(row["rank"], int(row["value"])) for row in rows if row["code"].strip() == "y = Block(2 * size)"]
    assert values == [("rank0", 2048), ("rank1", 8192)]


def test_all_that_stands_beside_the_tables_is_in_reports_shown_again(tmp_path, capsys):
    records = whole()
    before = str(tmp_path / "before.rank0.json")
    records.to_json(before)
    assert LineRecords.from_json(before) == records
    text = answer(capsys, "report", before)
    assert text == records.to_text() + "\n" or text == records.to_text()
    for told in (
        "Peak of cuda:0: ",
        "Out of memory on cuda:0",
        "## Lines that keep",
        "## Saved for backward",
        SIMULATED,
    ):
        assert told in text
    answer(capsys, "report", before, "-o", str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text() == records.to_html()
    after = str(tmp_path / "after.rank1.json")
    dataclasses.replace(records, holders=HolderRecords()).to_json(after)
    merged = answer(capsys, "merge", before, after)
    assert "\n## rank0\n\nPeak of cuda:0: " in merged and "## rank1" not in merged
    assert merged.count("Out of memory 3 times; the last one in full below") == 1
    assert merged.count("Out of memory on cuda:0") == 1
    assert f"note: rank0: {SIMULATED}" in merged and f"note: rank1: {SIMULATED}" in merged
    notes = [line for line in answer(capsys, "diff", before, after).splitlines() if line.startswith("note: ")]
    assert notes == [
        f"note: {before}: out of memory on cuda:0 at work.py:2 in work (6 times)",
        f"note: {SIMULATED}: <b>",
    ]


def test_reports_without_the_newer_parts_are_read(tmp_path, capsys):
    document = json.loads(whole().to_json())
    for name in ("holders", "saved", "saved_fields", "growth_fields", "keepers", "run"):
        del document[name]
    del document["fields"][-2:]  # "growth", "net_later_max"
    for line in document["functions"][0]["lines"]:
        line.pop("saved", None)
        for values in line["stats"].values():
            del values[-2:]
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = str(tmp_path / "old.json")
    assert titles(answer(capsys, "report", old))[0] == "work"
    assert answer(capsys, "diff", old, old).startswith("no line differs\n")
    assert "## work" in answer(capsys, "merge", old, old)


ALLOCATES = "from program_support import Block\ndef f():\n    block = Block(1024)\nf()\n"


def test_each_rank_writes_its_own_file(tmp_path):
    write(tmp_path, {"script.py": ALLOCATES})
    for rank in ("0", "1"):
        end = run(tmp_path, "-f", "f", "-o", "report.json", "-o", "r.txt", "script.py", RANK=rank, WORLD_SIZE="2")
        assert f"wrote report.rank{rank}.json" in end.stderr
    assert {path.name for path in tmp_path.glob("r*")} == {
        *("report.rank0.json", "report.rank1.json", "r.rank0.txt", "r.rank1.txt")
    }
    assert titles(run(tmp_path, "-f", "f", "script.py", RANK="0").stdout) == ["f"]
    assert run(tmp_path, "-f", "f", "script.py", RANK="1").stdout == ""  # only one rank speaks on the terminal


def test_what_a_rank_says_has_its_number(tmp_path):
    write(tmp_path, {"script.py": ALLOCATES})
    end = run(tmp_path, "-o", "report.json", "script.py", RANK="1", WORLD_SIZE="2")
    assert "pytorch_memlab_c [rank 1]: wrote report.rank1.json\n" in end.stderr
    assert LineRecords.from_json(tmp_path / "report.rank1.json").run.rank == 1
    printed = run(tmp_path, "script.py", RANK="0", WORLD_SIZE="2").stdout.splitlines()
    assert printed[0].endswith("run script.py") and printed[1].endswith("s, rank 0 of 2")


def test_a_report_on_standard_error_leaves_standard_output_to_the_program(tmp_path):
    write(tmp_path, {"script.py": ALLOCATES + "print('{}')\n"})
    end = run(tmp_path, "--stderr", "script.py")
    assert end.stdout == "{}\n" and titles(end.stderr) == ["<module>", "f"]
    assert "\x1b" not in end.stderr and "\x1b[1m" in run(tmp_path, "--color", "always", "script.py").stdout


def test_verbose_prints_all_lines_and_functions(tmp_path):
    write(tmp_path, {"script.py": ALLOCATES + "def idle():\n    pass\nidle()\n"})
    short, full = (run(tmp_path, *words, "script.py").stdout for words in ([], ["-v"]))
    assert titles(short) == ["<module>", "f"] and "1 function not shown, -v shows all: idle\n" in short
    assert titles(full) == ["<module>", "f", "idle"] and "... " in short and "... " not in full


def test_all_formats_at_the_end_of_a_failing_program_in_another_folder(tmp_path):
    failing = ALLOCATES + "import os, sys\nos.chdir('/')\nsys.path.clear()\nraise SystemExit('failed')\n"
    shadow = "raise ImportError('the name of a module that reports need')\n"
    write(tmp_path, {"src/script.py": failing, "src/html.py": shadow, "src/csv.py": shadow, "src/jinja2.py": shadow})
    (tmp_path / "old.txt").write_text("earlier")
    (tmp_path / "old.txt").chmod(0o640)
    outputs = ["new.json", "new.html", "new.csv", "old.txt"]
    end = run(tmp_path, "-f", "f", *[word for name in outputs for word in ("-o", name)], "src/script.py")
    assert end.returncode == 1 and end.stdout == ""
    assert end.stderr.splitlines() == ["failed", *(f"pytorch_memlab_c: wrote {tmp_path / name}" for name in outputs)]
    assert cells((tmp_path / "old.txt").read_text(), "block = Block(1024)") == ["1.00K", "1.00K", "1"]
    assert stat.S_IMODE((tmp_path / "old.txt").stat().st_mode) == 0o640
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o666 & ~umask
    assert LineRecords.from_json(tmp_path / "new.json").functions[0].qualname == "f"
    assert "block = Block(1024)" in (tmp_path / "new.csv").read_text()
    assert "block = Block(1024)" in (tmp_path / "new.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*outputs, "src"])


def test_a_file_that_cannot_be_written_does_not_concern_the_program(tmp_path):
    write(tmp_path, {"script.py": ALLOCATES + "import os, shutil\nshutil.rmtree('out')\nprint('end')\n"})
    (tmp_path / "out").mkdir()
    end = run(tmp_path, "-f", "f", "-o", "out/a.json", "-o", "b.json", "script.py")
    assert (end.returncode, end.stdout) == (1, "end\n")
    told = end.stderr.splitlines()
    assert told[0].startswith("pytorch_memlab_c: out/a.json could not be written") and told[1].endswith("wrote b.json")


def test_standard_output_that_is_closed_or_not_read(tmp_path):
    write(tmp_path, {"closes.py": ALLOCATES + "import sys\nsys.stdout.close()\n"})
    write(tmp_path, {"none.py": ALLOCATES + "import sys\nsys.stdout = None\n"})
    write(tmp_path, {"replaced.py": ALLOCATES + "import io, sys\nsys.stdout = io.StringIO()\n"})
    for script in ("closes.py", "none.py"):
        end = run(tmp_path, "-f", "f", script)
        assert (end.returncode, end.stderr) == (0, "")
    command = f"{sys.executable} -m pytorch_memlab_c run -p __main__ script.py | true; echo ${{PIPESTATUS[0]}}"
    write(tmp_path, {"script.py": ALLOCATES + "import time; time.sleep(0.3)\n"})
    code = f"import subprocess; print(subprocess.run(['bash', '-c', {command!r}], capture_output=True, text=True))"
    end = python(tmp_path, "-c", code)
    assert "stdout='0\\n', stderr=''" in end.stdout, end.stdout


def test_rss_of_a_command_and_its_exit_code(tmp_path, capfd):
    if not hasattr(os, "wait4"):
        pytest.skip("this system has no wait4")
    path = str(tmp_path / "rss.json")
    program = "x = bytearray(60_000_000); print(input() if False else 'done')"
    assert main(["rss", "-o", path, "--", sys.executable, "-c", program]) == 0
    out, err = capfd.readouterr()
    result = json.loads(Path(path).read_text())
    assert out == "done\n" and err.startswith("pytorch_memlab_c: peak RSS ")
    assert result["status"] == "complete" and 60_000_000 < result["value"] < 200_000_000
    assert f"({result['value']} bytes)" in err
    assert main(["rss", "--", sys.executable, "-c", "raise SystemExit(5)"]) == 5
    assert main(["rss", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) == 128 + 9


@pytest.mark.parametrize("command", ["run", "simulate", "report", "diff", "merge", "rss"])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert "examples:\n  " in capsys.readouterr().out


def test_the_names_that_other_commands_take(tmp_path):
    gpus = python(tmp_path, "gpus", command=["-m", "pytorch_memlab_c"])
    assert gpus.returncode == 0
    assert [line.split()[0] for line in gpus.stdout.splitlines()[1 : 1 + len(PRESETS)]] == list(PRESETS)
    columns = python(tmp_path, "columns", command=["-m", "pytorch_memlab_c"])
    assert columns.returncode == 0
    assert {line.strip() for line in columns.stdout.splitlines() if line.startswith("  ")} == set(valid_columns())
