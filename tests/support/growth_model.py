"""Random loops, and a plain model of what each of their lines holds after each run: which of them must be named, and
with
how many bytes a run.

A loop's lines are of several kinds. Each kind says in source text what it does, and in numbers what is held afterwards:
those numbers know nothing of the profiler. A program has one to four such lines in a function, driven in several ways,
perhaps with another loop after it and a thread beside it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from pytorch_memlab_c import LineProfiler

UNIT = 512  # what CUDA's allocator rounds to
MOST = 900 * 1024  # up to here it gives blocks of exactly the size


@dataclass
class Line:
    """A line of a loop: its text, what it holds after each run, and at the end. `rest`: what it holds of other things
    that
    come and go, which the model leaves out."""

    text: str
    held: list[int]
    end: int
    before: list[str] = field(default_factory=list)  # lines in front of it, in the loop
    after: list[str] = field(default_factory=list)
    finally_: list[str] = field(default_factory=list)  # lines after the loop
    late: list[str] = field(default_factory=list)  # lines at the end of the program
    steady: bool = True

    def bytes_per_run(self) -> int | None:
        """None unless each run leaves more held than the one before, and it still is at the end. The first run is
        set-up; a
        quarter of the others may be unsteady."""
        later = self.held[:-1]  # what the last run leaves is known at the end alone
        steps = [after - before for before, after in zip(later, later[1:])]
        steps = steps[len(steps) // 4 :]
        grows = len(later) >= 4 and min(steps) > 0 and self.end >= later[-1]
        return round(median(steps)) if grows else None


class Kinds:
    """Makes lines; the number `k` keeps their variables apart."""

    def __init__(self, chance: random.Random, runs: int, autograd: bool) -> None:
        self.chance = chance
        self.runs = runs
        self.autograd = autograd

    def size(self, most: int = 64) -> int:
        return UNIT * self.chance.randint(1, most)

    def any(self, k: int) -> Line:
        kinds: list[Callable[[int], Line]] = [
            self.keep,
            self.keep,
            self.keep_beside_what_is_replaced,
            self.keep_many_sizes,
            self.in_parts,
            self.replace,
            self.change_size,
            self.drop,
            self.concatenate,
            self.concatenate,
            self.give_back_at_the_end,
            self.give_back_late,
            self.give_back_sometimes,
            self.give_back_half,
            self.window,
            self.cache,
            self.set_up,
            self.one_early,
            self.comprehension,
        ]
        if self.autograd:
            kinds += [self.keep_gradients, self.keep_gradients, self.drop_gradients, self.collect_by_hook]
        return self.chance.choice(kinds)(k)

    def rising(self, size: int) -> list[int]:
        return [size * i for i in range(1, self.runs + 1)]

    # ---- kept ----

    def keep(self, k: int) -> Line:
        size = self.size()
        return Line(f"box.list{k}.append(make({size}))", self.rising(size), self.runs * size)

    def comprehension(self, k: int) -> Line:
        size, count = self.size(8), self.chance.randint(2, 6)
        text = f"box.list{k}.append([make({size}) for _ in range({count})])"
        return Line(text, self.rising(size * count), self.runs * size * count)

    def in_parts(self, k: int) -> Line:
        """One statement on several lines, which goes back to its first one."""
        size = self.size()
        text = f"box.list{k}.append(\n            make(  # {k}\n                {size}\n            )\n        )"
        return Line(text, self.rising(size), self.runs * size)

    def keep_beside_what_is_replaced(self, k: int) -> Line:
        size, sizes = UNIT, [self.size(800) for _ in range(self.runs)]
        text = f"box.value{k} = make({sizes}[i]); box.list{k}.append(make({size}))"
        return Line(text, self.rising(size), self.runs * size)

    def keep_many_sizes(self, k: int) -> Line:
        sizes = [self.size() for _ in range(self.runs)]
        held = [sum(sizes[: i + 1]) for i in range(self.runs)]
        return Line(f"box.list{k}.append(make({sizes}[i]))", held, held[-1], steady=False)

    def concatenate(self, k: int) -> Line:
        size = UNIT * self.chance.randint(1, MOST // UNIT // (self.runs + 1))
        return Line(f"box.all{k} = join(box.all{k}, {size})", self.rising(size), self.runs * size)

    def one_early(self, k: int) -> Line:
        size, big = self.size(8), self.size(800)
        at = self.chance.randint(0, self.runs // 4)
        held = [size * (i + 1) + (big if i >= at else 0) for i in range(self.runs)]
        text = f"box.list{k}.append((make({size}), make({big}) if i == {at} else None))"
        return Line(text, held, held[-1])

    # ---- not kept ----

    def replace(self, k: int) -> Line:
        size = self.size()
        return Line(f"box.value{k} = make({size})", [size] * self.runs, size)

    def change_size(self, k: int) -> Line:
        sizes = [self.size(800) for _ in range(self.runs)]
        return Line(f"box.value{k} = make({sizes}[i])", sizes, sizes[-1])

    def drop(self, k: int) -> Line:
        text = f"value{k} = make({self.size()} + {UNIT} * i)"
        return Line(text, [0] * self.runs, 0, after=[f"del value{k}"])

    def set_up(self, k: int) -> Line:
        size = self.size()
        return Line(f"box.value{k} = make({size}) if box.value{k} is None else box.value{k}", [size] * self.runs, size)

    def give_back_at_the_end(self, k: int) -> Line:
        size = self.size()
        return Line(f"box.list{k}.append(make({size}))", self.rising(size), 0, finally_=[f"box.list{k}.clear()"])

    def give_back_late(self, k: int) -> Line:
        size = self.size()
        return Line(f"box.list{k}.append(make({size}))", self.rising(size), 0, late=[f"box.list{k}.clear()"])

    def give_back_half(self, k: int) -> Line:
        size, kept = self.size(), self.runs // 2
        line = Line(f"box.list{k}.append(make({size}))", self.rising(size), size * kept)
        return _with(line, finally_=[f"del box.list{k}[{kept}:]"])

    def give_back_sometimes(self, k: int) -> Line:
        size, every = self.size(), self.chance.randint(2, max(2, self.runs // 3))
        held = [size * ((i + 1) % every) for i in range(self.runs)]
        after = [f"if i % {every} == {every - 1}:", f"    box.list{k}.clear()"]
        return Line(f"box.list{k}.append(make({size}))", held, held[-1], after=after)

    def window(self, k: int) -> Line:
        size, most = self.size(), self.chance.randint(1, max(1, self.runs // 2))
        held = [size * min(i + 1, most) for i in range(self.runs)]
        return Line(f"box.list{k}.append(make({size}))", held, held[-1], after=[f"del box.list{k}[:-{most}]"])

    def cache(self, k: int) -> Line:
        size, most = self.size(), self.chance.randint(1, self.runs * 3 // 4)
        held = [size * min(i + 1, most) for i in range(self.runs)]
        text = f"box.dict{k}[i % {most}] = box.dict{k}[i % {most}] if i >= {most} else make({size})"
        return Line(text, held, held[-1])

    # ---- autograd: made on its threads where the device has some ----

    def keep_gradients(self, k: int) -> Line:
        size, weight = self._weight(k)
        after = [f"box.list{k}.append({weight}.grad)", f"{weight}.grad = None"]
        return Line(f"({weight} * 2).sum().backward()", self.rising(size), self.runs * size, after=after)

    def drop_gradients(self, k: int) -> Line:
        size, weight = self._weight(k)
        return Line(f"({weight} * 2).sum().backward()", [0] * self.runs, 0, after=[f"{weight}.grad = None"])

    def collect_by_hook(self, k: int) -> Line:
        size, weight = self._weight(k)
        before = [f"{weight}.hook = {weight}.register_hook(lambda g: box.list{k}.append(g.clone()))"]
        after = [f"{weight}.hook.remove()", f"{weight}.grad = None"]
        return Line(f"({weight} * 2).sum().backward()", self.rising(size), self.runs * size, before, after)

    def _weight(self, k: int) -> tuple[int, str]:
        """A parameter of these bytes, made outside of the loop."""
        size = self.size()
        return size, f"box.weight({k}, {size})"


def _with(line: Line, **fields: Any) -> Line:
    line.__dict__.update(fields)
    return line


class Box:
    """Where a program keeps things: `list3`, `dict3` begin empty, everything else as None."""

    def __init__(self, weight: Callable[[int], Any] | None = None) -> None:
        self._new_weight = weight
        self._weights: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        start = [] if name.startswith("list") else {} if name.startswith("dict") else None
        setattr(self, name, start)
        return start

    def weight(self, k: int, size: int) -> Any:
        if k not in self._weights:
            assert self._new_weight is not None
            self._weights[k] = self._new_weight(size)
        return self._weights[k]


@dataclass
class Program:
    source: str
    lines: list[Line]
    profiled: list[str]
    local: bool  # what its lines keep goes with the function's variables
    beside: str | None  # a thread that runs at the same time: plain, or profiled

    def expected(self) -> dict[str, Line]:
        found = {line.text.splitlines()[1 if "\n" in line.text else 0].strip(): line for line in self.lines}
        assert len(found) == len(self.lines)
        return found


_AFTER = "def other(m):\n    for _ in range(m):\n        fresh = make(4096)\n"
_WAYS = ("loop", "loop", "local", "step", "driven", "twice", "many", "generator", "while")


def program(seed: int, autograd: bool = False) -> Program:
    chance = random.Random(seed)
    way, runs = chance.choice(_WAYS), chance.choice((6, 7, 8, 9, 10, 11, 12, 20, 33, 60))
    kinds = Kinds(chance, runs, autograd)
    lines = [kinds.any(k) for k in range(chance.randint(1, 4))]
    body = [text for line in lines for text in (*line.before, line.text, *line.after)]
    ends = [text for line in lines for text in line.finally_]
    late = [text for line in lines for text in line.late]
    if way == "local":
        ends, late = ends + late, []
    source, profiled = _functions(way, runs, body, ends)
    everything = ["main(box)"]
    if chance.random() < 0.4:
        source += _AFTER
        everything.append(f"other({chance.randint(1, 150)})")
        profiled.append("other")
    source += _indented("def everything(box):", [*everything, *late], 1)
    profiled += ["everything"] if chance.random() < 0.3 else []
    return Program(source, lines, profiled, way == "local", chance.choice((None, None, None, "plain", "profiled")))


def _functions(way: str, runs: int, body: list[str], ends: list[str]) -> tuple[str, list[str]]:
    """The source of `main(box)`, and what of it is profiled."""
    if way in ("step", "driven"):
        step = _indented("def step(box, i):", body, 1)
        text = f"def main(box):\n    for i in range({runs}):\n        step(box, i)\n" + _indented("", ends, 1)
        return step + text, ["step"] if way == "step" and not ends else ["step", "main"]
    if way == "generator":
        text = _indented(f"def part(box):\n    for i in range({runs}):", [*body, "yield"], 2)
        return text + "def main(box):\n    for _ in part(box):\n        pass\n" + _indented("", ends, 1), ["part"]
    if way == "while":
        head = f"def main(box):\n    i = -1\n    while i < {runs - 1}:\n        i += 1\n        try:"
        text = _indented(head, body, 3) + "        finally:\n            pass\n"
        return text + _indented("", ends, 1), ["main"]
    if way == "many":  # a call for every few runs
        few = 1 + runs // 6
        text = _indented("def part(box, start, end):\n    for i in range(start, end):", body, 2)
        call = f"        part(box, start, min(start + {few}, {runs}))\n"
        text += f"def main(box):\n    for start in range(0, {runs}, {few}):\n{call}"
        return text + _indented("", ends, 1), ["part", "main"]
    if way == "twice":  # two calls, a third of the runs in the first
        text = _indented("def part(box, start, end):\n    for i in range(start, end):", body, 2)
        text += f"def main(box):\n    part(box, 0, {runs // 3})\n    part(box, {runs // 3}, {runs})\n"
        return text + _indented("", ends, 1), ["part", "main"]
    start = "def main(box):\n" + ("    box = new_box(box)\n" if way == "local" else "")
    return _indented(f"{start}    for i in range({runs}):", body, 2) + _indented("", ends, 1), ["main"]


def _indented(head: str, lines: list[str], depth: int) -> str:
    start = [head] if head else []
    return "".join(f"{line}\n" for line in [*start, *("    " * depth + line for line in lines)])


# ---- against the profiler ----


def check(seed: int, names: dict[str, Any], device: str, autograd: bool = False) -> list[str]:
    """What the profiler says otherwise than the model; `names` are `make` and `join`, and `weight` with autograd."""
    made = program(seed, autograd)
    box = Box(names.get("weight"))
    scope = {**names, "new_box": lambda outer: _of_the_same_weights(outer)}
    exec(compile(made.source, f"<loop {seed}>", "exec"), scope)
    profiler = LineProfiler(device=device)
    for name in made.profiled:
        code = scope[name].__code__
        profiler.add_code(code, name, source=_source_of(code, made.source))
    beside = _Beside(names["make"]) if made.beside and not (autograd and made.beside == "profiled") else None
    if beside and made.beside == "profiled":
        profiler.add_function(_Beside.run)
    with profiler:
        _run(scope["everything"], box, beside)
    return [f"seed {seed}: {text}\n{made.source}" for text in _differences(made, profiler, device)]


def _of_the_same_weights(outer: Box) -> Box:
    inner = Box(outer._new_weight)
    inner._weights = outer._weights
    return inner


def _source_of(code: Any, source: str) -> tuple[int, list[str]]:
    return code.co_firstlineno, source.splitlines()[code.co_firstlineno - 1 :]


class _Beside:
    """A thread that takes and frees memory all the time."""

    def __init__(self, make: Any) -> None:
        self.make, self.stop = make, threading.Event()

    def run(self) -> None:
        while not self.stop.is_set():
            value = self.make(3 * UNIT)
            _ = [self.make(UNIT * i) for i in range(1, 4)]
            del value


def _run(everything: Any, box: Box, beside: _Beside | None) -> None:
    if beside is None:
        everything(box)
        return
    thread = threading.Thread(target=beside.run)
    thread.start()
    try:
        everything(box)
    finally:
        beside.stop.set()
        thread.join()


def _differences(made: Program, profiler: LineProfiler, device: str) -> list[str]:
    frame = profiler.to_dataframe(kind="growth").dropna(subset="bytes_per_run")
    found_in = zip(frame["code"], frame["bytes_per_run"], frame["held"])
    named = {code.strip(): (int(rate), int(held)) for code, rate, held in found_in}
    expected = made.expected()
    found = [f"{code!r} is named with {named[code]}" for code in named if code not in expected]
    for code, line in expected.items():
        right = _agrees(line, named.get(code), made.local)
        found += [] if right else [f"{code!r}: {named.get(code)}, not {line.bytes_per_run()}"]
    return found


def _agrees(line: Line, found: tuple[int, int] | None, local: bool) -> bool:
    rate = line.bytes_per_run()
    if found is None or rate is None:
        return found is rate
    if found[1] < line.end and not local:
        return False
    if line.steady:
        return found[0] == rate
    steps = [after - before for before, after in zip(line.held, line.held[1:])]
    return min(steps) <= found[0] <= max(steps)
