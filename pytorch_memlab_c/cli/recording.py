"""`run --snapshot`: PyTorch's own memory history, recorded beside the report and written as a snapshot."""

from __future__ import annotations

import contextlib
import gzip
import os
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

from ..engine.torch_import import after_torch_import
from .outputs import of_this_rank, tell
from .usage import UsageError

#: Bytes that an event takes in memory while it is recorded, with a stack of usual depth (measured).
_BYTES_AN_EVENT = 1000
_SUFFIXES = (".pickle", ".pkl", ".pickle.gz", ".pkl.gz")


class Recording:
    """A memory history from the first use of CUDA to the end; and what there was when memory first ran out.

    CUDA is not initialised for it: a program that never uses it, or forks before it does, runs as it would.
    """

    def __init__(self, path: str, entries: int) -> None:
        """Raises `UsageError` for a file that cannot be written."""
        if not path.endswith(_SUFFIXES):
            raise UsageError(f"--snapshot {path}: give a name that ends in {', '.join(_SUFFIXES)}")
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK) or os.path.isdir(path):
            raise UsageError(f"--snapshot {path}: it cannot be written there")
        if entries < 1:
            raise UsageError("--snapshot-entries: at least 1")
        self._path = of_this_rank([os.path.abspath(path)])[0]
        self._entries = entries
        self._home = os.getpid()
        self._torch: Any = None
        self._failed = False

    def start(self) -> None:
        """Record once the program has imported PyTorch and uses CUDA."""
        after_torch_import(self._torch_imported)

    def _torch_imported(self, torch: ModuleType) -> None:
        with contextlib.suppress(AttributeError):  # a build without CUDA
            torch.cuda._lazy_call(lambda: self._record(torch))

    def _record(self, torch: Any) -> None:
        try:
            torch.cuda.memory._record_memory_history(max_entries=self._entries, stacks="python")
            torch._C._cuda_attach_out_of_memory_observer(self._out_of_memory)
        except Exception as error:  # the program goes on
            tell(f"--snapshot: the memory history could not be recorded: {error}")
            return
        self._torch = torch
        most = self._entries * _BYTES_AN_EVENT / (1 << 20)
        tell(f"recording up to {self._entries:,} events a device: {most:,.0f} MB of memory when all are used")

    def _out_of_memory(self, device: int, asked: int, used: int, free: int) -> None:
        """Called by PyTorch before it raises. The first one is written; the last snapshot has all that came later."""
        if self._failed or os.getpid() != self._home:
            return
        self._failed = True
        path = Path(self._path)
        name = path.name.partition(".")[0]
        self._write(str(path.with_name(f"{name}.oom{path.name[len(name) :]}")), "when memory ran out")

    def finish(self) -> None:
        """Write the snapshot of the end."""
        if self._torch is None:
            tell("--snapshot: nothing was recorded, for the program did not use CUDA")
        else:
            self._write(self._path, "at the end")

    def _write(self, path: str, when: str) -> None:
        try:
            snapshot = self._torch.cuda.memory._snapshot()
            _dump(snapshot, path)
            events = sum(map(len, snapshot["device_traces"]))
            size = os.path.getsize(path) / (1 << 20)
            tell(f"wrote {path}, the memory {when}: {events:,} events, {size:,.1f} MB")
        except Exception as error:
            tell(f"{path} could not be written: {error}")


def _dump(snapshot: object, path: str) -> None:
    """The whole file or none."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with gzip.open(temporary, "wb") if path.endswith(".gz") else open(temporary, "wb") as file:
            pickle.dump(snapshot, file)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
