"""native/ in layers: what each folder and each unit may include and call, read from the source text.

A unit is a .c file with the header of its name. Its symbols are the `pml_` functions and variables that it defines. A
unit uses
another one where its text includes that one's header or names one of its symbols outside of comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "native"
#: From the lowest to the highest. A folder uses those before it; "" is native/ itself.
LAYERS = [
    "base",
    "snapshot",
    "elf",
    "meter",
    "lines",
    "holders",
    "frames",
    "saved",
    "cpython",
    "events",
    "child",
    "live",
    "trace",
    "types",
    "",
]
#: Below this one nothing knows Python.
FIRST_WITH_PYTHON = "cpython"
#: Above it, what needs no Python either.
WITHOUT_PYTHON = {"events"}
#: Two of a kind, of which a platform has one.
PLATFORM = re.compile(r"_(elf|none)$")

COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
PYTHON = re.compile(r"#include\s*(<Python\.h>|\"cpython/)")
DEFINITION = re.compile(
    r"^(?!static\b|extern\b|typedef\b|struct \w+ \{|enum \w* ?\{|#|\s|\})"  # of functions, and of variables
    r"[^\n;{}=]*?\b(pml_\w+)(?=\s*[(\[=;])[^;{]*?[{;=]",
    re.M,
)
INLINE = re.compile(r"^static inline [^\n;]*?\b(pml_\w+)\(", re.M)
TYPE = re.compile(r"\b(?:struct|enum|union)\s+pml_\w+")


@dataclass
class Unit:
    name: str
    includes: set[str] = field(default_factory=set)
    defines: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def sources(folder: Path = NATIVE) -> list[Path]:
    return sorted(path for path in folder.rglob("*.[ch]") if "simcuda" not in path.relative_to(folder).parts)


def unit_name(path: str) -> str:
    return PLATFORM.sub("", str(Path(path).with_suffix("")))


def folder_of(unit: str) -> str:
    return str(Path(unit).parent) if "/" in unit else ""


def read_units(files: Iterable[tuple[str, str]]) -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for path, text in files:
        unit = units.setdefault(unit_name(path), Unit(unit_name(path)))
        unit.includes |= {unit_name(name) for name in INCLUDE.findall(text)}
        code = COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        unit.defines |= set((INLINE if path.endswith(".h") else DEFINITION).findall(code))
        unit.names |= set(re.findall(r"\bpml_\w+", TYPE.sub("", code)))
    return units


def uses(units: dict[str, Unit]) -> dict[str, set[str]]:
    """For each unit the others that it includes or calls."""
    where = {symbol: unit.name for unit in units.values() for symbol in unit.defines}
    called = {unit.name: {where[name] for name in unit.names if name in where} for unit in units.values()}
    return {name: (units[name].includes | called[name]) - {name} for name in units}


def upward(used: dict[str, set[str]]) -> Iterator[str]:
    for unit, others in sorted(used.items()):
        for other in sorted(others):
            if LAYERS.index(folder_of(other)) > LAYERS.index(folder_of(unit)):
                yield f"{unit} uses {other}, which is above it"


def circle(used: dict[str, set[str]]) -> list[str]:
    try:
        tuple(TopologicalSorter(used).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def units() -> dict[str, Unit]:
    if not NATIVE.is_dir():
        pytest.skip("needs the source tree")
    return read_units((str(path.relative_to(NATIVE)), path.read_text(encoding="utf-8")) for path in sources())


def test_each_folder_has_its_place_in_the_order(units: dict[str, Unit]) -> None:
    assert {folder_of(name) for name in units} == set(LAYERS)


def test_a_folder_includes_and_calls_only_folders_below_it(units: dict[str, Unit]) -> None:
    assert list(upward(uses(units))) == []


def test_no_circle_between_units(units: dict[str, Unit]) -> None:
    assert circle(uses(units)) == []


def test_every_function_that_is_called_belongs_to_a_unit(units: dict[str, Unit]) -> None:
    """Else a call was overlooked above. `pml_` types have names that only declarations follow."""
    defined = {symbol for unit in units.values() for symbol in unit.defines}
    assert len(defined) > 200
    unknown = {name for unit in units.values() for name in unit.names} - defined
    text = "".join(path.read_text(encoding="utf-8") for path in sources())
    typedefs = set(re.findall(r"^typedef [^;]*?\b(pml_\w+)\(", text, re.M))
    typedefs |= set(re.findall(r"^typedef [^;{]*?\b(pml_\w+);", text, re.M))
    pointers = set(re.findall(r"\(\*(pml_\w+)\)\(", text))
    sections = {"pml_read_mostly", "pml_written_often"}
    assert unknown - typedefs - pointers - sections == set()


def test_a_function_is_named_after_its_unit(units: dict[str, Unit]) -> None:
    wrong = [
        f"{unit.name}: {symbol}"
        for unit in units.values()
        for symbol in sorted(unit.defines)
        if not re.match(rf"pml_{Path(unit.name).name}(_|$)", symbol)
    ]
    assert wrong == []


def test_python_is_known_only_where_it_is_needed() -> None:
    below = set(LAYERS[: LAYERS.index(FIRST_WITH_PYTHON)]) | WITHOUT_PYTHON
    knowing = {str(path.relative_to(NATIVE)) for path in sources() if PYTHON.search(path.read_text(encoding="utf-8"))}
    assert [name for name in sorted(knowing) if folder_of(name) in below] == []
    assert [path for path in sources() if "<Python.h>" in path.read_text(encoding="utf-8")] == [
        NATIVE / "cpython/compat.h"
    ]


@pytest.mark.parametrize("folder", ["native", "tests/c"])
def test_files_are_short_and_lines_fit(folder: str) -> None:
    for path in sources(ROOT / folder):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 600, path
        assert [i for i, line in enumerate(lines, 1) if len(line) > 120] == [], path


def test_what_is_wrong_is_found() -> None:
    """The checks above on a small tree that breaks each rule."""
    wrong = read_units(
        [
            (
                "base/low.c",
                '#include "base/low.h"\nvoid pml_low_do(void)\n{\n    pml_high_do(); /* pml_other_do() */\n}\n',
            ),
            (
                "trace/high.c",
                '#include "base/low.h"\nint pml_high_count = 1;\nvoid pml_high_do(void)\n{\n    pml_low_do();\n}\n',
            ),
            (
                "trace/other.h",
                '#include "trace/high.h"\nstatic inline void pml_other_do(void)\n{\n    pml_high_count++;\n}\n',
            ),
        ]
    )
    assert [sorted(wrong[name].defines) for name in ("base/low", "trace/high", "trace/other")] == [
        ["pml_low_do"],
        ["pml_high_count", "pml_high_do"],
        ["pml_other_do"],
    ]
    used = uses(wrong)
    assert used == {"base/low": {"trace/high"}, "trace/high": {"base/low"}, "trace/other": {"trace/high"}}
    assert list(upward(used)) == ["base/low uses trace/high, which is above it"]
    assert set(circle(used)) == {"base/low", "trace/high"}
