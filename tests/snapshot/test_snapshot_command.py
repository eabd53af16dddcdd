"""The command `snapshot`, and `diff` and `merge` of snapshots: made-up files, no torch."""

from __future__ import annotations

import collections
import csv
import gzip
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import made_up_traces as made_up
import pytest
from cli_support import python
from made_up_traces import M, Trace

COMMAND = ["-m", "pytorch_memlab_c"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "leak.pickle").write_bytes(pickle.dumps(made_up.snapshot(made_up.leak())))
    (tmp_path / "short.pickle").write_bytes(pickle.dumps(made_up.snapshot(made_up.leak(20))))
    return tmp_path


def run(folder: Path, *words: str) -> str:
    done = python(folder, *words, command=COMMAND)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_the_text_names_the_line_that_leaks(folder: Path) -> None:
    text = run(folder, "snapshot", "leak.pickle")
    assert "active 172.00M, reserved" in text
    assert "asked for 1.00G at model.py:20 in forward" in text
    assert "(2.00M each time" in text.partition("Lines that keep more and more")[2].splitlines()[1]
    assert "log.py:7 in remember" in text.partition("Lines that keep more and more")[2].splitlines()[1]


def test_several_files_and_standard_input(folder: Path) -> None:
    text = run(folder, "snapshot", "leak.pickle", "short.pickle", "--at", "end")
    assert text.count("## cuda:0") == 2 and "short.pickle" in text
    with open(folder / "leak.pickle", "rb") as file:
        done = subprocess.run([sys.executable, *COMMAND, "snapshot", "-"], stdin=file, capture_output=True, text=True)
    assert done.returncode == 0 and "active 172.00M" in done.stdout


def test_files_by_their_suffixes(folder: Path) -> None:
    words = [word for name in ("a.html", "a.json", "a.csv", "a.txt") for word in ("-o", name)]
    done = python(folder, "snapshot", "leak.pickle", *words, command=COMMAND)
    assert done.returncode == 0 and done.stdout == "" and done.stderr.startswith("pytorch_memlab_c: wrote ")
    assert "<canvas" in (folder / "a.html").read_text()
    assert json.loads((folder / "a.json").read_text())["devices"][0]["name"] == "cuda:0"
    with open(folder / "a.csv", newline="") as file:
        rows = {row["function"]: row for row in csv.DictReader(file)}
    assert rows["remember"]["peak"] == str(128 * M)
    assert (folder / "a.txt").read_text() == run(folder, "snapshot", "leak.pickle")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.pickle"], "nothing.pickle: No such file or directory"),
        (["empty"], "empty: the file is empty"),
        (["cut.pickle"], "cut.pickle: the file is cut off after 3,"),
        (["model.pickle"], "model.pickle: not a memory snapshot: it names collections.OrderedDict"),
        (["closed.pickle"], "closed.pickle: Permission denied"),
        (["."], ".: Is a directory"),
        (["leak.pickle", "--at", "noon"], "'noon' is no moment; give peak, oom, end"),
        (["leak.pickle", "--device", "cuda:3"], "the snapshot has no device 'cuda:3'; it has cuda:0"),
        (["leak.pickle", "-o", "page.pdf"], "page.pdf: the file's suffix says what is written"),
        (["leak.pickle", "short.pickle", "-o", "page.html"], "-o is for one file"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, words: list[str], message: str) -> None:
    (folder / "empty").write_bytes(b"")
    (folder / "cut.pickle").write_bytes((folder / "leak.pickle").read_bytes()[:4000])
    (folder / "model.pickle").write_bytes(pickle.dumps(collections.OrderedDict(weight=1)))
    (folder / "closed.pickle").write_bytes(b"x")
    (folder / "closed.pickle").chmod(0)
    if words == ["closed.pickle"] and os.geteuid() == 0:
        pytest.skip("root may read everything")
    done = python(folder, "snapshot", *words, command=COMMAND)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_diff_shows_what_one_holds_more(folder: Path) -> None:
    text = run(folder, "diff", "short.pickle", "leak.pickle")
    level = next(line for line in text.splitlines() if line.startswith("cuda:0 peak active"))
    assert level.split()[3:] == ["84.00M", "172.00M", "+88.00M"]
    row = text.partition("Held when the peak is reached")[2].splitlines()[2]
    assert row.split() == ["40.00M", "128.00M", "+88.00M", "log.py:7", "in", "remember"]
    assert "no line differs" in run(folder, "diff", "leak.pickle", "leak.pickle")


