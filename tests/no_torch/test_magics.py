"""`%mlrun` and `%%mlrun`: the code behaves as if it had been typed, and its lines show their memory."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("IPython", reason="IPython is not installed")

from engines import NOT_RUN  # noqa: E402
from notebook_session import Session, row, session  # noqa: E402
from program_support import level  # noqa: E402
from run_program import titles  # noqa: E402

from pytorch_memlab_c import set_target_gpu  # noqa: E402
from pytorch_memlab_c.engine import following  # noqa: E402


@pytest.fixture(scope="module")
def shared() -> Iterator[Session]:
    """As in a process without PyTorch, whatever other tests have imported into this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "torch_module", lambda: None)
        with set_target_gpu("cpu"), session() as opened:
            yield opened


@pytest.fixture
def notebook(shared: Session, only_made_up_bytes: None) -> Iterator[Session]:
    """A session whose variables, and bytes, are those of the test alone."""
    before = dict(shared.names)
    yield shared
    shared.forget_values()
    for name in set(shared.names) - set(before):
        if not name.startswith("_"):
            del shared.names[name]
    assert level() == 0


WORK = """\
def work(size):
    held = Block(size)
    free(allocate(3 * size))
    return held
"""


# ---- what is measured ----


def test_case_60_a_cell_shows_its_own_lines_and_the_functions_it_defines(notebook: Session) -> None:
    (table,) = notebook.run(f"%%mlrun\n{WORK}\nheld = work(1024)\nfree(allocate(512))\n").tables
    cell, function = titles(table)
    assert cell.startswith("Cell In[") and function == "work"
    assert row(table, "%%mlrun") == ["0.00B", "0.00B", "0"]
    assert row(table, "held = work(1024)") == ["4.00K", "1.00K", "1"]
    assert row(table, "free(allocate(512))") == ["1.50K", "0.00B", "1"]
    assert row(table, "held = Block(size)", of="work") == ["1.00K", "1.00K", "1"]
    assert row(table, "free(allocate(3 * size))", of="work") == ["4.00K", "0.00B", "1"]
    assert row(table, "held = Block(size)", of=cell) == ["0"]


def test_peaks_name_the_cells_they_are_in(notebook: Session) -> None:
    notebook.run(f"{WORK}\nfrom pytorch_memlab_c import LineProfiler")
    (table,) = notebook.run("%%mlrun -f work\nheld = work(1024)\n").tables
    assert re.search(r"^Peak of .*, at Cell In\[\d+\]:3 in work\. Held by:$", table, re.MULTILINE), table
    (table,) = notebook.run("%%mlrun\nheld = Block(1024)\n").tables
    assert re.search(r"^Peak of .*, at Cell In\[\d+\]:2\. Held by:$", table, re.MULTILINE), table
    text = notebook.run("with LineProfiler(work) as profiler:\n    held = work(1024)\nprofiler.print_stats()").text
    assert re.search(r"^Peak of .*, at Cell In\[\d+\]:3 in work\. Held by:$", text, re.MULTILINE), text


def test_line_numbers_are_those_of_the_cell(notebook: Session) -> None:
    """With empty lines below the magic, and one line that is a magic itself."""
    (table,) = notebook.run("%%mlrun\n\n\n%timeit -n 1 -r 1 None\nheld = Block(1024)\n").tables
    assert " 5> held = Block(1024)" in table and table.count("held = Block(1024)") == 1
    assert " 4  %timeit -n 1 -r 1 None" in table


