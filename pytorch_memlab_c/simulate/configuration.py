"""From what the user asks for, in code or in the environment variable, to the devices to simulate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..data.sizes import is_size, parse_size
from .models import GIB, MIB, PRESETS, GpuModel

MAX_DEVICES = 8


@dataclass(frozen=True)
class Configuration:
    """The devices to simulate."""

    model: GpuModel
    count: int


def parse_memory(memory: str | int) -> int:
    """Bytes of ``"24 GB"``, ``"512 MiB"`` or a number of bytes. GB and GiB both mean 2**30, as on GPU boxes."""
    if isinstance(memory, int) and not isinstance(memory, bool):
        size = memory
    elif isinstance(memory, str) and is_size(_one_space(memory)):
        size = parse_size(_one_space(memory))
    else:
        raise ValueError(f'memory={memory!r} is not a size: write it like "24 GB" or "512 MiB", or in bytes')
    if not 2 * MIB <= size <= 1 << 44:
        raise ValueError(f"memory={memory!r} is not a device's memory: it must be from 2 MiB to 16384 GiB")
    return size


def _one_space(text: str) -> str:
    return " ".join(text.split())


def _check_capability(capability: Sequence[int]) -> tuple[int, int]:
    numbers = tuple(capability) if isinstance(capability, (tuple, list)) else ()
    if (
        len(numbers) != 2
        or not all(type(n) is int for n in numbers)
        or not (5 <= numbers[0] <= 20 and 0 <= numbers[1] <= 9)
    ):
        raise ValueError(f"capability={capability!r} is not a compute capability: write it like (8, 9)")
    return numbers[0], numbers[1]


def _find_preset(preset: str) -> GpuModel:
    name = preset.strip().lower() if isinstance(preset, str) else ""
    found = [name] if name in PRESETS else [full for full in PRESETS if full.partition("-")[0] == name]
    if len(found) > 1:
        raise ValueError(f"{preset!r} is several GPUs: name one of {', '.join(found)}")
    if not found:
        raise ValueError(f"unknown GPU {preset!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[found[0]]


def custom_model(memory: str | int, capability: Sequence[int] | None) -> GpuModel:
    """A model of so much memory; the compute capability is (8, 0) if None.

    Raises:
        ValueError: it is no memory of a device, or no compute capability.
    """
    size = parse_memory(memory)
    name = f"Simulated GPU {size / GIB:g} GB" if size >= GIB else f"Simulated GPU {size / MIB:g} MB"
    return GpuModel(name, size, _check_capability(capability or (8, 0)), 100, 40 * MIB, 384)


def devices_asked_for(
    preset: str | None, count: int, memory: str | int | None, capability: Sequence[int] | None
) -> Configuration:
    """The devices that `enable` was asked for.

    Raises:
        ValueError: an unknown preset, or a `count`, `memory` or `capability` that is none.
    """
    if type(count) is not int or not 1 <= count <= MAX_DEVICES:
        raise ValueError(f"count={count!r}: the number of devices is from 1 to {MAX_DEVICES}")
    if preset is not None and (memory is not None or capability is not None):
        raise ValueError("give a preset, or memory= and capability=, not both")
    if preset is not None:
        return Configuration(_find_preset(preset), count)
    if memory is None:
        raise ValueError(f'give a preset ({", ".join(PRESETS)}) or memory="24 GB"')
    return Configuration(custom_model(memory, capability), count)


def parse_environment(text: str) -> Configuration:
    """``GPU[:COUNT]``, where GPU is a preset, or ``MEMORY[@CAPABILITY]`` such as ``24GB@8.9``."""
    gpu, colon, count = text.partition(":")
    memory, at, capability = gpu.partition("@")
    if colon and not count.strip().isdecimal():
        raise ValueError(f"{count!r} is not a number of devices")
    devices = int(count) if colon else 1
    if not at and not is_size(_one_space(memory)):
        return devices_asked_for(gpu, devices, None, None)
    numbers = re.fullmatch(r"\s*(\d+)\.(\d+)\s*", capability) if at else None
    if at and numbers is None:
        raise ValueError(f"{capability!r} is not a compute capability: write it like 8.9")
    return devices_asked_for(None, devices, memory, (int(numbers[1]), int(numbers[2])) if numbers else None)
