"""The public object: one memory snapshot, read and replayed."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _native
from .errors import SnapshotError, explained
from .opening import ReadInto, opened

if TYPE_CHECKING:
    import pandas

    from .memory import DeviceMemory
    from .places import Places
    from .report_types import SnapshotReport

#: What a report shows where nothing else is asked for.
MOMENTS = ("peak", "oom", "end")
#: Keys of a file that is known to hold more than the rows.
_KNOWN = {
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "host_segments",
    "host_traces",
}


class Snapshot:
    """What `torch.cuda.memory._dump_snapshot` left: events, allocations and segments of each device.

    `Snapshot.load(path)` reads a file, `Snapshot.from_object(snapshot)` what `torch.cuda.memory._snapshot()` or
    `torch.cuda.memory_snapshot()` returned. Neither runs anything that a file holds, nor needs PyTorch.
    """

    def __init__(self, readinto: ReadInto, name: str, modified: float = 0.0) -> None:
        """A snapshot from a function that fills a buffer with the next bytes of its pickle.

        Raises:
            SnapshotError: it is none.
        """
        self.name = name
        self._modified = modified
        try:
            self._data = _native.SnapshotData(readinto)
        except SnapshotError:
            raise
        except ValueError as error:
            raise explained(error) from None

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, progress: bool | None = None) -> Snapshot:
        """Read a file, which may be compressed (.gz, .zst); ``-`` is standard input.

        ``progress``: show a bar once it takes more than a second; by default on a terminal.

        Raises:
            OSError: as ``open`` would.
            SnapshotError: it is no memory snapshot, or damaged.
        """
        with opened(path, progress) as readinto:
            modified = os.path.getmtime(path) if os.path.isfile(path) else 0.0
            return cls(readinto, os.fspath(path), modified)

    @classmethod
    def from_object(cls, snapshot: Any, name: str = "snapshot") -> Snapshot:
        """From the dict of ``torch.cuda.memory._snapshot()``, or the list of ``torch.cuda.memory_snapshot()``.

        Raises:
            SnapshotError: it is neither.
        """
        import io

        try:
            plain = pickle.dumps(snapshot, protocol=4)
        except Exception as error:
            raise SnapshotError(f"not a memory snapshot: {error}") from None
        return cls(io.BytesIO(plain).readinto, name)

    # ---- what it holds ----

    @functools.cached_property
    def devices(self) -> tuple[DeviceMemory, ...]:
        """The devices that have events or segments, in their order; pinned host memory is the last."""
        from .memory import HOST, DeviceMemory

        numbers = self._data.devices()
        order = sorted(range(len(numbers)), key=lambda i: (numbers[i] == HOST, numbers[i]))
        backend = "xpu" if "PYTORCH_XPU_ALLOC_CONF" in self.allocator_settings else "cuda"
        names = ["host (pinned)" if number == HOST else f"{backend}:{number}" for number in numbers]
        return tuple(DeviceMemory(self._data, i, names[i]) for i in order)

    @property
    def allocator_settings(self) -> dict[str, Any]:
        """PyTorch's settings of its allocator; empty where the file has none."""
        settings = self._other.get("allocator_settings")
        return settings if isinstance(settings, dict) else {}

    @property
    def annotations(self) -> list[dict[str, Any]]:
        """What the program marked by `torch.profiler.record_function`, in order."""
        found = self._other.get("external_annotations")
        return found if isinstance(found, list) else []

    @property
    def taken(self) -> float:
        """When it was taken, in seconds since 1970: by its last event, or by its file; 0 where neither is known."""
        return max((device.last_time for device in self.devices), default=0.0) or self._modified

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say about the file as a whole."""
        unknown = sorted({*self._data.unknown(), *(key for key in self._other if key not in _KNOWN)})
        notes = []
        if unknown:
            notes.append(f"the file has what this version does not know, which is left out: {', '.join(unknown)}")
        if not self.devices:
            notes.append("nothing was recorded and nothing was allocated")
        return tuple(notes)

    @property
    def _other(self) -> dict[str, Any]:
        other = self._data.other
        return other if isinstance(other, dict) else {}

    # ---- reports ----

    def report(
        self,
        at: Iterable[str] = MOMENTS,
        *,
        device: str | None = None,
        frames: str = "user",
        skip: Sequence[str] = (),
        timeline: bool = False,
    ) -> SnapshotReport:
        """Everything that a report shows.

        ``at``: moments: "peak", "oom" (each allocation that failed), "end", "12.5s", "#1200" (events done), "50%".
        ``frames``: which frame of a stack names it: "user", the innermost outside of PyTorch and installed packages;
        "torch", PyTorch's too; "all", C++ frames too. ``skip``: packages that are passed over.

        Raises:
            ValueError: there is no such moment, device or kind of frames.
        """
        from .reporting import build_report

        return build_report(
            self.name,
            self.devices,
            self.places(frames, skip),
            tuple(at),
            device,
            timeline,
            frames=frames,
            skip=tuple(skip),
            taken=self.taken,
            notes=self.notes,
        )

    def places(self, frames: str = "user", skip: Sequence[str] = ()) -> Places:
        """The lines that the snapshot's stacks stand for."""
        from .places import FRAMES, Places

        if frames not in FRAMES:
            raise ValueError(f"frames is one of {', '.join(FRAMES)}, not {frames!r}")
        return Places(self._data, frames, skip)

    def to_text(self, at: Iterable[str] = MOMENTS, **options: Any) -> str:
        """The report as text; options as for `report`."""
        from .text import render_text

        return render_text(self.report(at, **options))

    def to_html(self, path: str | os.PathLike[str], at: Iterable[str] = MOMENTS, **options: Any) -> None:
        """Write the report as one page that works offline; options as for `report`."""
        from ..render.files import write_file
        from .page import render_page

        write_file(path, render_page(self.report(at, timeline=True, **options)))

    def to_json(self, path: str | os.PathLike[str], at: Iterable[str] = MOMENTS, **options: Any) -> None:
        """Write the report as JSON; options as for `report`."""
        from ..render.files import write_file
        from .json_form import dumps

        write_file(path, dumps(self.report(at, **options)))

    def to_dataframe(self, **options: Any) -> pandas.DataFrame:
        """One row a line and device; options as for `report`.

        ``peak``, ``at_peak`` (what it holds when the device's peak is reached), ``live``, ``allocated``, ``before`` and
        ``growth`` are bytes; ``times`` and ``live_blocks`` numbers; ``median_life`` is in seconds.
        """
        from .frame import lines_frame

        return lines_frame(self.report(("peak",), **options))

    def allocations_dataframe(self, device: str | None = None, **options: Any) -> pandas.DataFrame:
        """One row an allocation; options as for `report`.

        Its ``address``, the ``size`` of its block, the bytes ``requested``, the events that made, released and freed it
        (0: before the recording; missing: not in it), times in seconds, line, stream and pool.
        """
        from .frame import allocations_frame

        return allocations_frame(self.devices, self.places(**options), device)
