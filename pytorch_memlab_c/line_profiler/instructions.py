"""Which instructions begin no run of their line, though Python reports a line event for them.

They are read from the bytecode, once for each code object.

- A comprehension runs as a part of the line on which it begins. Python 3.12 and later inline it into the function, and
  then report its line anew for each round, and the lines that it is written on.
- A docstring is no statement, but it is stored as one. The same goes for the `return` of a module without statements.
"""

from __future__ import annotations

import dis
import itertools
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

#: What begins a comprehension that is inlined; before Python 3.12 there are none.
_CLEAR = dis.opmap.get("LOAD_FAST_AND_CLEAR")


#: The end of a loop, on the line of what it goes through.
_ENDS = ("END_FOR", "END_ASYNC_FOR", "POP_ITER", "POP_TOP")


class Part(NamedTuple):
    """Instructions from the byte offset `start` up to `end`: they run as a part of `line`, or, if it is 0, of none."""

    start: int
    end: int
    line: int


def parts_of_lines(code: CodeType) -> tuple[Part, ...]:
    """In ascending order; they do not overlap."""
    if code.co_name != "<module>" and (_CLEAR is None or _CLEAR not in code.co_code[::2]):
        return ()
    instructions = list(dis.get_instructions(code))
    parts = [*_comprehensions(code, instructions), *_no_statements(code, instructions)]
    return tuple(sorted(parts))


def _line_of(instruction: Any) -> int:
    return (instruction.positions and instruction.positions.lineno) or 0


def _comprehensions(code: CodeType, instructions: Sequence[Any]) -> Iterator[Part]:
    """The outermost ones.

    Each begins by saving its variables, has a loop, and is covered by a handler that restores them.
    """
    entries: Any = getattr(dis.Bytecode(code), "exception_entries", ())
    covered = 0
    for at, instruction in enumerate(instructions):
        if instruction.opcode != _CLEAR or instruction.offset < covered:
            continue
        covered = _end_of_loop(instructions[at:], entries)
        line = _line_of(instruction)
        yield Part(instruction.offset, _end_of_line(instructions, covered, line), line)
        handlers = [entry for entry in entries if instruction.offset < entry.start < covered]
        if handlers:
            handler = min(handlers, key=lambda entry: entry.start).target
            yield Part(handler, _end_of_handler(instructions, handler), line)


def _end_of_loop(instructions: Sequence[Any], entries: Any) -> int:
    """Where the first loop goes when it ends. An asynchronous one ends by an exception."""
    loop = next(i for i in instructions if i.opname in ("FOR_ITER", "GET_ANEXT"))
    if loop.opname == "FOR_ITER":
        return int(loop.argval)
    ends = {i.offset for i in instructions if i.opname == "END_ASYNC_FOR"}
    return int(max(e.target for e in entries if e.start <= loop.offset < e.end and e.target in ends))


def _end_of_line(instructions: Sequence[Any], end: int, line: int) -> int:
    """The rest of the line on which a comprehension began, up to what a jump leads to, or away from."""
    after = itertools.dropwhile(lambda i: i.offset < end or i.opname in _ENDS, instructions)
    for instruction in after:
        if _line_of(instruction) != line or instruction.is_jump_target or "JUMP" in instruction.opname:
            return int(instruction.offset)
    return int(instructions[-1].offset) + 2


def _end_of_handler(instructions: Sequence[Any], handler: int) -> int:
    after = itertools.dropwhile(lambda instruction: instruction.offset < handler, instructions)
    return next(int(i.offset) + 2 for i in after if i.opname in ("RERAISE", "RAISE_VARARGS"))


def _no_statements(code: CodeType, instructions: Sequence[Any]) -> Iterator[Part]:
    """A docstring that has its lines for itself, and the end of a module that has no statement but one."""
    if code.co_name != "<module>":
        return
    stored = _docstring_end(instructions)
    rest = [i for i in instructions if i.offset >= stored and i.opname not in ("RESUME", "NOP")]
    if _is_end_of_module(rest):
        yield Part(0, int(instructions[-1].offset) + 2, 0)
    elif stored and _line_at(code, stored) != _line_at(code, stored - 2):
        yield Part(0, stored, 0)


def _docstring_end(instructions: Sequence[Any]) -> int:
    """The offset after it was stored; 0: there is none. An assignment to `__doc__` has its name at another place."""
    begin = [i for i in instructions if i.opname not in ("RESUME", "NOP")][:2]
    if [i.opname for i in begin] != ["LOAD_CONST", "STORE_NAME"] or begin[1].argval != "__doc__":
        return 0
    constant, name = (getattr(i, "positions", None) for i in begin)
    return int(begin[1].offset) + 2 if isinstance(begin[0].argval, str) and constant == name else 0


def _line_at(code: CodeType, offset: int) -> int | None:
    return next((line for start, end, line in code.co_lines() if start <= offset < end), None)


def _is_end_of_module(instructions: Sequence[Any]) -> bool:
    names = [i.opname for i in instructions]
    return names in (["RETURN_CONST"], ["LOAD_CONST", "RETURN_VALUE"])
