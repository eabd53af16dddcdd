"""Names, notes and files of strangers in text: no terminal obeys them, and they make no lines of their own."""

from __future__ import annotations

import json
import pickle
import unicodedata
from pathlib import Path
from typing import Any

import made_up_traces as made_up
import pytest
from cli_support import python
from report_samples import whole

from pytorch_memlab_c import LineRecords
from pytorch_memlab_c.snapshot import Snapshot

EVIL = "\x1b]0;taken\x07\x1b[31mf\r\n## fake\u202e\x9b2J\x7f"
COMMAND = ["-m", "pytorch_memlab_c"]


def hostile(value: Any, more: str = EVIL) -> Any:
    """A document's names and texts with more at their end; keys, kinds and devices stay."""
    if isinstance(value, list):
        return [hostile(item, more) for item in value]
    if not isinstance(value, dict):
        return value
    named = ("qualname", "module", "filename", "function", "file")
    changed = {key: hostile(item, more) for key, item in value.items()}
    changed |= {key: f"{value[key]}{more}" for key in named if isinstance(value.get(key), str)}
    if "notes" in value:
        changed["notes"] = [f"{note}{more}" for note in [*value["notes"], "a note"]]
    return changed


def check(text: str, lines: int | None = None) -> None:
    assert "fake" in text
    assert not [c for c in text if c != "\n" and (unicodedata.category(c) in ("Cc", "Zl", "Zp") or c == "\u202e")]
    assert not any(line.lstrip().startswith("## fake") for line in text.splitlines())
    assert lines is None or text.count("\n") == lines


@pytest.fixture
def report(tmp_path: Path) -> Path:
    document = json.loads(whole().to_json())
    (tmp_path / "plain.json").write_text(json.dumps(hostile(document, "")))
    (tmp_path / "evil.json").write_text(json.dumps(hostile(document)))
    return tmp_path


def test_a_report_from_elsewhere(report: Path) -> None:
    plain = LineRecords.from_json(report / "plain.json").to_text()
    check(LineRecords.from_json(report / "evil.json").to_text(), plain.count("\n"))


@pytest.mark.parametrize("words", [["report"], ["diff", "plain.json"], ["diff", "evil.json"], ["merge", "plain.json"]])
def test_the_command_line(report: Path, words: list[str]) -> None:
    done = python(report, *words, "evil.json", command=COMMAND)
    assert done.returncode == 0, done.stderr
    check(done.stdout)


def test_a_memory_snapshot(tmp_path: Path) -> None:
    trace = made_up.leak(8)
    whole = made_up.snapshot(trace)
    for event in whole["device_traces"][0]:
        event["frames"] = [{**f, "name": f["name"] + EVIL, "filename": f["filename"] + EVIL} for f in event["frames"]]
    check(Snapshot.from_object(whole).to_text())
    for name in ("a.pickle", "b.pickle"):
        (tmp_path / name).write_bytes(pickle.dumps(whole))
    for words in (["snapshot", "a.pickle"], ["merge", "a.pickle", "b.pickle"]):
        check(python(tmp_path, *words, command=COMMAND).stdout)


@pytest.mark.parametrize("command", ["report", "snapshot"])
def test_names_of_files_in_errors(tmp_path: Path, command: str) -> None:
    done = python(tmp_path, command, f"none{EVIL}", command=COMMAND)
    assert done.returncode == 2
    check(done.stderr, 1)


def test_a_pickle_that_names_something(tmp_path: Path) -> None:
    (tmp_path / "bad.pickle").write_bytes(b"\x80\x02c" + b"os\x1b[2J\nfake\x07\n.")
    done = python(tmp_path, "snapshot", "bad.pickle", command=COMMAND)
    assert done.returncode == 2
    check(done.stderr, 1)