def test_case_16_methods_of_nested_classes_and_coroutines_are_profiled(notebook: Session) -> None:
    (table,) = notebook.run("""%%mlrun
class Net:
    class Part:
        async def run(self):
            return Block(1024)
    @property
    def size(self):
        return len([Block(256)])
    def forward(self):
        def inner():
            return Block(512)
        return inner()
parts = [Net().forward(), Net().size, await Net.Part().run()]
""").tables
    assert titles(table)[1:] == ["Net.Part.run", "Net.size", "Net.forward", "Net.forward.<locals>.inner"]
    assert row(table, "return Block(1024)", of="Net.Part.run") == ["1.50K", "1.00K", "1"]
    assert row(table, "return Block(512)", of="Net.forward.<locals>.inner") == ["512.00B", "512.00B", "1"]
    assert row(table, "return len([Block(256)])", of="Net.size") == ["768.00B", "0.00B", "1"]
    assert row(table, "parts = [Net().forward(), Net().size, await Net.Part().run()]") == ["1.50K", "1.50K", "1"]


def test_case_60_a_cell_without_functions_is_profiled_line_by_line(notebook: Session) -> None:
    (table,) = notebook.run("%%mlrun\nheld = []\nfor i in range(5):\n    held.append(Block(100))\n").tables
    assert row(table, "held.append(Block(100))") == ["500.00B", "100.00B", "5"]
    assert row(table, "for i in range(5):")[-1] == "6"


def test_line_magic_shows_its_statement(notebook: Session) -> None:
    notebook.run(WORK)
    (table,) = notebook.run("%mlrun y = work(1024)").tables
    assert row(table, "y = work(1024)") == ["4.00K", "1.00K", "1"]
    assert len(titles(table)) == 1
    assert notebook.names["y"].size == 1024


def test_function_never_called_says_so(notebook: Session) -> None:
    (table,) = notebook.run(f"%%mlrun\n{WORK}").tables
    assert f"work: {NOT_RUN}" in table


# ---- as if typed ----


def test_variables_are_the_users(notebook: Session) -> None:
    notebook.run("a = 2")
    notebook.run("%%mlrun -q\nb = a + 1\na = 10\ndel b\nc = [a for _ in range(2)]\ndef f(): return a\n")
    assert (notebook.names["a"], notebook.names["c"]) == (10, [10, 10]) and "b" not in notebook.names
    assert notebook.run("f()").value == 10
    assert notebook.names["f"].__globals__ is notebook.shell.user_global_ns
    assert not [name for name in notebook.names if "mlrun" in name]


@pytest.mark.parametrize("cell", ["%mlrun -q 3 + 4", "%%mlrun -q\nx = 3\nx + 4"])
def test_case_58_the_last_value_is_the_result(notebook: Session, cell: str) -> None:
    outcome = notebook.run(cell)
    assert outcome.value == 7 and "Out[" in outcome.text
    assert notebook.run("_").value == 7


@pytest.mark.parametrize("code", ["3 + 4;", "x = 3", "for i in range(3): i", "None", "pass"])
def test_no_value_where_typed_code_shows_none(notebook: Session, code: str) -> None:
    assert notebook.run(f"%%mlrun -q\n{code}\n").value is None


def test_value_can_be_assigned(notebook: Session) -> None:
    notebook.run("value = %mlrun -q 3 + 4")
    assert notebook.names["value"] == 7


def test_interactivity_of_the_shell_is_kept(notebook: Session) -> None:
    try:
        notebook.shell.ast_node_interactivity = "last_expr_or_assign"
        assert notebook.run("%%mlrun -q\nx = 3 + 4\n").value == 7
        notebook.shell.ast_node_interactivity = "none"
        assert notebook.run("%%mlrun -q\n3 + 4\n").value is None
    finally:
        notebook.shell.ast_node_interactivity = "last_expr"


def test_code_is_taken_to_the_letter(notebook: Session) -> None:
    assert notebook.run("""%mlrun -q "it's",  'a  b', {1: 2}, "{x} $y" """).value == ("it's", "a  b", {1: 2}, "{x} $y")
    assert notebook.run("%mlrun -q -- -5").value == -5
    assert notebook.run("%mlrun -q 4 - 5").value == -1


def test_magics_and_shell_commands_run_in_the_cell(notebook: Session) -> None:
    notebook.run("%%mlrun -q\nfiles = !echo one two\n%time x = 5\n")
    assert notebook.names["files"] == ["one two"] and notebook.names["x"] == 5
    assert notebook.run("%%mlrun -q\n%%time\n6\n").value == 6


