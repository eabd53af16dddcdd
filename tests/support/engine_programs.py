"""Random programs without PyTorch, whose tables must be the same whichever engine reports the events.

Usage: engine_programs.py FIRST LAST; reports {seed: {function: {line: figures}}}.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
from typing import Any

from program_support import OwnedBlock as Block
from program_support import report

from pytorch_memlab_c import LineProfiler, profile
from pytorch_memlab_c.data.record_types import LineRecord

HEAD = """\
class Over(Exception):
    pass
class Guard:
    def __enter__(self): return Block(7)
    def __exit__(self, kind, value, trace): return kind is Over
"""


class Writer:
    """Writes functions that call each other, generators, coroutines and asynchronous generators, all of them profiled
    or not."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = [HEAD]
        self.names: list[str] = []

    def source(self) -> str:
        for i in range(self.random.randint(2, 4)):
            self.function(f"f{i}", "def", "return kept")
        for i in range(self.random.randint(1, 2)):
            self.function(f"g{i}", "def", "yield kept")
        for i in range(self.random.randint(1, 2)):
            self.function(f"c{i}", "async def", "return kept")
        self.function("a0", "async def", "yield kept")
        return "\n".join(self.lines) + "\n"

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def function(self, name: str, kind: str, last: str) -> None:
        self.names.append(name)
        self.kind = name[0]
        self.put(0, f"{kind} {name}(depth):")
        self.put(1, "kept = []; more = None")
        self.block(1, 0)
        self.put(1, last)

    def block(self, indent: int, nesting: int) -> None:
        for _ in range(self.random.randint(2, 5) if nesting == 0 else self.random.randint(1, 2)):
            self.random.choice(self.kinds(nesting))(indent, nesting)

    def kinds(self, nesting: int) -> list[Any]:
        kinds = [self.allocate, self.allocate, self.one_line, self.call, self.call, self.fail]
        if nesting < 2:
            kinds += [self.loop, self.loop, self.attempt, self.attempt, self.guard, self.branch, self.iterate]
        if self.kind in "ga":
            kinds += [self.give, self.give]
        if self.kind in "ca":
            kinds += [self.wait, self.wait]
        return kinds

    def size(self) -> int:
        return self.random.randint(1, 1000)

    def allocate(self, indent: int, nesting: int) -> None:
        self.put(indent, self.random.choice([f"kept.append(Block({self.size()}))", f"more = Block({self.size()})"]))

    def one_line(self, indent: int, nesting: int) -> None:
        size = self.size()
        self.put(
            indent,
            self.random.choice(
                [
                    f"more = [Block({size}) for _ in range(3)]",
                    f"for i in range(4): more = Block({size})",
                    f"kept.append([[Block({size}) for _ in range(2)] for _ in range(2)])",
                    f"more = Block({size}); more = None; kept.append(Block({size}))",
                    f"more = {{i: Block({size}) for i in range(3) if i}}",
                    f"while len(kept) < 2: kept.append(Block({size}))",
                    f"more = [\n{'    ' * indent}    Block({size})\n{'    ' * indent}    for _ in range(3)\n"
                    f"{'    ' * indent}]",
                    f"more = (lambda: Block({size}))(); kept = kept[-3:]",
                    f"kept.append(\n{'    ' * indent}    Block(\n{'    ' * indent}        {size}\n"
                    f"{'    ' * indent}    )\n{'    ' * indent})",
                    f"more = Block({size}) if depth % 2 else None",
                    "more = sum(1 for _ in range(3))",
                ]
            ),
        )

    def call(self, indent: int, nesting: int) -> None:
        name = f"f{self.random.randint(0, 3)}"
        how = [f"more = call({name!r}, depth)", f"more = list(call('g{self.random.randint(0, 1)}', depth) or ())[:2]"]
        how += ["more = next(iter(call('g0', depth) or ()), None)", f"in_thread({name!r}, depth)"]
        how += [f"run(call('c{self.random.randint(0, 1)}', depth))"] if self.kind in "fg" else []
        self.put(indent, self.random.choice(how))

    def fail(self, indent: int, nesting: int) -> None:
        self.put(indent, f"if depth == {self.random.randint(0, 3)}: raise {self.random.choice(['Over', 'KeyError'])}")

    def loop(self, indent: int, nesting: int) -> None:
        self.put(indent, f"for i in range({self.random.randint(0, 4)}):")
        self.block(indent + 1, nesting + 1)
        if self.random.random() < 0.3:
            self.put(indent + 1, self.random.choice(["if i == 2: break", "if i == 1: continue", "continue"]))

    def iterate(self, indent: int, nesting: int) -> None:
        self.put(indent, "for item in call('g0', depth) or ():")
        self.block(indent + 1, nesting + 1)
        self.put(indent + 1, self.random.choice(["break", "pass", "more = item"]))

    def attempt(self, indent: int, nesting: int) -> None:
        self.put(indent, "try:")
        self.block(indent + 1, nesting + 1)
        form = self.random.choice(("except", "finally", "both"))
        if form != "finally":
            self.put(indent, f"except {self.random.choice(['Over', 'KeyError', 'Exception'])}:")
            self.block(indent + 1, nesting + 1)
        if form != "except":
            self.put(indent, "finally:")
            self.allocate(indent + 1, nesting + 1)

    def guard(self, indent: int, nesting: int) -> None:
        self.put(indent, "with Guard() as more:")
        self.block(indent + 1, nesting + 1)

    def branch(self, indent: int, nesting: int) -> None:
        self.put(indent, f"if (depth + {self.random.randint(0, 1)}) % 2:")
        self.block(indent + 1, nesting + 1)
        self.put(indent, "else:")
        self.block(indent + 1, nesting + 1)

    def give(self, indent: int, nesting: int) -> None:
        how = [
            "yield more",
            "yield more",
            "more = yield",
            "yield; yield depth",
            "for i in range(3): yield Block(i + 1)",
        ]
        if self.kind == "g":
            how += ["more = yield from call('g0', depth) or ()"]
            how += ["for i in range(3): more = yield from (call('g1', depth) or ())"]
            how += ["while len(kept) < 3: kept.append((yield from (call('g0', depth) or ())))"]
        self.put(indent, self.random.choice(how))

    def wait(self, indent: int, nesting: int) -> None:
        how = ["await nothing()", "more = await other(depth)", "await asyncio.sleep(0)"]
        how += ["more = [x async for x in call('a0', depth) or empty()]"]
        how += ["for i in range(3): await nothing()", "while len(kept) < 3: kept.append(await other(depth))"]
        how += ["async for more in call('a0', depth) or empty(): await nothing()"]
        self.put(indent, self.random.choice(how))


