"""What is known of PyTorch's binaries is written down twice, for C and for Python: both say the same."""

from __future__ import annotations

import re
from pathlib import Path

from pytorch_memlab_c.data import torch_abi

HEADER = Path(__file__).parents[2] / "native" / "base" / "torch_abi.h"


def test_sizes_are_the_same_in_c_and_python() -> None:
    defined = re.findall(r"#define PML_TORCH_(SMALL_\w+) \(UINT64_C\((\d+)\) << (\d+)\)", HEADER.read_text())
    assert {name: int(value) << int(bits) for name, value, bits in defined} == {
        "SMALL_REQUEST": torch_abi.SMALL_REQUEST,
        "SMALL_SEGMENT": torch_abi.SMALL_SEGMENT,
    }


def test_segments_for_requests() -> None:
    mebibyte = 1 << 20
    expected = {1: 2, mebibyte: 2, mebibyte + 1: 20, 10 * mebibyte - 1: 20, 10 * mebibyte: 10, 10 * mebibyte + 1: 12}
    assert {asked: torch_abi.segment_for(asked) // mebibyte for asked in expected} == expected
