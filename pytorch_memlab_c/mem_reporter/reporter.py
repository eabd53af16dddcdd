"""`MemReporter`: what holds the memory, tensor by tensor."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..chains.keepers import census_of_now
from ..data.device_names import DeviceLike
from ..engine import following
from ..render.showing import show
from . import frames, names, rows
from .display import ReportDisplay
from .keepers import keepers_in
from .levels import measure_levels

if TYPE_CHECKING:
    import pandas

#: Rows shown of a device by default.
MAX_ROWS = 100


class MemReporter:
    """Reports the live tensors and the memory that their storages hold, each storage once, in bytes.

    It keeps no tensor alive, holds models and optimizers by weak references, and runs no code of theirs or of tensors
    but `named_parameters` and `named_buffers`.

    Args:
        model: a module whose parameters and buffers give names to tensors; `add_optimizer` names an optimizer's states.
        pre_collect: collect garbage before each report, so that only what is really held shows. That changes the
            program: unreachable tensors are freed earlier than without.

    Raises:
        TypeError: `model` is no module.
    """

    def __init__(self, model: Any = None, pre_collect: bool = False) -> None:
        following.prepare()
        self._names = names.Names()
        self._pre_collect = pre_collect
        if model is not None:
            self._names.add_model(model)

    def add_optimizer(self, optimizer: Any) -> None:
        """Name the states of an optimizer (`Adam.weight.exp_avg`), now and whenever it makes them.

        Parameters that no model names are named by their place in it: `Adam.groups.0.params.1`.

        Raises:
            TypeError: it is no optimizer.
        """
        self._names.add_optimizer(optimizer)

    def report(
        self,
        verbose: bool = False,
        device: DeviceLike | None = None,
        model: Any = None,
        max_rows: int | None = MAX_ROWS,
        holders: bool = False,
    ) -> None:
        """Print the tensors by device, the largest first; in a notebook, show them as HTML.

        Below a device's rows: elements and bytes in all, and the memory breakdown: tensors seen, allocated, reserved,
        used on the device by all processes, with what no Python tensor holds.

        Args:
            verbose: name the owner of the storage for each tensor that shares one: `view(->owner)`.
            device: "cuda:0", "cuda" (all of them), "cpu", an index or a `torch.device`: only this one.
            model: only what belongs to this module: parameters, buffers, their gradients and optimizer states, and what
                shares their storages. The breakdown stays that of the whole device.
            max_rows: rows a device; the smallest are put together in one line. None shows all.
            holders: also name what keeps the largest storages alive, as `keepers` does. Those in one list or dict are
                one row, and so are the parameters of one model.

        Raises:
            TypeError, ValueError: `device`, `model` or `max_rows` is none.
        """
        show(self._display(verbose, device, model, max_rows, holders))

    def snapshot(self) -> pandas.DataFrame:
        """All live tensors as a DataFrame, one row a tensor, for analysis and `diff`.

        Columns: `name`, `type`, `shape` (a tuple), `dtype`, `device`, `storage_id` (the same for tensors that share a
        storage, and never used again; 0: none), `storage_bytes` and `allocator_bytes` (with rounding; 0 where the
        memory is not from PyTorch's allocator). Both are in the row of the storage's owner and 0 in the rows of other
        tensors on it, so that sums are right.
        """
        sections: list[rows.Section] = []
        ids: dict[int, int] = {}
        with self._found(None) as found:
            if found is not None:
                found.with_empty = True
                sections = rows.sections(found, None, None)
                ids = frames.numbers.number_all(found.torch, found.census)
        return frames.build_frame(sections, ids)

    @staticmethod
    def diff(before: pandas.DataFrame, after: pandas.DataFrame) -> pandas.DataFrame:
        """What changed between two snapshots of this process: `change` is "new", "gone", "grown" or "shrunk".

        One row a storage, the largest change first; what stayed is left out. A tensor with a name (of a model or an
        optimizer) that is on another storage now counts as grown or shrunk, or, if it has as many bytes, as unchanged.

        Returns:
            Columns `change`, `name`, `type`, `shape`, `device`, `bytes_before`, `bytes_after`, `bytes_changed`.

        Raises:
            ValueError: one of them is not a snapshot.
        """
        return frames.compare(before, after)

    def _display(
        self, verbose: bool, device: Any, model: Any, max_rows: int | None, holders: bool = False
    ) -> ReportDisplay:
        if max_rows is not None and (not isinstance(max_rows, int) or max_rows < 0):
            raise ValueError(f"max_rows must be a number of rows, or None for all, not {max_rows!r}")
        if model is not None:
            names.check_model(model)
        with self._found(model) as found:
            if found is None:
                return ReportDisplay([], ["PyTorch is not imported"], verbose)
            wanted = _wanted_device(found.torch, device)
            kept = keepers_in(found, wanted) if holders else {}
            shown = [replace(one, keepers=kept.get(one.device)) for one in rows.sections(found, wanted, max_rows)]
            return ReportDisplay(shown, _notes(found), verbose)

    @contextmanager
    def _found(self, model: Any) -> Iterator[rows.RowSource | None]:
        """All that is alive, for the time of the block; None if PyTorch has not been imported."""
        torch = following.torch_module()
        if torch is None:
            yield None
            return
        following.prepare()
        if self._pre_collect:
            gc.collect()
        named = self._names.now(torch, model)
        scope = None if model is None else {id(tensor) for _, tensor in names.tensors_of_model(model)}
        with census_of_now(torch) as census:
            levels = measure_levels(torch, census)
            yield rows.RowSource(torch, census, named, levels, scope)


def _wanted_device(torch: Any, device: Any) -> str | None:
    """The device's name, or None for all of them.

    Raises:
        ValueError: it is none.
    """
    if device is None:
        return None
    try:
        return str(torch.device(device))
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"{device!r} is not a device; give 'cuda:0', 'cuda', 'cpu', an index or a torch.device"
        ) from error


def _notes(found: rows.RowSource) -> list[str]:
    notes = []
    if found.census.graph_skipped:
        notes.append(
            "a backward pass is running: tensors that autograd alone holds are not listed; their bytes are in "
            "'not reachable from Python'"
        )
    if "cpu" in found.levels and not following.cpu_is_followed():
        notes.append("what PyTorch's CPU allocator has given out cannot be seen on this platform")
    return notes