def test_await_at_top_level(notebook: Session) -> None:
    notebook.run("import asyncio")
    assert notebook.run("%mlrun -q await asyncio.sleep(0, 5)").value == 5
    notebook.run("x = %mlrun -q await asyncio.sleep(0, 6)")
    assert notebook.names["x"] == 6
    (table,) = notebook.run("""%%mlrun
async def numbers():
    for i in range(3):
        yield i
held = []
async for i in numbers():
    held.append(Block(100))
    await asyncio.sleep(0)
y = [i async for i in numbers()]
""").tables
    assert row(table, "held.append(Block(100))") == ["300.00B", "100.00B", "3"]
    assert row(table, "await asyncio.sleep(0)") == ["300.00B", "0.00B", "3"]
    assert notebook.names["y"] == [0, 1, 2]


def test_magic_without_its_sign_can_await_too(notebook: Session) -> None:
    """The shell makes a magic of it after all text was transformed."""
    notebook.run("import asyncio")
    outcome = notebook.attempt("mlrun -q await asyncio.sleep(0, 5)")
    assert outcome.value == 5 or "write %mlrun" in outcome.text


def test_await_is_refused_where_the_shell_refuses_it(notebook: Session) -> None:
    notebook.run("import asyncio")
    try:
        notebook.run("%autoawait off")
        assert isinstance(notebook.attempt("%mlrun await asyncio.sleep(0)").error, SyntaxError)
    finally:
        notebook.run("%autoawait on")


def test_variables_of_a_function_can_be_read_and_set(notebook: Session) -> None:
    outcome = notebook.run("""
def helper():
    return 100
def run(a):
    b = 1
    %mlrun -q b = a + sum(a * i for i in range(3))
    %mlrun -q new = (lambda: helper() + b)()
    %mlrun -q -f helper helper()
    %mlrun -q global everywhere; everywhere = new
    value = %mlrun -q new + 1
    def inner():
        nonlocal b
        %mlrun -q b = b + 1
    inner()
    get_ipython().run_cell_magic("mlrun", "-q", "a = 0\\nlast = a\\n")
    return a, b, value, locals()["new"], locals()["last"]
run(2), everywhere
""")
    assert outcome.value == ((0, 9, 109, 108, 0), 108)


def test_what_a_function_assigns_for_the_first_time_is_its_variable(notebook: Session) -> None:
    outcome = notebook.run("""
here = "the notebook's"
def run(a):
    %mlrun -q here = a + 1
    if a:
        %mlrun -q from os import path as found
    value = %mlrun -q more, *rest = a, 5, 6; more
    def inner():
        global everywhere2
        %mlrun -q everywhere2 = [here for more in range(2)]
        return here
    get_ipython().run_cell_magic("mlrun", "-q", "def last():\\n    return here\\nkept: int = 7\\n")
    return here, found.sep, value, more, rest, inner(), last(), kept
run(2), here
""")
    assert outcome.value == ((3, "/", 2, 2, [5, 6], 3, 3, 7), "the notebook's")


def test_peak_at_the_start_of_a_cell_is_on_its_first_line(notebook: Session) -> None:
    notebook.run("held = Block(4096)")
    (table,) = notebook.run("%%mlrun\nheld = None\nfree(allocate(1))\n").tables
    assert re.search(r"^Peak of .*, at Cell In\[\d+\]:1\. Held by:$", table, re.MULTILINE), table


def test_function_that_awaits_can_run_it(notebook: Session) -> None:
    outcome = notebook.run("""
import asyncio
async def run(a):
    b = 0
    %mlrun -q b = await asyncio.sleep(0, a)
    return b
await run(3)
""")
    assert outcome.value == 3


def test_names_of_a_class_body(notebook: Session) -> None:
    assert notebook.run("class A:\n    x = 2\n    %mlrun -q y = x + 1\nA.y").value == 3


