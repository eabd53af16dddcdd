"""How much host memory a process can still take.

Linux gives more than there is and kills the process when it is used, so that has to be asked before bytes are copied
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def available_bytes(proc: Path = Path("/proc"), cgroups: Path = _CGROUPS) -> int | None:
    """Bytes that can be taken without swapping, within the limits of the process's control groups; None: not known."""
    found = [*_of_the_machine(proc), *_of_the_groups(proc, cgroups)]
    return min(found) if found else None


def _of_the_machine(proc: Path) -> Iterator[int]:
    for line in _read(proc / "meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            yield int(value.split()[0]) << 10


def _of_the_groups(proc: Path, cgroups: Path) -> Iterator[int]:
    """What is left in each group around the process; a limit further up binds as well."""
    for line in _read(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = cgroups / "memory" if controllers else cgroups
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        here = root / path.lstrip("/")
        for group in [here, *here.parents]:
            if group != root and root not in group.parents:
                break
            yield from _left_in(group, *names)


def _left_in(group: Path, limit_file: str, usage_file: str) -> Iterator[int]:
    limit, used = _read(group / limit_file).strip(), _read(group / usage_file).strip()
    if limit.isdecimal() and used.isdecimal():
        yield max(0, int(limit) - int(used) + _file_cache(group))


def _file_cache(group: Path) -> int:
    """Cached file pages count as used, but are given up when memory is asked for."""
    for line in _read(group / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file":
            return int(value)
    return 0


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
