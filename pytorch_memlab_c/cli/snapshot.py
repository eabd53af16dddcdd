"""`snapshot`: PyTorch's memory snapshots by line; and what `diff` and `merge` do with them."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Sequence
from pathlib import Path

from ..render.files import write_file
from ..snapshot import Snapshot
from ..snapshot.snapshot import MOMENTS
from .outputs import checked_paths, print_text, tell
from .usage import UsageError

_SUFFIXES = (".html", ".json", ".csv", ".txt")
#: How files begin that may be snapshots: a pickle, gzip, Zstandard.
_BEGINNINGS = (b"\x80", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


def snapshot(options: argparse.Namespace) -> int:
    """The command: each file's report is printed, or one file's report is written."""
    paths = checked_paths(options.output, _SUFFIXES)
    if paths and len(options.files) > 1:
        raise UsageError("-o is for one file; `merge` shows several side by side")
    for number, file in enumerate(options.files):
        loaded = load_snapshot(file)
        if paths:
            _write(loaded, paths, options)
        else:
            print_text(("\n" if number else "") + _asked(loaded.to_text, options))
    return 0


def load_snapshot(path: str) -> Snapshot:
    """The snapshot of a file; `UsageError` for one that is none."""
    try:
        return Snapshot.load(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    except MemoryError:
        raise UsageError(f"{path}: there is not enough memory to read it") from None


def _asked(make: object, options: argparse.Namespace, *arguments: object) -> str:
    """What a method of the snapshot makes with the command's options."""
    try:
        made = make(  # type: ignore[operator]
            *arguments,
            options.at or MOMENTS,
            device=options.device,
            frames=options.frames,
            skip=options.skip,
        )
        return str(made)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None


def _write(loaded: Snapshot, paths: Sequence[str], options: argparse.Namespace) -> None:
    for path in paths:
        suffix = Path(path).suffix.lower()
        if suffix == ".html":
            _asked(loaded.to_html, options, path)
        elif suffix == ".json":
            _asked(loaded.to_json, options, path)
        elif suffix == ".csv":
            frame = loaded.to_dataframe(device=options.device, frames=options.frames, skip=options.skip)
            write_file(path, frame.to_csv(index=False))
        else:
            write_file(path, _asked(loaded.to_text, options))
    tell(f"wrote {' and '.join(paths)}")


# ---- several ----


def are_snapshots(paths: Sequence[str]) -> bool:
    """Whether the files that `diff` or `merge` was given are snapshots, by how they begin."""
    found = [_is_snapshot(path) for path in paths]
    if any(found) and not all(found):
        other = paths[found.index(False)]
        raise UsageError(f"{other}: not a memory snapshot, and the others are")
    return bool(found) and all(found)


def _is_snapshot(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4).startswith(_BEGINNINGS)
    except OSError:
        return False


def files_in(paths: Sequence[str]) -> list[str]:
    """The files, and those of the folders: their memory snapshots, or their reports in JSON."""
    found: list[str] = []
    for path in paths:
        found += _files_of_folder(path) if os.path.isdir(path) else [path]
    return found


def _files_of_folder(folder: str) -> list[str]:
    inside = sorted(glob.glob(os.path.join(glob.escape(folder), "**", "*"), recursive=True), key=_natural)
    snapshots = [file for file in inside if os.path.isfile(file) and _is_snapshot(file)]
    reports = [file for file in inside if file.lower().endswith(".json") and os.path.isfile(file)]
    if snapshots and reports:
        raise UsageError(f"{folder}: the folder has memory snapshots and reports in JSON; name the files to merge")
    if not snapshots and not reports:
        raise UsageError(f"{folder}: the folder has no memory snapshot and no report in JSON")
    return snapshots or reports


def _natural(path: str) -> list[tuple[int, str]]:
    """Rank 10 comes after rank 9."""
    parts: list[str] = []
    for character in path:
        if parts and parts[-1].isdecimal() == character.isdecimal():
            parts[-1] += character
        else:
            parts.append(character)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def diff_snapshots(before: str, after: str) -> str:
    """The text of `diff`."""
    from ..snapshot.comparison_text import render_difference

    return render_difference(load_snapshot(before).report(("peak",)), load_snapshot(after).report(("peak",)))


def merge_snapshots(paths: Sequence[str], names: Sequence[str], outputs: Sequence[str]) -> None:
    """`merge`: written to the files, or printed."""
    from ..snapshot.comparison_text import ranks_csv, render_ranks

    reports = [load_snapshot(path).report(("peak",)) for path in paths]
    for output in outputs:
        write_file(output, (ranks_csv if output.endswith(".csv") else render_ranks)(reports, names))
        tell(f"wrote {output}")
    if not outputs:
        print_text(render_ranks(reports, names))