def test_a_report_and_a_snapshot_are_not_compared(folder: Path) -> None:
    (folder / "report.json").write_text("{}")
    done = python(folder, "diff", "leak.pickle", "report.json", command=COMMAND)
    assert done.returncode == 2 and "report.json: not a memory snapshot, and the others are" in done.stderr


def test_merge_shows_a_folder_of_ranks(folder: Path) -> None:
    (folder / "ranks").mkdir()
    for rank in range(11):
        trace = Trace()
        for _ in range(rank + 1):
            trace.allocate(2 * M, "/job/a.py:1 f")
        (folder / "ranks" / f"rank{rank}.pickle.gz").write_bytes(gzip.compress(pickle.dumps(made_up.snapshot(trace))))
    (folder / "ranks" / "notes.txt").write_text("no snapshot")
    text = run(folder, "merge", "ranks")
    assert text.splitlines()[0].split() == [f"rank{rank}" for rank in range(11)]
    peaks = next(line for line in text.splitlines() if line.startswith("cuda:0 peak active")).split()[3:]
    assert peaks == [f"{2 * (rank + 1)}.00M" for rank in range(11)]
    done = python(folder, "merge", "ranks", "-o", "ranks.csv", command=COMMAND)
    assert done.returncode == 0
    with open(folder / "ranks.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["rank"], row["peak"]) for row in rows] == [(f"rank{r}", str(2 * M * (r + 1))) for r in range(11)]


def test_merge_shows_a_folder_of_reports(folder: Path) -> None:
    (folder / "ranks").mkdir()
    (folder / "train.py").write_text("def f():\n    return 1\nf()\n")
    for rank in (0, 1, 10):
        done = python(folder, "run", "-o", f"ranks/report.rank{rank}.json", "train.py", command=COMMAND)
        assert done.returncode == 0, done.stderr
    text = run(folder, "merge", "ranks")
    assert ["rank0", "rank1", "rank10"] in [line.split() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "no memory snapshot and no report in JSON"),
        (["notes.txt"], "no memory snapshot and no report in JSON"),
        (["a.pickle", "a.json"], "memory snapshots and reports in JSON; name the files"),
    ],
    ids=["empty", "others", "both"],
)
def test_merge_of_a_folder_that_does_not_say_what_is_meant(folder: Path, files: list[str], said: str) -> None:
    (folder / "ranks").mkdir()
    for name in files:
        (folder / "ranks" / name).write_bytes((folder / "leak.pickle").read_bytes() if "pickle" in name else b"{}")
    done = python(folder, "merge", "ranks", command=COMMAND)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_diff_of_folders_names_what_is_wrong(folder: Path) -> None:
    done = python(folder, "diff", ".", ".", command=COMMAND)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "directory" in done.stderr


def test_run_needs_a_name_that_says_what_it_is(folder: Path) -> None:
    (folder / "train.py").write_text("print('ran')\n")
    done = python(folder, "run", "--snapshot", "out.txt", "train.py", command=COMMAND)
    assert done.returncode == 2 and "give a name that ends in .pickle" in done.stderr
    done = python(folder, "run", "--snapshot", "out.pickle", "--snapshot-entries", "0", "train.py", command=COMMAND)
    assert done.returncode == 2 and "at least 1" in done.stderr
    done = python(folder, "run", "--snapshot", "out.pickle", "train.py", command=COMMAND)
    assert done.returncode == 0 and "did not use CUDA" in done.stderr and not (folder / "out.pickle").exists()
