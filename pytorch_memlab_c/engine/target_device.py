"""Which device a line is charged to and shown for: parsing devices, and the process-wide target."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..data import advice
from ..data.device_names import CPU, DeviceLike, read_device, slot_name
from . import following

_FORMS = "an index (1), 'cuda', 'cuda:1', 'cpu' or a torch.device"
_target: int | None = None
_ever_set = False


class set_target_gpu:
    """Choose the device whose bytes lines are charged with, for the whole process.

    `gpu_id` is an int, a str (`"cuda:1"`, `"1"`, `"cpu"`), a `torch.device`, or None for the default. It may be called
    before profiling and inside profiled functions: a line is charged to the device that is the target when it ends.
    As a context manager it puts the target before it back at the end.

    Raises:
        TypeError: it is not a device.
        ValueError: there is no such device.
        RuntimeError: a CUDA device, where PyTorch has no CUDA.
    """

    def __init__(self, gpu_id: DeviceLike | None) -> None:
        self._before = _target
        _set(None if gpu_id is None else available_slot(gpu_id))

    def __enter__(self) -> set_target_gpu:
        return self

    def __exit__(self, *exc: object) -> None:
        _set(self._before)


def _set(slot: int | None) -> None:
    global _target, _ever_set
    following.prepare()
    _target = slot
    following.target_chosen = slot is not None
    _ever_set = _ever_set or slot is not None
    _native.set_target(_default_slot() if slot is None else slot)


def _default_slot() -> int:
    torch = following.torch_module()
    return 1 if torch is None or _cuda_devices(torch) else 0


def _cuda_devices(torch: Any) -> int:
    """Asked in the way that does not initialise CUDA where it can be avoided: a later fork must still work."""
    count: int = torch.cuda.device_count()
    return count


def target_name() -> str:
    """The device that is the target now."""
    return slot_name(_default_slot() if _target is None else _target)


def default_view() -> str | None:
    """What a report shows that names no device: None for the target of each line, else the device's name."""
    torch = following.torch_module()
    if torch is not None and not _cuda_devices(torch):
        return "cpu"  # whatever a line was charged to
    if _ever_set:
        return None
    return "cpu" if torch is None else "cuda:0"


def parse_slot(device: Any) -> int:
    """The engine's slot of a device: 0 for the CPU, 1 + i for `cuda:i`. Whether it is there is not checked.

    Raises:
        TypeError: it is no name, index or `torch.device`.
        ValueError: no device of this name can be profiled.
    """
    named = read_device(_usual_form(device))
    if named is None and not isinstance(device, str):
        raise TypeError(f"{device!r} is not a device; give {_FORMS}")
    kind, index = named or ("", None)
    if kind == CPU and not index:
        return 0
    if kind == "cuda":
        return _cuda_slot(_current_cuda() if index is None else index)
    raise ValueError(f"{str(named or device)!r} is not a device that can be profiled; give {_FORMS}")


def _usual_form(device: Any) -> Any:
    """A name as `read_device` takes it: also in capitals, with spaces around it, or an index as text."""
    if not isinstance(device, str):
        return device
    name = device.strip().lower()
    return int(name) if name.isdecimal() else name


def _cuda_slot(index: int) -> int:
    if index < 0:
        raise ValueError(f"{index} is not the index of a CUDA device; they count from 0")
    if index >= _native.MAX_DEVICES - 1:
        raise ValueError(f"cuda:{index} is out of range; devices are cuda:0 to cuda:{_native.MAX_DEVICES - 2}")
    return 1 + index


def _current_cuda() -> int:
    torch = following.torch_module()
    return torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0


def available_slot(device: Any) -> int:
    """Like `parse_slot`, and an error that says why if the device is not there."""
    slot = parse_slot(device)
    torch = following.torch_module()
    if slot == 0 or torch is None:
        return slot
    name = slot_name(slot)
    if not torch.cuda._is_compiled():
        raise RuntimeError(
            f"{name} was asked for, but this build of PyTorch ({torch.__version__}) has no CUDA; "
            f"use {advice.device('cpu')}, or install the CUDA build"
        )
    count = _cuda_devices(torch)
    if count == 0:
        raise RuntimeError(
            f"{name} was asked for, but there is no CUDA device here; use {advice.device('cpu')}, or "
            f"{advice.simulated_gpu()} for a simulated one"
        )
    if slot > count:
        there = ", ".join(slot_name(i) for i in range(1, count + 1))
        raise ValueError(f"{name} is not there; this process has {there}")
    return slot
