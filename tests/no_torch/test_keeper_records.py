"""What kept tensors alive as a part of a report: shown, and the same after JSON."""

from __future__ import annotations

import json

import pytest
from report_samples import whole

from pytorch_memlab_c import LineRecords
from pytorch_memlab_c.data.keeper_types import KeeperRecords
from pytorch_memlab_c.render.sections import sections_html, sections_text

TITLE = "Who keeps it, when memory ran out"


def test_text_has_a_row_for_each_and_no_control_characters():
    text = sections_text(whole()).partition(f"## {TITLE}\n\n")[2].partition("\n\n")[0]
    header, first, second = text.splitlines()
    assert header.split() == ["bytes", "device", "kept", "alive", "by"]
    assert first.split(maxsplit=2) == ["9.00M", "cuda:0", "1,490 tensors in Meter.values <- meter"]
    assert second.split()[:2] == ["1.00M", "cpu"] and "\x1b" not in second and "<b>['" in second


def test_only_the_device_asked_for():
    assert "Meter.values" not in sections_text(whole(), device="cpu")
    assert "Meter.values" in sections_text(whole(), device="cuda:0") and "<b>['" not in sections_text(
        whole(), device="cuda:0"
    )
    assert all("Meter.values" in sections_text(whole(), device=view) for view in ("all", "target", None))


@pytest.mark.parametrize("page", [False, True])
def test_html_is_escaped(page):
    html = str(sections_html(whole(), page=page))
    assert TITLE in html and "Meter.values &lt;- meter" in html and "&lt;b&gt;[" in html and "<b>[" not in html


def test_json_has_it_and_older_reports_have_none():
    records = whole()
    loaded = LineRecords.from_json(records.to_json())
    assert loaded == records and loaded.keepers.kept[0].tensors == 1490
    document = json.loads(records.to_json())
    del document["keepers"]
    older = LineRecords.from_json(json.dumps(document))
    assert older.keepers == KeeperRecords() and "Who keeps it" not in older.to_text()
