"""Opening a snapshot's file: as it is, compressed, or standard input, with a progress bar where reading takes long."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, cast

from .errors import SnapshotError

_GZIP, _ZSTANDARD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
#: Seconds before a progress bar is shown.
_PATIENCE = 1.0

ReadInto = Callable[[memoryview], int]


@contextlib.contextmanager
def opened(path: str | os.PathLike[str], progress: bool | None = None) -> Iterator[ReadInto]:
    """A function that fills a buffer with the snapshot's next bytes, decompressed. ``-`` is standard input.

    ``progress``: whether to show a bar; by default on a terminal.

    Raises:
        OSError: as ``open`` would.
        SnapshotError: the file is of a kind that cannot be read.
    """
    with contextlib.ExitStack() as stack:
        raw, total = _raw(path, stack)
        counted = stack.enter_context(_Counted(raw, total, sys.stderr.isatty() if progress is None else progress))
        yield _readinto(stack.enter_context(contextlib.closing(_decompressed(counted))))


def _raw(path: str | os.PathLike[str], stack: contextlib.ExitStack) -> tuple[BinaryIO, int | None]:
    if os.fspath(path) == "-":
        return sys.stdin.buffer, None
    file = stack.enter_context(open(path, "rb"))
    status = os.fstat(file.fileno())
    return file, status.st_size if stat.S_ISREG(status.st_mode) else None


class _Counted(io.RawIOBase):
    """A stream that shows how much of it has been read, once that takes more than a second."""

    def __init__(self, raw: BinaryIO, total: int | None, show: bool) -> None:
        self._raw, self._total, self._show = raw, total, show
        self._read, self._start = 0, time.monotonic()
        self._bar: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._raw.readinto1(buffer)  # type: ignore[attr-defined]  # what is there, not all that fits
        self._read += count
        if self._show and time.monotonic() - self._start > _PATIENCE:
            self._show_bar()
        return count

    def _show_bar(self) -> None:
        if self._bar is None:
            try:
                tqdm = importlib.import_module("tqdm").tqdm
            except ImportError:  # an optional dependency
                self._show = False
                return
            self._bar = tqdm(total=self._total, unit="B", unit_scale=True, desc="reading", leave=False)
        self._bar.update(self._read - self._bar.n)

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.close()


def _decompressed(raw: io.RawIOBase) -> io.BufferedIOBase:
    """The stream as it is, or what it holds compressed: by its first bytes, not by its name."""
    buffered = io.BufferedReader(raw, 1 << 18)
    first = buffered.peek(4)[:4]
    if first.startswith(_ZIP):
        raise SnapshotError("not a memory snapshot: a zip file, as torch.save writes models")
    if first.startswith(_GZIP):
        return gzip.GzipFile(fileobj=buffered, mode="rb")
    if first == _ZSTANDARD:
        return _zstandard(buffered)
    return buffered


def _zstandard(stream: io.BufferedIOBase) -> io.BufferedIOBase:
    try:
        standard: io.BufferedIOBase = importlib.import_module("compression.zstd").ZstdFile(stream)
        return standard
    except ImportError:
        pass
    try:
        import zstandard  # an extra of the package

        decompressor = zstandard.ZstdDecompressor()
        return io.BufferedReader(
            _Zstandard(decompressor.stream_reader(cast(IO[bytes], stream), read_across_frames=True))
        )
    except ImportError:
        raise SnapshotError(
            "compressed by Zstandard: Python 3.14 reads that; for this Python, pip install zstandard"
        ) from None


class _Zstandard(io.RawIOBase):
    """What the package `zstandard` reads; it ends a file that is cut off as if that were whole.

    Where some of it was read, the pickle is cut off, which its reader says; here is the case of nothing at all.
    """

    def __init__(self, reader: Any) -> None:
        self._reader, self._any = reader, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._reader.readinto(buffer)
        self._any = self._any or count > 0
        if not self._any:
            raise SnapshotError("the compressed file is cut off, or nothing was compressed")
        return count


def _readinto(stream: io.BufferedIOBase) -> ReadInto:
    def readinto(buffer: memoryview) -> int:
        try:
            return stream.readinto(buffer)
        except EOFError:
            raise SnapshotError("the compressed file is cut off: it was not written completely") from None
        except SnapshotError:
            raise
        except (OSError, ValueError) as error:
            raise SnapshotError(f"the file cannot be read: {error}") from None
        except Exception as error:
            if type(error).__name__ not in ("ZstdError", "error"):
                raise
            raise SnapshotError(f"damaged compressed data: {error}") from None

    return readinto