def test_called_by_other_code_it_uses_the_notebooks_names(notebook: Session) -> None:
    a = "not this one"
    notebook.run("a = 2")
    notebook.shell.run_cell_magic("mlrun", "-q", "b = a + 1\n")
    assert notebook.shell.run_line_magic("mlrun", "-q b + 1") == 4 and a == "not this one"


def test_future_statements_last(notebook: Session) -> None:
    notebook.run("%%mlrun -q\nfrom __future__ import annotations\ndef f(x: nowhere): pass\n")
    assert notebook.run("f.__annotations__").value == {"x": "nowhere"}


def test_case_7_functions_and_classes_of_a_cell_can_be_pickled(notebook: Session) -> None:
    notebook.run("%%mlrun -q\nclass Net:\n    def forward(self): pass\ndef f(): pass\n")
    for name in ("Net", "f"):
        found = notebook.names[name]
        assert pickle.loads(pickle.dumps(found)) is found and found.__module__ == "__main__"
    assert type(notebook.names["f"]).__name__ == "function" and not hasattr(notebook.names["f"], "__wrapped__")


# ---- errors of the code ----


def test_error_passes_and_the_table_is_shown(notebook: Session) -> None:
    outcome = notebook.attempt("%%mlrun\nheld = Block(1024)\n\n1 / 0\nnever = 1\n")
    assert isinstance(outcome.error, ZeroDivisionError)
    assert row(outcome.tables[0], "held = Block(1024)") == ["1.00K", "1.00K", "1"]
    assert row(outcome.tables[0], "1 / 0")[-1] == "1"
    assert "line 4" in outcome.text and "----> 4 1 / 0" in outcome.text
    assert "mlrun.py" not in outcome.text and "scope.py" not in outcome.text
    assert notebook.names["held"].size == 1024


def test_last_frame_of_the_traceback_is_the_cells(notebook: Session) -> None:
    """That is where %debug starts, and what it can see."""
    error = notebook.attempt("%%mlrun -q\nwitness = 3\n1 / 0\n").error
    frame = error.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    assert frame.tb_lineno == 3 and frame.tb_frame.f_locals["witness"] == 3
    assert notebook.shell.compile.format_code_name(frame.tb_frame.f_code.co_filename)[0] == "Cell"


