"""Random loops (growth_model.py) with tensors.

Usage: growth_tensors.py DEVICE FIRST LAST; reports what the profiler says otherwise than the model, for these seeds.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from growth_model import check
from program_support import report

DEVICE = sys.argv[1]


def make(size: int) -> Any:
    return torch.empty(size, dtype=torch.uint8, device=DEVICE)


def join(old: Any, size: int) -> Any:
    return torch.cat((make(0) if old is None else old, make(size)))


def weight(size: int) -> Any:
    return torch.nn.Parameter(torch.zeros(size // 4, device=DEVICE))


def main() -> None:
    weight(4).sum().backward()
    names = {"make": make, "join": join, "weight": weight}
    seeds = range(int(sys.argv[2]), int(sys.argv[3]))
    report(wrong=[text for seed in seeds for text in check(seed, names, DEVICE, autograd=True)], loops=len(seeds))


if __name__ == "__main__":
    main()
