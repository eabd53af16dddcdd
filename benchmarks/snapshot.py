"""What reading a memory snapshot costs: the whole report here, beside `pickle.load`, PyTorch's viewer, and ptmem.

Files of about 100 MB and 1 GB are made first: events as PyTorch records them, with stacks of 20 to 40 frames that
Python's pickler writes once. Each reader runs in a process of its own; figures are processor seconds (user and system)
and the highest resident memory. A reader that takes more than half of the machine's memory fails.
Usage: snapshot.py [--sizes 100,1000] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import resource
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: Bytes of the file for one event, about.
BYTES_AN_EVENT = 66
READERS = {
    "pytorch-memlab snapshot": "from pytorch_memlab_c.cli import main; main(['snapshot', FILE])",
    "pytorch-memlab snapshot -o page.html": (
        "from pytorch_memlab_c.cli import main; main(['snapshot', FILE, '-o', FILE + '.html'])"
    ),
    "pickle.load": "import pickle; pickle.load(open(FILE, 'rb'))",
    "torch.cuda._memory_viz trace_plot": (
        "import pickle; from torch.cuda._memory_viz import trace_plot; trace_plot(pickle.load(open(FILE, 'rb')))"
    ),
    "ptmem": "from ptmem.cli import MemoryProfileData, print_summary; print_summary(MemoryProfileData(FILE), FILE)",
}
NEEDS = {"torch.cuda._memory_viz trace_plot": "torch", "ptmem": "ptmem"}


class Pickler:
    """Writes a snapshot as Python's pickler would: texts and stacks once, then references."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "wb", 1 << 20)
        self.file.write(b"\x80\x04")
        self.memo: dict[object, int] = {}
        self.count = 0

    def keep(self) -> int:
        self.file.write(b"\x94")
        self.count += 1
        return self.count - 1

    def begin(self, opcode: bytes) -> None:
        self.file.write(opcode)
        self.keep()
        self.file.write(b"(")

    def text(self, text: str) -> None:
        if text in self.memo:
            self.get(self.memo[text])
            return
        data = text.encode()
        self.file.write(b"\x8c" + bytes([len(data)]) + data)
        self.memo[text] = self.keep()

    def get(self, place: int) -> None:
        self.file.write(b"h" + bytes([place]) if place < 256 else b"j" + struct.pack("<I", place))

    def number(self, value: int) -> None:
        if 0 <= value < 256:
            self.file.write(b"K" + bytes([value]))
        elif value < 1 << 31:
            self.file.write(b"J" + struct.pack("<i", value))
        else:
            data = value.to_bytes((value.bit_length() + 8) // 8, "little")
            self.file.write(b"\x8a" + bytes([len(data)]) + data)

    def pair(self, key: str, value: int | str) -> None:
        self.text(key)
        self.text(value) if isinstance(value, str) else self.number(value)

    def stack(self, frames: tuple[tuple[str, str, int], ...]) -> None:
        self.text("frames")
        if frames in self.memo:
            self.get(self.memo[frames])
            return
        self.file.write(b"]")
        self.memo[frames] = self.keep()
        self.file.write(b"(")
        for name, filename, line in frames:
            self.begin(b"}")
            self.pair("name", name)
            self.pair("filename", filename)
            self.pair("line", line)
            self.file.write(b"u")
        self.file.write(b"e")


def stacks(count: int) -> list[tuple[tuple[str, str, int], ...]]:
    """Call stacks of a program of some size: PyTorch's frames inside, the program's outside."""
    chance = random.Random(1)

    def frames() -> Iterator[tuple[str, str, int]]:
        for depth in range(chance.randint(5, 15)):
            line = chance.randrange(2000)
            yield f"forward{depth}", f"/env/lib/python3.12/site-packages/torch/nn/modules/module{depth}.py", line
        for depth in range(chance.randint(15, 25)):
            yield f"layer{depth}", f"/job/model/part{depth}.py", chance.randrange(300)

    return [tuple(frames()) for _ in range(count)]


def events(count: int) -> Iterator[tuple[str, int, int, int]]:
    """Action, address, size and stack: training steps whose activations are freed in reverse."""
    chance = random.Random(2)
    base, done = 0x7F0000000000, 0
    shapes = [(512 * chance.randrange(1, 4000), chance.randrange(2000)) for _ in range(400)]
    addresses = [base]
    for size, _ in shapes:
        addresses.append(addresses[-1] + -(-size // (2 << 20)) * (2 << 20))
    for address, following in zip(addresses, addresses[1:]):
        yield "segment_alloc", address, following - address, 0
        done += 1
    while done < count:
        for place, (size, stack) in enumerate(shapes):
            yield "alloc", addresses[place], size, stack
        for place in reversed(range(len(shapes))):
            yield "free_requested", addresses[place], shapes[place][0], shapes[place][1]
            yield "free_completed", addresses[place], shapes[place][0], shapes[place][1]
        done += 3 * len(shapes)


def make(path: Path, megabytes: int) -> int:
    """A snapshot of about this size; how many events it has."""
    pickler, calls, count = Pickler(path), stacks(2000), 0
    pickler.begin(b"}")
    pickler.text("segments")
    pickler.file.write(b"]")
    pickler.keep()
    pickler.text("device_traces")
    pickler.begin(b"]")
    pickler.file.write(b"]")
    pickler.keep()
    for action, address, size, stack in events(megabytes * 1_000_000 // BYTES_AN_EVENT):
        if count % 1000 == 0:
            pickler.file.write(b"(" if not count else b"e(")
        count += 1
        pickler.begin(b"}")
        pickler.pair("action", action)
        pickler.pair("addr", address)
        pickler.pair("size", size)
        pickler.pair("stream", 0)
        pickler.pair("time_us", 1_700_000_000_000_000 + count * 3)
        pickler.pair("compile_context", "N/A")
        pickler.pair("user_metadata", "")
        pickler.text("pool_id")
        pickler.file.write(b"K\x00K\x00\x86")
        pickler.keep()
        pickler.stack(calls[stack])
        pickler.file.write(b"u")
    pickler.file.write(b"eeu.")
    pickler.file.close()
    return count


def limit_memory() -> None:
    """A reader that needs more than half of the machine's memory fails, instead of the machine."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    resource.setrlimit(resource.RLIMIT_AS, (half, half))


def measure(code: str, path: Path) -> tuple[float, float, bool]:
    """Processor seconds, megabytes of resident memory, and whether it ran to its end."""
    child = os.fork()
    if not child:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
        limit_memory()
        os.execv(sys.executable, [sys.executable, "-c", code.replace("FILE", repr(str(path)))])
    _, status, used = os.wait4(child, 0)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return used.ru_utime + used.ru_stime, used.ru_maxrss / unit, status == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100,1000", help="megabytes of the files")
    parser.add_argument("--keep", help="a folder for the files, which stay; otherwise they are removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for size in map(int, options.sizes.split(",")):
            path = Path(options.keep or temporary) / f"made-{size}.pickle"
            count = make(path, size)
            print(f"{path.stat().st_size / 1e6:.0f} MB, {count:,} events")
            for name, code in READERS.items():
                if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
                    print(f"  {name:38} not installed")
                    continue
                seconds, megabytes, fine = measure(code, path)
                print(f"  {name:38} {seconds:7.2f} s {megabytes:8.0f} MB{'' if fine else '  failed'}", flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
