"""A file that PyTorch writes by name: put in its place when it is whole."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give a name beside `path` to write to; at the end that file takes the place of `path`, unless there was an error.

    What is no regular file (`/dev/null`) is written to itself.

    Raises:
        OSError: at once, if no file can be written there.
    """
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(f"the trace cannot be written to {os.fspath(path)!r}: it is a folder")
    if os.path.exists(target) and not os.path.isfile(target):  # a device or a pipe: nothing may take its place
        yield target
        return
    ending = ".gz" if target.endswith(".gz") else ""  # PyTorch compresses by the name
    temporary = f"{target}.{os.getpid()}-{secrets.token_hex(4)}.tmp{ending}"
    open(temporary, "xb").close()
    try:
        yield temporary
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
