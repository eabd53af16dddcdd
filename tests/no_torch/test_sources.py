"""Source lines of code objects: every way to write a function, and every way to have no source."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import linecache
import sys
import textwrap
import types
import zipfile

import pytest

from pytorch_memlab_c.data.sources import def_line, source_note, source_of


@pytest.fixture(autouse=True)
def without_autoreload(monkeypatch):
    """Tests of it load it into this process; test_autoreload.py has what it changes."""
    monkeypatch.delitem(sys.modules, "IPython.extensions.autoreload", raising=False)


def load(path, text, encoding="utf-8"):
    """Write a module to ``path`` and return its namespace."""
    path.write_bytes(textwrap.dedent(text).encode(encoding))
    namespace = {"__name__": path.stem}
    exec(compile(path.read_bytes(), str(path), "exec"), namespace)
    return namespace


def functions_of(module):
    """All functions written in ``module``, methods and undecorated ones."""
    holders = [module, *(v for v in vars(module).values() if isinstance(v, type))]
    for holder in holders:
        for value in vars(holder).values():
            if isinstance(value, types.FunctionType) and (value.__code__.co_filename == module.__file__):
                yield value


@pytest.mark.parametrize("module", [dataclasses, inspect, json.decoder, textwrap])
def test_same_lines_as_inspect(module):
    checked = 0
    for function in functions_of(module):
        if hasattr(function, "__wrapped__"):
            continue
        lines, first = inspect.getsourcelines(function)
        assert source_of(function.__code__) == (first, [x.rstrip("\n") for x in lines])
        checked += 1
    assert checked > 3


def test_decorated_function(tmp_path):
    code = load(
        tmp_path / "decorated.py",
        """
        def dec(*args, **kwargs):
            return lambda f: f

        class A:
            @dec(
                # def fake(): not this one
                "def neither_this():",
                key=lambda x: x,
            )

            # a comment between
            @dec()
            async def f(self):
                text = '''
        at the left margin
        '''
                return text
        """,
    )["A"].f.__code__
    first, lines = source_of(code)
    assert lines[0] == "    @dec(" and lines[-1] == "        return text"
    row = def_line(code, lines)
    assert lines[row - first] == "    async def f(self):"
    assert first == code.co_firstlineno


def test_def_line_of_undecorated_function_is_its_first_line():
    def f():
        pass

    code = f.__code__
    assert def_line(code, source_of(code)[1]) == code.co_firstlineno
    assert def_line(code, None) == code.co_firstlineno


def test_def_line_where_the_text_does_not_parse():
    def f():
        pass

    code = f.__code__
    assert def_line(code, ["@dec(", "'"]) == code.co_firstlineno
    assert def_line(code, ["@dec", "x = 1"]) == code.co_firstlineno
    assert def_line(code, ["@dec", "def f(:", "   ("]) == code.co_firstlineno + 1


def test_lambda_over_several_lines():
    function = (  # noqa: E731
        lambda x: [
            x,
            (lambda y: [
                y,
            ]),
        ]
    )  # fmt: skip
    first, lines = source_of(function.__code__)
    assert lines[0].strip() == "lambda x: ["
    assert first + len(lines) - 1 >= function(1)[1].__code__.co_firstlineno + 1
    assert def_line(function.__code__, lines) == first


def test_nested_function_and_comprehension():
    def outer():
        def inner():
            return 1

        return inner, [i + 1 for i in range(2)]

    inner = outer()[0]
    assert [x.strip() for x in source_of(inner.__code__)[1]] == ["def inner():", "return 1"]
    nested = [c for c in outer.__code__.co_consts if isinstance(c, types.CodeType)]
    assert all("for i in" in "".join(source_of(c)[1]) for c in nested if c.co_name == "<listcomp>")


def test_class_body(tmp_path):
    text = "x = 1\nclass A:\n    y = 2\n\nz = 3\n"
    path = tmp_path / "body.py"
    path.write_text(text)
    module = compile(text, str(path), "exec")
    body = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    assert source_of(body) == (2, ["class A:", "    y = 2"])
    assert source_of(module) == (1, text.splitlines())


def test_notebook_cell():
    name = "/tmp/ipykernel_1/cell.py"
    text = "import os\n\n@str\ndef f():\n    return 1\n\nx = [f]\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    try:
        module = compile(text, name, "exec")
        f = next(c for c in module.co_consts if isinstance(c, types.CodeType))
        assert source_of(f) == (3, ["@str", "def f():", "    return 1"])
        assert source_of(module) == (1, text.splitlines())
        cell = module.replace(co_name="<cell line: 3>", co_firstlineno=3)
        assert source_of(cell) == (1, text.splitlines())
        assert def_line(cell, ["@str", "def f():", "    return 1"]) == 3
    finally:
        del linecache.cache[name]


def test_latin_1_cookie(tmp_path):
    code = load(tmp_path / "latin.py", "# coding: latin-1\ndef f():\n    'é'\n", "latin-1")["f"]
    assert source_of(code.__code__) == (2, ["def f():", "    'é'"])


def test_identifiers_that_python_normalises(tmp_path):
    code = load(tmp_path / "ligature.py", "def ﬁle():\n    pass\n")["file"].__code__
    assert source_of(code) == (1, ["def ﬁle():", "    pass"])


def test_tabs_form_feeds_and_crlf(tmp_path):
    path = tmp_path / "odd.py"
    path.write_bytes(b"x = 1\r\n\x0c\r\ndef f():\r\n\tif x:\r\n\t\treturn 1\r\n")
    namespace = {}
    exec(compile(path.read_bytes(), str(path), "exec"), namespace)
    assert source_of(namespace["f"].__code__) == (3, ["def f():", "\tif x:", "\t\treturn 1"])


def test_zip_import(tmp_path, monkeypatch):
    archive = tmp_path / "z.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_module.py", "def f():\n    return 2\n")
    monkeypatch.syspath_prepend(str(archive))
    module = importlib.import_module("zipped_module")
    try:
        assert source_of(module.f.__code__) == (1, ["def f():", "    return 2"])
    finally:
        del sys.modules["zipped_module"]


@pytest.mark.parametrize("filename", ["<string>", "<stdin>", "no such file.py", "", "\0"])
def test_no_source(filename):
    code = compile("def f(): pass", "x", "exec").co_consts[0].replace(co_filename=filename)
    assert source_of(code) is None


@pytest.mark.parametrize(
    "changed",
    [
        b"",
        b"x = 1\n",
        b"\n\n\n",
        b"# one more line\n@str\ndef f():\n    return 1\n",
        b"@str\ndef another():\n    return 1\n",
        b"@str\n",
        b"@str(\n'''",
        b"\xff\xfe\x00 no text",
        b"# coding: klingon\n",
    ],
)
def test_file_changed_since(tmp_path, changed):
    path = tmp_path / "changing.py"
    path.write_text("@str\ndef f():\n    return 1\n")
    code = compile(path.read_bytes(), str(path), "exec").co_consts[0]
    assert source_of(code) == (1, ["@str", "def f():", "    return 1"])
    path.write_bytes(changed)
    linecache.checkcache(str(path))
    assert source_of(code) is None


def test_file_shortened_inside_the_function(tmp_path):
    path = tmp_path / "shorter.py"
    code = load(path, "def f():\n    a = 1\n    b = 2\n    return a\n")["f"].__code__
    path.write_text("def f():\n    a = 1\n")
    assert source_of(code) == (1, ["def f():", "    a = 1"])


def test_text_that_linecache_has_under_a_name_that_many_texts_share(monkeypatch):
    """Python 3.13 keeps the text of `python -c` there, as ``<string>``: code of another text has no source, no note."""
    text = "import sys\nexec(sys.stdin.read())\n"
    monkeypatch.setitem(linecache.cache, "<string>", (len(text), None, text.splitlines(True), "<string>"))
    code = next(c for c in compile("def f():\n    return 1\n", "<string>", "exec").co_consts if inspect.iscode(c))
    assert source_of(code) is None and source_note(code, None) is None
