"""What is wrong with a file that should be a memory snapshot, in one sentence."""

from __future__ import annotations

from ..render.text import clean


class SnapshotError(ValueError):
    """The file is no memory snapshot, or a damaged one. Nothing in it has been run."""


_SENTENCES = {
    "empty": "the file is empty",
    "cut off": "the file is cut off after {offset:,} bytes: it was not written completely",
    "no pickle": "not a memory snapshot: no pickle of protocol 2 to 5",
    "global": "not a memory snapshot: it names {detail} (byte {offset:,}). Only plain data is read, nothing is run",
    "not plain": "not a memory snapshot: opcode {detail} at byte {offset:,} is no plain data. Nothing is run",
    "number": "not a memory snapshot: the number at byte {offset:,} needs more than 64 bits",
    "damaged": "a damaged pickle: its opcodes do not fit together at byte {offset:,}",
    "too much": "not a memory snapshot: far more other data than any snapshot has (byte {offset:,})",
    "no snapshot": "not a memory snapshot: a pickle without segments and device_traces",
}


def explained(error: ValueError) -> SnapshotError:
    """From what the reader in C raises: (what, offset, detail)."""
    if len(error.args) != 3 or error.args[0] not in _SENTENCES:
        return SnapshotError(str(error))
    what, offset, detail = error.args
    if what == "not plain" and not detail:
        what = "number"
    return SnapshotError(clean(_SENTENCES[what].format(offset=offset, detail=detail or "a global")))