def test_debug_starts_in_the_cell(notebook: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.attempt("%%mlrun -q\nwitness = 3\n1 / 0\n")
    commands = iter(["p witness * 7", "p __name__", "q"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(commands))
    text = notebook.run("%debug").text
    assert "21" in text and "__main__" in text and "3 1 / 0" in text


def test_syntax_error_names_the_line_of_the_cell(notebook: Session) -> None:
    outcome = notebook.attempt("%%mlrun\nx = 1\nx ===\n")
    assert isinstance(outcome.error, SyntaxError) and outcome.error.lineno == 3 and "x ===" in outcome.text
    assert "cell.py" not in outcome.text


@pytest.mark.filterwarnings("ignore:To exit")
def test_interrupted_and_ended_code_shows_what_was_gathered(notebook: Session) -> None:
    for error in ("KeyboardInterrupt", "SystemExit"):
        outcome = notebook.attempt(f"%%mlrun\nheld = Block(1024)\nraise {error}\n")
        assert type(outcome.error).__name__ == error
        assert row(outcome.tables[0], "held = Block(1024)")[0] == "1.00K"
        del notebook.names["held"]


def test_tracer_is_as_before(notebook: Session) -> None:
    notebook.run("%mlrun -q 1")
    notebook.attempt("%mlrun -q 1/0")
    assert sys.gettrace() is None


def test_profiler_that_fails_does_not_fail_the_code(notebook: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytorch_memlab_c import LineProfiler

    def fail(self: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(LineProfiler, "records", fail)
    outcome = notebook.run("%mlrun 3 + 4")
    assert outcome.value == 7 and "%mlrun: the profile could not be shown or written: broken" in outcome.text


# ---- options ----


def test_named_functions_alone_are_profiled(notebook: Session) -> None:
    notebook.run(WORK)
    (table,) = notebook.run("%%mlrun -f work -f other\ndef other(): return work(512)\nheld = other()\n").tables
    assert titles(table) == ["other", "work"]
    assert row(table, "held = Block(size)") == ["512.00B", "512.00B", "1"]


@pytest.mark.parametrize("name", ["Net.forward", "net.forward", "nets['a'].forward", "Net.Part.run", "Net.outer.inner"])
def test_methods_can_be_named(notebook: Session, name: str) -> None:
    define = """
class Net:
    class Part:
        def run(self): return Block(100)
    def forward(self): return Block(100)
    def outer(self):
        def inner(): return Block(100)
        return inner()
"""
    use = "net = Net(); nets = {'a': net}\n"
    run = "held = Net().forward(), Net.Part().run(), Net().outer()\n"
    if name.startswith("Net"):
        (table,) = notebook.run(f"%%mlrun -f {name}\n{define}{run}").tables
    elif name == "net.forward":
        notebook.run(define + use)
        (table,) = notebook.run(f"%%mlrun -f {name}\n{run}").tables
    else:
        notebook.run(define + use)
        (table,) = notebook.run(f'%%mlrun -f "{name}"\n{run}').tables
    (title,) = titles(table)
    assert title.split(".")[-1] == name.split(".")[-1] and "100.00B" in table


def test_dotted_paths_of_modules_are_imported(notebook: Session) -> None:
    for name in ("xml.dom.minidom", "mailcap"):
        sys.modules.pop(name, None)
    cell = """%%mlrun -f textwrap.TextWrapper.wrap -f m.parseString -f encode -f json.decoder.JSONDecoder.decode
import textwrap, xml.dom.minidom as m
from quopri import encode
textwrap.fill("a")
"""
    table = notebook.run(cell).tables[0]
    assert titles(table) == ["TextWrapper.wrap", "parseString", "encode", "JSONDecoder.decode"]
    assert f"encode: {NOT_RUN}" in table and f"TextWrapper.wrap: {NOT_RUN}" not in table


def test_case_59_a_cell_run_again_uses_its_new_source(notebook: Session) -> None:
    first = notebook.run("%%mlrun -f work\ndef work(): return Block(100)\nheld = work()\n").tables[0]
    again = notebook.run("%%mlrun -f work\ndef work():\n    # now more\n    return Block(700)\nheld = work()\n").tables[
        0
    ]
    assert "return Block(100)" in first and "return Block(100)" not in again
    assert "# now more" in again and row(again, "return Block(700)")[1] == "700.00B"
    later = notebook.run("%mlrun -f work held = work()").tables[0]
    assert row(later, "return Block(700)")[-1] == "1"


def test_columns_are_added_or_replace_the_default_ones(notebook: Session) -> None:
    added = notebook.run("%mlrun -c allocations -c net.first held = Block(100)").tables[0]
    assert row(added, "held = Block(100)") == ["100.00B", "100.00B", "1", "1", "100.00B"]
    alone = notebook.run("%mlrun -D -c net.first held = Block(200)").tables[0]
    assert row(alone, "held = Block(200)") == ["100.00B"]


def test_case_58_the_profiler_is_returned_and_quiet_shows_nothing(notebook: Session) -> None:
    notebook.run(WORK)
    outcome = notebook.run("profiler = %mlrun -q -r -c allocations -f work work(100)")
    assert not outcome.tables and outcome.value is None and outcome.text == ""
    profiler = notebook.names["profiler"]
    frame = profiler.to_dataframe("work")
    assert list(frame.columns) == ["tensor_bytes.peak", "net.last", "hits", "allocations", "device", "code"]
    assert frame["allocations"].sum() == 2 and not profiler.enabled
    shown = notebook.run("%mlrun -r -f work work(100)")
    assert shown.value is not None and len(shown.tables) == 1


def test_table_is_written_to_a_file(notebook: Session, tmp_path: Path) -> None:
    path = tmp_path / "a file.txt"
    outcome = notebook.run(f'%mlrun -T "{path}" held = Block(100)')
    assert path.read_text() == outcome.tables[0] + "\n"
    notebook.attempt(f'%mlrun -q -T "{path}" held = Block(300); 1/0')
    assert row(path.read_text(), "held = Block(300); 1/0") == ["400.00B", "200.00B", "1"]


def test_target_is_as_before(notebook: Session) -> None:
    from pytorch_memlab_c import set_target_gpu
    from pytorch_memlab_c.engine import target_device

    set_target_gpu(2)
    try:
        notebook.attempt("%mlrun -q -g cpu held = Block(100); 1/0")
        assert target_device.target_name() == "cuda:2"
        table = notebook.run("%mlrun -g cpu held = Block(200)").tables[0]
        assert "device: cpu" in table and row(table, "held = Block(200)")[0] == "300.00B"
        notebook.run("%%mlrun -q\nfrom pytorch_memlab_c import set_target_gpu\nset_target_gpu('cpu');\n")
        assert target_device.target_name() == "cpu"
    finally:
        set_target_gpu(None)
        target_device._ever_set = False


def test_long_options(notebook: Session) -> None:
    notebook.run(WORK)
    outcome = notebook.run(
        "p = %mlrun --function work --column=hits --no_default_columns --gpu all --quiet --return-profiler work(1)"
    )
    assert outcome.text == "" and notebook.names["p"].columns == ("hits",)


USAGE = {
    "%mlrun": "write the code behind it",
    "%%mlrun -q\n \n": "write the code behind it",
    "%%mlrun x = 1\ny = 2\n": "put it below",
    "%mlrun -f work() work(1)": "name the function without calling it: -f work",
    "%mlrun -f wrok work(1)": "did you mean -f work?",
    "%mlrun -f work,Net work(1)": "-f work -f Net",
    "%mlrun -f work( work(1)": "write it like -f f",
    "%mlrun -f 'a + b' work(1)": "write it like -f f",
    "%mlrun -f Net work(1)": "as in -f Net.__init__ -f Net.forward",
    "%mlrun -f Net.backward work(1)": "did you mean -f Net.forward?",
    "%%mlrun -f New\nclass New:\n    def forward(self): pass\n": "as in -f New.forward",
    "%%mlrun -f New.foward\nclass New:\n    def forward(self): pass\n": "did you mean -f New.forward",
    "%%mlrun -f New.run\nclass New(Net):\n    pass\n": "name the class that it is from",
    "%mlrun -T '' work(1)": "as in -T lines.txt",
    "%mlrun -f net work(1)": "give module.forward",
    "%%mlrun -f later\nlater = work\n": "give it that in an earlier cell",
    "%mlrun -f json work(1)": "name one of its functions",
    "%mlrun -f len work(1)": "compiled, it has no Python lines; profile its caller",
    "%mlrun -f number work(1)": "give a function or method",
    "%mlrun -f json.nothing work(1)": "nothing",
    "%mlrun -c tensor_bytes.pek work(1)": "Did you mean 'tensor_bytes.peak'",
    "%mlrun -D work(1)": "-D -c net.first",
    "%mlrun -g nowhere work(1)": "'cuda:1'",
    "%mlrun -g -1 work(1)": "give an index (1)",
    "%mlrun -T /nowhere/lines.txt work(1)": "make it first",
    "%mlrun -T / work(1)": "name a file in it",
    "%mlrun -x work(1)": "%mlrun -- -x",
    "%mlrun -f": "expected one argument",
}


@pytest.mark.parametrize("cell", USAGE)
def test_wrong_call_is_one_line_that_says_what_to_write(notebook: Session, cell: str) -> None:
    notebook.run(
        WORK + "class Net:\n    def __init__(self): pass\n    def forward(self): pass\nnumber = 3\nnet = Net()\n"
    )
    message = notebook.usage_error(cell)
    assert USAGE[cell] in message and message.startswith("UsageError: ")


def test_module_that_cannot_be_imported_is_told(
    notebook: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module.py").write_text("import not_installed_here\n")
    (tmp_path / "failing_module.py").write_text("raise ValueError('two\\nlines')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "cannot be imported: ModuleNotFoundError: No module named 'not_installed_here'" in notebook.usage_error(
        "%mlrun -f broken_module.f 1"
    )
    assert notebook.usage_error("%mlrun -f failing_module.f 1").endswith("ValueError: two lines")
    assert "there is no function of that name" in notebook.usage_error("%mlrun -f broken_modul.f 1")


def test_case_12_a_call_in_place_of_a_name(notebook: Session) -> None:
    notebook.run(WORK)
    message = notebook.usage_error("%mlrun -f work() held = work(100)")
    assert message == "UsageError: -f work() is a call; name the function without calling it: -f work"
    assert "held" not in notebook.names


def test_help_explains_every_option(notebook: Session) -> None:
    help_text = notebook.shell.find_line_magic("mlrun").__doc__
    assert "%mlrun [-f func]... [-c column]... [-D] [-g gpu] [-q] [-r] [-T file] statement" in help_text
    for option in ("--function", "--column", "--no_default_columns", "--gpu", "--quiet", "--return-profiler", "--dump"):
        assert option in help_text
    assert "%%mlrun -f train_step" in help_text


# ---- completion, loading ----


def complete(notebook: Session, text: str, cursor: int | None = None) -> list[str]:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        position = len(text) if cursor is None else cursor
        return [
            text[: found.start][-40:] + found.text for found in notebook.shell.Completer.completions(text, position)
        ]


def test_completion_of_functions_and_columns(notebook: Session) -> None:
    notebook.run(WORK + "class Net:\n    size = 3\n    def forward(self): pass\nnet = Net()\nwords = 3\n")
    assert complete(notebook, "%mlrun -f wor") == ["%mlrun -f work"]
    assert complete(notebook, "%mlrun -q -f Net.") == ["%mlrun -q -f Net.forward"]
    assert complete(notebook, "%mlrun -f net.f") == ["%mlrun -f net.forward"]
    assert "%mlrun -c hits" in complete(notebook, "%mlrun -c hi")
    peaks = complete(notebook, "%%mlrun -D -c active_bytes.all.")
    assert [name.rpartition(".")[2] for name in peaks] == ["allocated", "current", "freed", "peak"] or len(peaks) == 4


def test_completion_of_functions_that_the_cell_defines(notebook: Session) -> None:
    cell = "%%mlrun -f New\nclass New:\n    def first(self): pass\n    async def second(self):\n        ("
    found = complete(notebook, cell, len("%%mlrun -f New"))
    assert [name.split()[-1] for name in found] == ["New.first", "New.second"]


def test_code_is_completed_as_ever(notebook: Session) -> None:
    notebook.run("some_long_name = 3")
    assert any("some_long_name" in name for name in complete(notebook, "%mlrun print(some_lo"))


def test_unload_takes_everything_away_and_load_brings_it_back(notebook: Session) -> None:
    shell = notebook.shell
    counted = len(shell.input_transformers_post), len(shell.Completer.custom_matchers)
    notebook.run("%unload_ext pytorch_memlab_c")
    assert "not found" in notebook.usage_error("%mlrun 1")
    assert (len(shell.input_transformers_post), len(shell.Completer.custom_matchers)) == (
        counted[0] - 1,
        counted[1] - 1,
    )
    notebook.run("%load_ext pytorch_memlab_c")
    notebook.run("%reload_ext pytorch_memlab_c")
    assert (len(shell.input_transformers_post), len(shell.Completer.custom_matchers)) == counted
    assert notebook.run("%mlrun -q 3").value == 3


def test_package_is_imported_without_ipython(tmp_path: Path) -> None:
    code = "import sys, pytorch_memlab_c as p; p.load_ipython_extension; print('IPython' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert out == "False\n"
