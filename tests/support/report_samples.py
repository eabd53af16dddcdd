"""Made-up reports to look at in a browser: hostile source, many functions, several devices. No torch."""

from __future__ import annotations

import dataclasses
from typing import Any

from made_up_snapshots import K, M, SavedCode, SavedLine, code_named, growing, line, made_up_records, stats

from pytorch_memlab_c.data.holder_types import Holder, HolderRecords, OutOfMemory, PeakHolders
from pytorch_memlab_c.data.keeper_types import KeeperRecords, KeptBy
from pytorch_memlab_c.line_profiler.records import LineRecords

CPU, CUDA0, CUDA1 = 0, 1, 2

HOSTILE = [
    "def work(x):",
    """    a = "<script>document.title = 'taken'</script>" + '</script>' + "</td></table></style>" """,
    '''    b = '"><img src=x onerror=alert(1)>' + "<svg onload=alert(2)>" + "<!--" + "]]>"''',
    '    c = "{{ 7 * 7 }}" + "{% raw %}" + "{# gone #}" + "${7 * 7}" + `&amp;&lt;&#60;`',
    "    d = '\x00\x01\x1b[31m\x7f\x85\u2028\u202e\u2066\udc80' + \"\x0b\"",
    "\tif a:\t# a tab",
    "        e = '中文 größe 👩‍🚀 العربية'",
    "    f = '" + "x" * 20_000 + "'",
    "    return    a  +  b",
]


def records_of(functions: dict[str, tuple[list[str], list[Any]]], **options: Any) -> LineRecords:
    """Records of functions: name to source lines and what was recorded; line numbers start at 1."""
    codes = {name: code_named(name, f"/project/{name.partition('.')[0]}.py") for name in _plain(functions)}
    snapshot = [(codes[_last(name)], 3 if lines else 0, lines) for name, (_, lines) in functions.items()]
    sources = {id(codes[_last(name)]): (1, source) for name, (source, _) in functions.items()}
    names = {id(codes[_last(name)]): (name, "project.model") for name in functions}
    return made_up_records(snapshot, sources=sources, names=names, **options)


def _plain(functions: dict[str, Any]) -> list[str]:
    return [_last(name) for name in functions]


def _last(name: str) -> str:
    return name.replace(".", "_")


def hostile() -> LineRecords:
    """A function full of what must be shown as text."""
    lines = [line(i, i, CPU, stats(i * K, (-1) ** i * K)) for i in range(1, len(HOSTILE) + 1)]
    return records_of(
        {"work": (HOSTILE, lines), "never": (["def never(): pass"], [])}, notes=["<b onclick='x()'>a note</b>"]
    )


def large(functions: int = 200, rows: int = 25, slot: int = CUDA0) -> LineRecords:
    """Many functions; the peak of `Layer{i}.forward` is (i * 37 % functions + 1) MiB, on its line 9."""
    return records_of({f"Layer{i}.forward": _layer(i, i * 37 % functions + 1, rows, slot) for i in range(functions)})


def _layer(i: int, rank: int, rows: int, slot: int) -> tuple[list[str], list[Any]]:
    source = [
        "def forward(self, x, mask=None):",
        *(f"    h{n} = self.block_{i}_{n}(x, mask)" for n in range(2, rows + 1)),
    ]
    lines = [line(1, 0, slot, stats(0, reserved=0))]
    for n in range(2, rows + 1):
        if n % 7 == 0:
            continue  # never run
        peak = rank * M if n == 9 else rank * M * n // (rows + 40)
        lines.append(line(n, 3, slot, stats(peak, (peak // 8) * (-1 if n % 5 == 0 else 1), reserved=rank * 2 * M)))
    return source, lines


def mixed() -> LineRecords:
    """Functions on two GPUs and on the CPU: two scopes, which share no list."""
    on = {
        "first": [line(2, 1, CUDA0, stats(3 * M, M))],
        "second": [line(2, 1, CUDA1, stats(5 * M, -M))],
        "both": [line(2, 1, CUDA0, stats(M, M)), line(3, 1, CUDA1, stats(2 * M, M))],
        "host": [line(2, 1, CPU, stats(700 * M, M))],
    }
    source = ["def {}():", "    x = make()", "    y = x.to('cuda:1')"]
    return records_of({name: ([source[0].format(name), *source[1:]], lines) for name, lines in on.items()})


def whole() -> LineRecords:
    """A report with everything that stands beside the tables, of hostile source: who holds the peaks, allocations that
    failed, growth, what backward will need, and what keeps tensors alive."""
    grown = stats(9 * M, K, runs=9, net_sum=9 * K)._replace(growth=growing(K), net_later_max_bytes=K)
    lines = [line(i, 9, CUDA0, grown) for i in range(2, len(HOSTILE) + 1)]
    code = code_named("work", "/project/work.py")
    kept = [SavedLine(number, CUDA0, number * M, M, 2 * M, M, K, K, K) for number in range(2, len(HOSTILE) + 1)]
    records = made_up_records(
        [(code, 3, lines)],
        sources={id(code): (1, HOSTILE)},
        names={id(code): ("work", "project.model")},
        saved=[SavedCode(code, kept)],
        notes=["CUDA figures are simulated: <b>"],
    )
    return dataclasses.replace(records, holders=_holders(), keepers=_keepers())


def _keepers() -> KeeperRecords:
    hostile = "<b>['\x1b[31m\n</td>'] <- self, local of <lambda> at <string>:1"
    rows = (KeptBy("cuda:0", 9 * M, 1490, "1,490 tensors in Meter.values <- meter"), KeptBy("cpu", M, 1, hostile))
    return KeeperRecords("when memory ran out", rows)


def _holders() -> HolderRecords:
    file = "/project/work.py"
    named = [Holder("line", (20 - i) * M, "work", file, i + 1, HOSTILE[i].strip()) for i in range(1, len(HOSTILE))]
    named[3:3] = [
        Holder("backward", 8 * M, f"Layer{'r' * 150}.forward", "/x/<b>.py", 7 + i, "<b>&lt;") for i in range(5)
    ]
    held = (*named, Holder("autograd", 3 * M), Holder("elsewhere", 2 * M))
    total = sum(holder.bytes for holder in held)
    series = tuple(total * i // 100 for i in range(101))
    failed = OutOfMemory("cuda:0", 1 << 30, total, total, total, M, 24 << 30, named[0], held)
    peaks = (PeakHolders("cuda:0", total, named[0], held, series, 16), PeakHolders("cpu", M, held[-1], held[-1:]))
    return HolderRecords(
        peaks,
        (failed, dataclasses.replace(failed, asked=1 << 29), dataclasses.replace(failed, asked=1 << 28)),
        6,
        ("blocks of <b> are not known",),
    )