def scope_of(source: str, seed: int) -> dict[str, Any]:
    """The program's names, with the helpers that its text uses. Calls end by a depth and a number in all."""
    left = [150]

    def call(name: str, depth: int) -> Any:
        left[0] -= 1
        return scope[name](depth + 1) if depth < 4 and left[0] > 0 and name in scope else None

    async def other(depth: int) -> Any:
        made = call("c0", depth)
        return await made if made is not None else None

    async def nothing() -> None:
        pass

    async def empty() -> Any:
        for item in ():
            yield item

    def run(coroutine: Any) -> Any:
        if coroutine is None:
            return None
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(coroutine)
        coroutine.close()
        return None

    def in_thread(name: str, depth: int) -> None:
        thread = threading.Thread(target=lambda: quietly(call, name, depth))
        thread.start()
        thread.join()

    scope: dict[str, Any] = {"Block": Block, "asyncio": asyncio, "call": call, "other": other, "nothing": nothing}
    scope.update(empty=empty, run=run, in_thread=in_thread)
    exec(compile(source, f"<program {seed}>", "exec"), scope)
    return scope


def quietly(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__


def drive(scope: dict[str, Any], chance: random.Random) -> list[Any]:
    """Calls, generators that are closed, dropped, thrown into, and functions that are defined again."""
    ends = [quietly(scope["f0"], 0), quietly(lambda: [*scope["g0"](1)]), quietly(lambda: asyncio.run(scope["c0"](2)))]
    for end in ("close", "drop", "throw"):
        made = scope["g0"](chance.randint(0, 3))
        quietly(next, made)
        if end == "close":
            quietly(made.close)
        elif end == "throw":
            quietly(made.throw, scope["Over"]())
        del made
    return [type(end).__name__ for end in ends]


def figures(profiler: LineProfiler) -> dict[str, Any]:
    """By function: its calls, and for each line its hits, the figures of the CPU, and what it held over its runs."""
    return {
        function.qualname: [function.calls, {line.line: _figures(line) for line in function.lines}]
        for function in profiler.records().functions
    }


def _figures(line: LineRecord) -> list[Any]:
    """All but what went as functions ended: where those that nobody profiles hand a value on, only the trace function
    sees them end. What follows from it is compared in the random loops of growth_model.py."""
    stats = line.stats.get("cpu")
    if stats is None or stats.growth is None:
        return [line.hits, stats]
    return [line.hits, stats._replace(growth=stats.growth._replace(end=0))]


def outcome(seed: int) -> Any:
    gc.collect()
    writer = Writer(seed)
    source = writer.source()
    chance = random.Random(seed + 1)
    scope = scope_of(source, seed)
    measured = [name for name in writer.names if chance.random() < 0.75] or ["f0"]
    profiler = LineProfiler(device="cpu")
    for name in measured:
        profiler.add_code(scope[name].__code__, name, source=(1, source.splitlines()))
    decorated = chance.random() < 0.3
    if decorated:
        scope["f0"] = profile(scope["f0"], device="cpu")
    with profiler:
        ends = drive(scope, chance)
        if chance.random() < 0.3:  # defined again, of the same text: other code objects, which nobody counts
            exec(compile(source, "<again>", "exec"), scope)
            ends += drive(scope, chance)
    return {"ends": ends, "tables": figures(profiler), "source": source}


def main() -> None:
    gc.disable()
    report(outcomes={seed: outcome(seed) for seed in range(int(sys.argv[1]), int(sys.argv[2]))})


if __name__ == "__main__":
    main()
