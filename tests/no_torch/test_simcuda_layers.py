"""native/simcuda in order: what each of its units may include and call, read from the source text.

A unit is a .c file. It uses another one where its code, outside of comments and strings, names a function or variable
that the other one defines for others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SIMCUDA = ROOT / "native" / "simcuda"
#: From the lowest to the highest: a unit uses only those of the lines before its own.
ORDER = """
    error soname_stub
    device ranges
    stream vmm memory pivots contents
    graph interpose
    copy pool launch driver blas fft sparse solver nvml nvrtc nccl
    runtime
"""
LEVELS = {unit: level for level, units in enumerate(ORDER.strip().split("\n")) for unit in units.split()}
#: What it may include beside its own headers.
FOREIGN = {"elf/elf.h", "base/torch_abi.h"}

COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
#: At the beginning of a line, with a body or a value.
DEFINITION = re.compile(
    r"^(?!static\b|typedef\b|extern\b|enum\b|#|\s|\})[^\n;{}=()]*?\b(\w+)(?:\([^;{]*\)\s*\{|[^;(){]*=)", re.M
)
MACRO_DEFINITION = re.compile(r"^SIM_\w+\((\w+)[,)]", re.M)


def code_of(text: str) -> str:
    return COMMENT_OR_STRING.sub(" ", text)


def defined_by(code: str) -> set[str]:
    names = {name for name in DEFINITION.findall(code) if not name.startswith("SIM_")}
    return names | set(MACRO_DEFINITION.findall(code))


def read_uses(texts: dict[str, str]) -> dict[str, set[str]]:
    """The units that each unit uses."""
    codes = {unit: code_of(text) for unit, text in texts.items()}
    defines = {unit: defined_by(code) for unit, code in codes.items()}
    words = {unit: set(re.findall(r"\w+", code)) for unit, code in codes.items()}
    return {u: {v for v in texts if v != u and defines[v] & words[u] - defines[u]} for u in texts}


def upward(uses: dict[str, set[str]]) -> Iterator[str]:
    for unit, others in uses.items():
        for other in others:
            if LEVELS[other] >= LEVELS[unit]:
                yield f"{unit} uses {other}"


def circle(uses: dict[str, set[str]]) -> list[str]:
    try:
        list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def simcuda_texts() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in SIMCUDA.glob("*.c")}


def test_each_unit_has_its_place_in_the_order() -> None:
    assert set(simcuda_texts()) == set(LEVELS)


def test_a_unit_uses_only_units_before_it() -> None:
    assert sorted(upward(read_uses(simcuda_texts()))) == []


def test_no_circle_between_units() -> None:
    assert circle(read_uses(simcuda_texts())) == []


def test_includes_are_its_own_headers_and_what_it_shares_with_the_core() -> None:
    own = {path.name for path in SIMCUDA.glob("*.h")}
    included = {name for path in SIMCUDA.glob("*.[ch]") for name in INCLUDE.findall(path.read_text(encoding="utf-8"))}
    assert included - own == FOREIGN


def test_functions_for_other_units_are_named_after_their_own() -> None:
    """The others bear the names of NVIDIA's functions, or are called from Python (`pml_simcuda_`)."""
    wrong = [
        f"{unit}: {name}"
        for unit, text in simcuda_texts().items()
        for name in DEFINITION.findall(code_of(text))
        if name.startswith("sim_") and not name.startswith(f"sim_{unit}")
    ]
    assert wrong == []


def test_lines_fit() -> None:
    wrong = [
        f"{path.name}:{number}"
        for path in SIMCUDA.glob("*.[ch]")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120
    ]
    assert wrong == []


def test_what_is_wrong_is_found() -> None:
    texts = {
        "device": "int sim_device_count(void)\n{\n    return sim_graph_nodes();\n}\n",
        "graph": "int sim_graph_nodes(void)\n{\n    return sim_device_count(); /* sim_memory_free */\n}\n",
        "memory": "void sim_memory_free(void)\n{\n}\n",
    }
    uses = read_uses(texts)
    assert uses == {"device": {"graph"}, "graph": {"device"}, "memory": set()}
    assert list(upward(uses)) == ["device uses graph"]
    assert set(circle(uses)) == {"device", "graph"}
