"""Random programs that allocate on simulated GPUs in every way that a line profiler may get wrong."""

from __future__ import annotations

import random
import sys

#: From Python 3.12 on a naive tracer counts the rounds of a comprehension.
EACH = "[{} for _ in range({})]" if sys.version_info < (3, 12) else "[*map(lambda _: {}, range({}))]"
SIZES = (1, 400, 512, 40_000, 300_000, 1 << 20, 3_000_000, 12_000_000, 33_000_000)


class Writer:
    """Writes one program: functions `f0`.. and generators `g0`.., of which `measured` are to be profiled."""

    def __init__(self, seed: int, devices: int) -> None:
        self.random = random.Random(seed)
        self.devices = devices
        self.functions = self.random.randint(2, 4)
        self.generators = self.random.randint(1, 2)
        self.lines: list[str] = []

    def source(self) -> str:
        for i in range(self.functions):
            self.function(f"def f{i}(store, depth):", False)
        for i in range(self.generators):
            self.function(f"def g{i}(store, depth):", True)
        return "\n".join(self.lines) + "\n"

    def measured(self) -> list[str]:
        names = [f"f{i}" for i in range(self.functions)] + [f"g{i}" for i in range(self.generators)]
        return ["f0"] + [name for name in names[1:] if self.random.random() < 0.7]

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def function(self, header: str, generator: bool) -> None:
        self.put(0, header)
        self.put(1, "a = b = c = None")
        for _ in range(self.random.randint(3, 7)):
            self.statement(1, 0)
            if generator and self.random.random() < 0.6:
                self.put(1, "yield a")
        self.put(1, "yield b" if generator else "return c")
        self.put(0, "")

    def tensor(self) -> str:
        size, device = self.random.choice(SIZES), self.random.randrange(self.devices)
        return f"torch.empty({size}, dtype=torch.uint8, device='cuda:{device}')"

    def name(self) -> str:
        return self.random.choice("abc")

    def statement(self, indent: int, nesting: int) -> None:
        kinds = [self.allocate] * 4 + [self.free] * 2 + [self.simple] * 4
        if nesting < 2:
            kinds += [self.call, self.call, self.loop, self.attempt, self.iterate, self.branch]
        self.random.choice(kinds)(indent, nesting)

    def block(self, indent: int, nesting: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, nesting + 1)

    def allocate(self, indent: int, nesting: int) -> None:
        self.put(indent, f"{self.name()} = {self.tensor()}")

    def free(self, indent: int, nesting: int) -> None:
        self.put(indent, self.random.choice([f"{self.name()} = None", "store and store.pop()", "store.clear()"]))

    def simple(self, indent: int, nesting: int) -> None:
        name, other = self.name(), self.name()
        texts = [
            f"store.append({self.tensor()})",
            f"{other} = {name} + 1 if {name} is not None else None",
            f"{other} = ({name} + 1) * 2 if {name} is not None else None",
            f"{other} = {name}[: 10] if {name} is not None else None",
            f"spike({self.tensor()}, {self.random.choice(SIZES)})",
            f"store.extend({EACH.format(self.tensor(), self.random.randint(0, 3))})",
            "torch.cuda.empty_cache()",
            f"record({name}); {name} = None",
            f"record({self.tensor()}); {other} = {self.tensor()}",
            f"{other} = second_of(\n{'    ' * indent}    {self.tensor()},\n{'    ' * indent}    {self.tensor()})",
        ]
        self.put(indent, self.random.choice(texts))

    def call(self, indent: int, nesting: int) -> None:
        target = self.random.randrange(self.functions)
        self.put(indent, f"{self.name()} = f{target}(store, depth + 1) if depth < 3 else None")

    def loop(self, indent: int, nesting: int) -> None:
        self.put(indent, f"for i in range({self.random.randint(0, 3)}):")
        self.block(indent + 1, nesting)

    def branch(self, indent: int, nesting: int) -> None:
        self.put(indent, f"if len(store) % 2 == {self.random.randint(0, 1)}:")
        self.block(indent + 1, nesting)
        self.put(indent, "elif depth == 1:")
        self.block(indent + 1, nesting)
        self.put(indent, "else:")
        self.block(indent + 1, nesting)

    def attempt(self, indent: int, nesting: int) -> None:
        self.put(indent, "try:")
        self.block(indent + 1, nesting)
        if self.random.random() < 0.6:
            self.put(indent + 1, f"fail({self.tensor()})")
        self.put(indent, "except Failure:")
        self.block(indent + 1, nesting)
        if self.random.random() < 0.3:
            self.put(indent, "finally:")
            self.block(indent + 1, nesting)

    def iterate(self, indent: int, nesting: int) -> None:
        target = self.random.randrange(self.generators)
        self.put(indent, f"for {self.name()} in g{target}(store, depth + 1) if depth < 3 else ():")
        self.block(indent + 1, nesting)
        if self.random.random() < 0.4:
            self.put(indent + 1, "break")
