"""Advice in messages: for Python, and for the command line."""

from __future__ import annotations

import pytest

from pytorch_memlab_c.data import advice
from pytorch_memlab_c.data.columns import require_recorded


def test_each_piece_of_advice_has_both_forms():
    python = [
        advice.other_device("cuda:1"),
        advice.other_device("cpu"),
        advice.record_saved(),
        advice.record_columns(["a"]),
    ]
    with advice.for_command_line():
        shell = [
            advice.other_device("cuda:1"),
            advice.other_device("cpu"),
            advice.record_saved(),
            advice.record_columns(["a"]),
        ]
    assert python[:2] == ["pass device='cuda:1' or call set_target_gpu(1)", "pass device='cpu'"]
    assert shell == ["pass --device cuda:1", "pass --device cpu", "--saved", "with -c a"]
    assert advice.other_device("cpu") == "pass device='cpu'"


@pytest.mark.parametrize("column", ["saved", "inactive_split_bytes.all.peak"])
def test_errors_about_columns(column):
    with pytest.raises(ValueError, match="LineProfiler"):
        require_recorded([column], ())
    with advice.for_command_line(), pytest.raises(ValueError, match=r"--saved|-c inactive_split_bytes\.all\.peak"):
        require_recorded([column], ())
