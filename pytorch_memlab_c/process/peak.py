"""The peak of PyTorch's memory on one device: of a block (`peak_memory`) or a callable (`measure_peak_memory`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypedDict

from .. import _native
from ..data.device_names import DeviceLike, slot_name
from ..engine import following
from . import accelerators
from .devices import ACCELERATORS, Device, find_device
from .measurable import check_measurable


class _Measurement(TypedDict):
    device: str
    metric: str
    baseline_bytes: int
    peak_bytes: int
    delta_bytes: int


class PeakMeasurement(_Measurement, total=False):
    """What `measure_peak_memory` gives, ready for JSON: all figures in bytes.

    `metric` says what `baseline_bytes`, `peak_bytes` and `delta_bytes` count: "pytorch_tensor_bytes" on the CPU,
    "pytorch_reserved_bytes" on accelerators. These have the two peaks under their own names, too:
    `reserved_peak_bytes`, which is `peak_bytes`, and `allocated_peak_bytes`, the most that live tensors held.
    """

    allocated_peak_bytes: int
    reserved_peak_bytes: int


class peak_memory(_native.WindowBlock):
    """Measures the peak of a device's memory inside a `with` block.

    Example::

        with peak_memory("cuda:0") as p:
            train_step()
        print(p.allocated_peak_bytes, p.delta_bytes, p.reserved_peak_bytes)

    Blocks may nest and overlap in any way, on any threads, also inside profiled lines: each has its own running
    maximum. PyTorch's counters (`max_memory_allocated()`) are not changed. What other threads allocate meanwhile
    counts too. The figures are live while the block is open and stay as they are after it;
    in the child of a fork they stay as they were. A block may be entered again, which begins anew.

    Args:
        device: "cpu", "cuda", "cuda:1", "xpu", "mps" or a `torch.device`; `cuda` alone is the current one.

    Raises:
        NotImplementedError: PyTorch has no support for this kind of device, or does not show its memory.
        RuntimeError: the device is not there; or the block is entered while it is open.
    """

    def __init__(self, device: DeviceLike) -> None:
        self._device = find_device(device)
        check_measurable(self._device)
        self._window = _native.PeakWindow()
        self._entered = self._incomplete = False

    def _begin(self) -> None:
        if self._window.is_open:
            raise RuntimeError("this peak_memory block is open already; make another one")
        following.prepare()
        if self._device.kind in ACCELERATORS:
            accelerators.begin_window()
        self._entered = True
        self._incomplete = False

    def _end(self) -> None:
        if self._device.kind in ACCELERATORS:
            accelerators.end_window()
        self._incomplete = following.is_displaced()
        if self._incomplete:
            warnings.warn(f"peak_memory of {self.device}: {following.UNSEEN}", RuntimeWarning, stacklevel=2)

    @property
    def incomplete(self) -> bool:
        """Whether another tool took the calls of PyTorch's allocators within the block: figures lack what came then."""
        return self._incomplete

    @property
    def device(self) -> str:
        """The device's name: `cpu`, `cuda:0`, ..."""
        return self._device.name

    @property
    def baseline_bytes(self) -> int:
        """Bytes held by live tensors when the block began."""
        return self._figures().start_allocated_bytes

    @property
    def allocated_peak_bytes(self) -> int:
        """The most bytes that live tensors held at one time within the block.

        They are counted as `max_memory_allocated()` does; on the CPU, bytes asked of PyTorch's CPU allocator.
        """
        return self._figures().peak_allocated_bytes

    @property
    def peak_bytes(self) -> int:
        """The same as `allocated_peak_bytes`; those of `measure_peak_memory` are what its metric says."""
        return self.allocated_peak_bytes

    @property
    def delta_bytes(self) -> int:
        """`allocated_peak_bytes - baseline_bytes`; never negative."""
        figures = self._figures()
        return figures.peak_allocated_bytes - figures.start_allocated_bytes

    @property
    def reserved_peak_bytes(self) -> int | None:
        """The most bytes that the caching allocator had taken from the device within the block.

        They are counted as `max_memory_reserved()` does. None on the CPU, which has no caching allocator.
        """
        return self._figures().peak_reserved_bytes if self._device.kind != "cpu" else None

    def __repr__(self) -> str:
        if not self._entered:
            return f"<peak_memory {self.device}: not entered yet>"
        state = "open" if self._window.is_open else "closed"
        peak = f"peak {self.peak_bytes:,} bytes, {self.delta_bytes:,} above the start"
        return f"<peak_memory {self.device}, {state}: {peak}>"

    def _figures(self) -> _native.WindowFigures:
        if not self._entered:
            raise RuntimeError("this peak_memory block has not been entered: there are no figures yet")
        return self._window.figures(self._device.slot)


