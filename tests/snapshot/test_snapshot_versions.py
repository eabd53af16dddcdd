"""Files that other versions of PyTorch made on the simulated GPU, by files/train.py, beside its counters then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytorch_memlab_c.snapshot import Snapshot
from pytorch_memlab_c.snapshot.text import name_of

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize("version", ["2.1.2", "2.6.0", "2.9.1", "2.14.1"])
def test_a_file_of_another_version_is_replayed_to_the_byte(version: str) -> None:
    figures = json.loads((FILES / f"torch-{version}.json").read_text())
    assert figures.pop("torch").startswith(version)
    snapshot = Snapshot.load(FILES / f"torch-{version}.pickle.gz")
    (device,) = snapshot.report().devices
    got = {f"{name}_peak": size for name, (size, _) in device.peaks.items()}
    got |= {f"{name}_current": size for name, size in device.end._asdict().items()}
    assert got == figures
    assert snapshot.notes == device.notes == ()
    end = {name_of(held.place): held.blocks for held in device.moments[-1].holders}
    assert end["train.py:13 in remember"] == 12
    assert [moment.asked for moment in device.moments if moment.kind == "oom"] == [1 << 42]
    assert snapshot.taken > 1.5e9 or version == "2.1.2"
