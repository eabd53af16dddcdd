"""Reports whose values are of the wrong kind anywhere: one clear line, or a report that can be shown."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_support import python
from report_samples import whole

from pytorch_memlab_c import LineRecords
from pytorch_memlab_c.cli.diff import render_comparison
from pytorch_memlab_c.cli.differences import Comparison
from pytorch_memlab_c.cli.loading import load_records
from pytorch_memlab_c.cli.merge import merge_records
from pytorch_memlab_c.cli.usage import UsageError

DOCUMENT = json.loads(whole().to_json())
WRONG = [None, "x", "9" * 50, [], [[1]], {}, {"a": 1}, True, -1, 2**63, 10**400, 1e308, float("nan")]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value of the document can be replaced."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value[:6]):
            yield from places(inner, (*path, i))


def damaged(path: tuple[Any, ...], wrong: Any) -> str:
    document = copy.deepcopy(DOCUMENT)
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = wrong
    return json.dumps(document)


def show(records: LineRecords) -> None:
    records.to_text(device="all")
    records.to_text()
    records.to_html()
    records.to_csv()
    assert LineRecords.from_json(records.to_json()) == records
    render_comparison(Comparison([whole(), records], ["a", "b"], (), ()))
    list(merge_records([whole(), records], (), ()))


@pytest.mark.parametrize("seed", range(20))
def test_a_wrong_value_anywhere(tmp_path: Path, seed: int) -> None:
    randomly = random.Random(seed)
    found = list(places(DOCUMENT))
    refused = 0
    for _ in range(40):
        path, wrong = randomly.choice(found), randomly.choice(WRONG)
        (tmp_path / "report.json").write_text(damaged(path, wrong))
        try:
            show(load_records(str(tmp_path / "report.json")))
        except UsageError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 300, (path, wrong, error)
    assert refused > 10


@pytest.mark.parametrize(
    ("path", "wrong", "said"),
    [
        (("functions", 0, "lines", 1, "hits"), 10**400, "functions[0].lines[1].hits is 1000"),
        (
            ("functions", 0, "lines", 0, "stats", "target", 3),
            "9",
            "functions[0].lines[0].stats['target'].reserved_peak",
        ),
        (("holders", "peaks", 0, "holders", 0, 1), None, "holders.peaks[0].holders[0].bytes is None"),
    ],
)
def test_the_command_line_names_the_place(tmp_path: Path, path: tuple[Any, ...], wrong: Any, said: str) -> None:
    (tmp_path / "report.json").write_text(damaged(path, wrong))
    done = python(tmp_path, "report", "report.json", command=["-m", "pytorch_memlab_c"])
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "a damaged report" in done.stderr and said in done.stderr