class peaks_of_devices(_native.WindowBlock):
    """The same for every device at once, the CPU and all CUDA devices, also one that is first used inside the block.

    PyTorch need not be there, and is not imported.
    """

    def __init__(self) -> None:
        self._window = _native.PeakWindow()

    def _begin(self) -> None:
        following.prepare()

    def _end(self) -> None:
        pass

    def deltas(self) -> dict[str, int]:
        """By device: the most bytes that live tensors held within the block, above its start.

        Only devices on which anything was seen.
        """
        torch = following.torch_module()
        cuda = torch is not None and torch.cuda._is_compiled()
        slots = [0] if following.cpu_is_followed() else []
        slots += [slot for slot in _native.devices_used() if slot and cuda]
        figures = {slot_name(slot): self._window.figures(slot) for slot in slots}
        return {name: found.peak_allocated_bytes - found.start_allocated_bytes for name, found in figures.items()}


def measure_peak_memory(workload: Callable[[], object], *, device: DeviceLike) -> PeakMeasurement:
    """Call `workload()` once and return the peak of PyTorch's memory on a device while it ran.

    On the CPU the metric is `pytorch_tensor_bytes`: bytes asked of PyTorch's CPU allocator, exact, with a baseline of
    what live tensors held. On CUDA, XPU and MPS it is `pytorch_reserved_bytes`: what the caching allocator had taken
    from the device, which is in `reserved_peak_bytes`, too; `allocated_peak_bytes` is the most that live tensors held,
    another scope. Accelerators are synchronized before and after. There is no warm-up; an exception of the workload
    passes through. Calls may nest and run on several threads; what other threads allocate meanwhile counts too.

    Args:
        workload: a callable without arguments.
        device: where the workload runs: "cpu", "cuda:0", "xpu", "mps" or a `torch.device`.

    Returns:
        `device`, `metric`, `baseline_bytes`, `peak_bytes`, `delta_bytes` (the difference, never negative) and, on
        accelerators, `allocated_peak_bytes` and `reserved_peak_bytes`; ready for JSON.

    Raises:
        NotImplementedError: PyTorch has no support for this kind of device, or does not show its memory.
        RuntimeError: the device is not there.
    """
    block = peak_memory(device)
    block._device.synchronize()
    with block:
        workload()
        block._device.synchronize()
    return _measurement(block._device, block._figures())


def _measurement(device: Device, figures: _native.WindowFigures) -> PeakMeasurement:
    if device.kind == "cpu":
        return _statement(device, "pytorch_tensor_bytes", figures.start_allocated_bytes, figures.peak_allocated_bytes)
    reserved = _statement(device, "pytorch_reserved_bytes", figures.start_reserved_bytes, figures.peak_reserved_bytes)
    reserved["allocated_peak_bytes"] = figures.peak_allocated_bytes
    reserved["reserved_peak_bytes"] = figures.peak_reserved_bytes
    return reserved


def _statement(device: Device, metric: str, baseline: int, peak: int) -> PeakMeasurement:
    return {
        "device": device.name,
        "metric": metric,
        "baseline_bytes": baseline,
        "peak_bytes": peak,
        "delta_bytes": peak - baseline,
    }
