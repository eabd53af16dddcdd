"""Writing a report to a file: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat


def write_file(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``; an earlier file stays as it was until all is written.

    A link is followed. Pipes and devices (``/dev/stdout``) are written to directly.

    Raises:
        OSError: as ``open`` would; nothing is left behind.
    """
    target = os.path.realpath(path)
    data = text.encode("utf-8", errors="backslashreplace")
    mode = _mode_of(target)
    if mode is None or stat.S_ISREG(mode):
        _replace(target, data, mode)
    else:
        with open(target, "wb") as file:
            file.write(data)


def _mode_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _replace(target: str, data: bytes, mode: int | None) -> None:
    """Write beside ``target`` and put it in its place, with the earlier file's permissions."""
    temporary = f"{target}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
