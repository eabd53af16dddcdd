"""The mark limit_tensor_memory and --memlab-report, in pytest runs of their own. Most on made-up memory, without
torch."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import textwrap

import gpu_device
import pytest
from run_program import SUPPORT

pytest_plugins = "pytester"
pytestmark = pytest.mark.usefixtures("only_made_up_bytes")
HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")

#: Hypothesis' own plugin imports it anew in each of these runs.
QUICK = ["-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
HEAD = """
import pytest
from program_support import Block
limit = pytest.mark.limit_tensor_memory
"""


@pytest.fixture(autouse=True)
def helpers_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    for variable in ("PYTEST_ADDOPTS", "PYTORCH_MEMLAB_SIMULATE"):
        monkeypatch.delenv(variable, raising=False)


def run(pytester, source, *options, name="test_it", head=HEAD, apart=False):
    pytester.makepyfile(**{name: head + textwrap.dedent(source)})
    arguments = [*QUICK, "--strict-markers", *options]
    return pytester.runpytest_subprocess(*arguments) if apart else pytester.runpytest_inprocess(*arguments)


def failures(result):
    """What each failing test says, by its name."""
    text = result.stdout.str().partition("= FAILURES =")[2].partition("= short test summary")[0]
    parts = re.split(r"^_{3,} (\S+) _{3,}$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


# --- the limit -----------------------------------------------------------------------------------


def test_a_failure_shows_the_limit_the_peak_and_the_lines_at_it(pytester):
    pytester.makepyfile(
        model="""
        from program_support import Block

        class Net:
            def __init__(self):
                self.weight = Block(1024)

            def forward(self, x):
                small = Block(1024)
                scores = Block(10 * 1024 * x)
                del scores
                return small

        def train(net):
            out = net.forward(3)
            return out
        """
    )
    result = run(
        pytester,
        """
        from model import Net, train

        @limit("20 KB", device="cpu")
        def test_train():
            net = Net()
            train(net)
        """,
    )
    result.assert_outcomes(failed=1)
    text = failures(result)["test_train"]
    assert "limit_tensor_memory: 32.00K on cpu (tensor bytes), the limit is 20 KB\n" in text
    assert re.search(r"^  limit +20\.00K +20,480 bytes$", text, re.M)
    assert re.search(r"^  peak +32\.00K +32,768 bytes above the start of the test$", text, re.M)
    assert re.search(r"^  start +0\.00B +0 bytes held when", text, re.M)
    rows = re.findall(r"^ +(\S+) +(\S+) +(\S+) +(\d+)  (\S+:\d+) in (\S+)\n +(.*)$", text, re.M)
    assert rows == [
        ("32.00K", "0.00B", "31.00K", "1", "test_it.py:10", "test_train", "train(net)"),
        ("32.00K", "1.00K", "31.00K", "1", "model.py:14", "train", "out = net.forward(3)"),
        ("32.00K", "30.00K", "30.00K", "1", "model.py:9", "Net.forward", rows[2][-1]),
    ]
    assert rows[2][-1] == "scores = Block(10 * 1024 * x)"
    assert "pytest_plugin" not in text  # no frame of the plugin


def test_the_limit_is_exact(pytester):
    result = run(
        pytester,
        """
        @pytest.mark.parametrize("size", [1000, 1001])
        @limit("1000 B", device="cpu")
        def test_it(size):
            Block(size)
        @limit("0 B", device="cpu")
        def test_nothing(): pass
        @limit("1000 B", device="cpu")
        def test_one_after_the_other():
            for _ in range(5):
                Block(1000)
        """,
    )
    result.assert_outcomes(passed=3, failed=1)
    assert list(failures(result)) == ["test_it[1001]"]
    assert "1,001 bytes above" in failures(result)["test_it[1001]"]


def test_what_fixtures_made_does_not_count_and_what_is_freed_meanwhile_does_not_hide(pytester):
    result = run(
        pytester,
        """
        @pytest.fixture
        def big():
            Block(90_000)
            return [Block(50_000)]
        @limit("1000 B", device="cpu")
        def test_below(big):
            Block(1000)
        @limit("1000 B", device="cpu")
        def test_freed_first(big):
            big.clear()
            Block(51_000)
        @limit("1000 B", device="cpu")
        def test_above(big):
            kept = Block(2000)
        """,
    )
    result.assert_outcomes(passed=2, failed=1)
    assert re.search(r"start +48\.83K +50,000 bytes held", failures(result)["test_above"])


def test_a_test_keeps_its_own_outcome(pytester):
    result = run(
        pytester,
        """
        over = limit("10 B", device="cpu")
        @over
        def test_fails():
            kept = Block(100)
            assert kept is None, "its own reason"
        @over
        def test_skips():
            Block(100)
            pytest.skip("its own skip")
        @over
        @pytest.mark.skip
        def test_is_skipped(): Block(100)
        @over
        @pytest.mark.xfail(reason="too big", strict=True)
        def test_expected(): Block(100)
        @over
        @pytest.mark.xfail(raises=ZeroDivisionError)
        def test_expects_something_else(): Block(100)
        @over
        @pytest.mark.xfail(strict=True)
        def test_unexpectedly_small(): Block(1)
        @over
        @pytest.mark.xfail(run=False)
        def test_not_run(): Block(100)
        """,
    )
    result.assert_outcomes(failed=3, skipped=2, xfailed=2)
    texts = failures(result)
    assert "its own reason" in texts["test_fails"] and "limit_tensor_memory" not in texts["test_fails"]
    assert "100.00B on cpu" in texts["test_expects_something_else"]
    assert "XPASS(strict)" in texts["test_unexpectedly_small"]


def test_the_nearest_mark_wins(pytester):
    result = run(
        pytester,
        """
        pytestmark = limit("100 B", device="cpu")
        def test_module(): Block(200)
        @limit("300 B", device="cpu")
        class TestClass:
            def test_class(self): Block(200)
            @limit("150 B", device="cpu")
            def test_function(self): Block(200)
            @limit("150 B", device="cpu")
            @pytest.mark.parametrize("size", [pytest.param(200, marks=limit("250 B", device="cpu")), 201])
            def test_parameter(self, size): Block(size)
        """,
    )
    result.assert_outcomes(passed=2, failed=3)
    assert list(failures(result)) == ["test_module", "TestClass.test_function", "TestClass.test_parameter[201]"]


def test_of_unittest(pytester):
    result = run(
        pytester,
        """
        import unittest
        @limit("10 B", device="cpu")
        class Case(unittest.TestCase):
            def test_over(self): Block(100)
            def test_own(self): Block(100); self.fail("its own reason")
            def test_skips(self): Block(100); self.skipTest("its own skip")
            def test_below(self): Block(10)
        """,
    )
    result.assert_outcomes(passed=1, failed=2, skipped=1)
    assert "100.00B on cpu" in failures(result)["Case.test_over"]
    assert "limit_tensor_memory" not in failures(result)["Case.test_own"]


def test_functions_named_in_the_mark(pytester):
    source = """
        import functools
        def inner():
            return Block(500)
        def other(): pass
        table = {"f": inner}
        def test_found_by_no_name(): return table["f"]()
        @limit("10 B", device="cpu")
        def test_it(): table["f"]()
        @limit("10 B", device="cpu", functions=[inner, functools.partial(other)])
        def test_named(): table["f"]()
        """
    texts = failures(run(pytester, source))
    assert " in test_it" in texts["test_it"] and " in inner" not in texts["test_it"]
    assert " in test_named" in texts["test_named"] and " in inner" in texts["test_named"]
    assert " in other" not in texts["test_named"]


def test_below_given_and_on_threads_and_in_coroutines(pytester):
    pytest.importorskip("hypothesis", reason="hypothesis is not installed")
    result = run(
        pytester,
        """
        import asyncio, threading
        from hypothesis import given, settings, strategies
        def helper(size):
            kept = Block(size)
        async def wait():
            await asyncio.sleep(0)
            helper(500)
        @limit("400 B", device="cpu")
        @settings(max_examples=3, database=None)
        @given(strategies.integers(500, 500))
        def test_given(size): helper(size)
        @limit("400 B", device="cpu")
        def test_thread():
            thread = threading.Thread(target=helper, args=(500,))
            thread.start()
            thread.join()
        @limit("400 B", device="cpu")
        def test_coroutine(): asyncio.run(wait())
        """,
    )
    result.assert_outcomes(failed=3)
    for name, text in failures(result).items():
        assert f"in {name}" in text and "in helper\n" in text and "500.00B on cpu" in text


def test_a_peak_that_no_function_under_test_saw(pytester):
    result = run(
        pytester,
        """
        import threading
        from program_support import allocate, free
        @limit("10 B", device="cpu")
        def test_it(request):
            request.addfinalizer(lambda: free(100))
            allocate(100)
        """,
    )
    assert "test_it.py:10 in test_it" in failures(result)["test_it"]
    result = run(
        pytester,
        """
        class Item(pytest.Item):
            def runtest(self): Block(100)
        @pytest.hookimpl
        def pytest_collect_file(file_path, parent):
            if file_path.suffix == ".txt":
                return File.from_parent(parent, path=file_path)
        class File(pytest.File):
            def collect(self):
                item = Item.from_parent(self, name="one")
                item.add_marker(limit("10 B", device="cpu"))
                return [item]
        """,
        name="conftest",
    )
    pytester.maketxtfile(case="")
    result = pytester.runpytest_inprocess(*QUICK, "case.txt")
    result.assert_outcomes(failed=1)
    assert "no line of the functions under test was seen" in result.stdout.str()


def test_a_mark_added_while_the_test_is_set_up(pytester):
    result = run(
        pytester,
        """
        @pytest.fixture(autouse=True)
        def mark(request):
            request.node.add_marker(limit(request.node.name[5:].replace("_", " "), device="cpu"))
        def test_10_B(): Block(100)
        def test_100_B(): Block(100)
        def test_100_MX(): assert 0, "must not run"
        """,
    )
    result.assert_outcomes(passed=1, failed=2)
    assert "unknown unit 'MX'" in failures(result)["test_100_MX"]
    assert "must not run" not in failures(result)["test_100_MX"]


def test_a_device_that_is_not_there(pytester):
    result = run(
        pytester,
        """
        @limit("10 B", device="cuda:63")
        def test_passes(): pass
        @limit("10 B", device="cuda:63")
        def test_skips(): pytest.skip("no GPU")
        @limit("10 B", device="cuda:63")
        def test_fails(): assert 0, "its own reason"
        """,
        apart=True,
    )
    result.assert_outcomes(failed=2, skipped=1)
    assert "limit_tensor_memory: the limit '10 B' cannot be checked: " in failures(result)["test_passes"]
    assert "cannot be checked" not in failures(result)["test_fails"]


# --- marks that say nothing that can be checked --------------------------------------------------


def test_a_wrong_mark_fails_the_collection_and_names_the_test(pytester):
    pytester.makepyfile(test_good="def test_good(): pass")
    result = run(
        pytester,
        """
        @limit("1 MB", device="cpu")
        def test_right(): pass
        @pytest.mark.parametrize("x", range(30))
        @limit("200 Mb")
        def test_wrong(x): pass
        class TestIt:
            @limit()
            def test_method(self): pass
        """,
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR collecting test_it.py*",
            "test_it.py::test_wrong[[]0] (and 29 more): @pytest.mark.limit_tensor_memory: the limit '200 Mb' has the "
            "unknown unit 'Mb'; units are *",
        ]
    )
    result = pytester.runpytest_inprocess(*QUICK, "--continue-on-collection-errors", "test_good.py", "test_it.py")
    result.assert_outcomes(passed=1, errors=1)


def test_a_wrong_mark_in_a_class(pytester):
    result = run(pytester, "class TestIt:\n    @limit()\n    def test_method(self): pass\n")
    result.stdout.fnmatch_lines(
        ["*test_it.py::TestIt::test_method: @pytest.mark.limit_tensor_memory: the limit is missing*"]
    )


def test_the_mark_is_listed(pytester):
    assert (
        "@pytest.mark.limit_tensor_memory(limit, *, device=None"
        in pytester.runpytest_inprocess(*QUICK, "--markers").stdout.str()
    )


# --- the summary ---------------------------------------------------------------------------------

SIZES = """
    @pytest.mark.parametrize("size", [300, 100, 900, 500])
    def test_plain(size): Block(size)
    @limit("600 B", device="cpu")
    def test_over(): Block(700)
    @limit("600 B", device="cpu")
    def test_fails(): Block(400); assert 0
    def test_skips(): pytest.skip("not here")
    @pytest.mark.skip
    def test_skipped(): pass
"""


def summary(result):
    text = result.stdout.str().partition("peaks of tensor memory above the start of each test")[2]
    return [line.rstrip() for line in text.splitlines()[1:] if not line.startswith("=")]


HIGHEST = [
    "cpu (tensor bytes): the highest 3 of 7 tests",
    "    900.00B                  test_it.py::test_plain[900]",
    "    700.00B OVER 600.00B     test_it.py::test_over",
    "    500.00B                  test_it.py::test_plain[500]",
]


def test_the_summary_has_the_highest_tests(pytester):
    result = run(pytester, SIZES, "--memlab-report=3")
    assert summary(result)[:4] == HIGHEST
    assert "test_plain[300]" not in "\n".join(summary(result)[:4])
    result = run(pytester, SIZES, "--memlab-report")
    assert summary(result)[0] == "cpu (tensor bytes): the highest 7 of 7 tests"
    assert "    400.00B of 600.00B       test_it.py::test_fails" in summary(result)
    assert not summary(run(pytester, SIZES))


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", ""])
def test_a_wrong_number_of_tests(pytester, value):
    result = run(pytester, SIZES, f"--memlab-report={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--memlab-report*is not a number of tests*"])


def test_no_test_was_measured(pytester):
    assert summary(run(pytester, "", "--memlab-report"))[0] == "no test was measured"


def test_the_workers_of_xdist_share_one_summary(pytester):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    pytester.makepyfile(test_wrong=HEAD + "@limit('1 Mb')\ndef test_it(): pass\n")
    options = ["--memlab-report=3", "-n", "2", "--continue-on-collection-errors"]
    result = run(pytester, SIZES, *options, apart=True)
    result.assert_outcomes(passed=4, failed=2, skipped=2, errors=1)
    assert summary(result)[:4] == HIGHEST
    assert result.stdout.str().count("peaks of tensor memory") == 1
    assert re.search(r"700\.00B +0\.00B +700\.00B +1  test_it.py:\d+ in test_over", failures(result)["test_over"])
    result.stdout.fnmatch_lines(["*test_wrong.py::test_it: @pytest.mark.limit_tensor_memory: *unknown unit 'Mb'*"])


# --- beside other tools --------------------------------------------------------------------------


def test_nothing_happens_without_marks_and_option(pytester):
    result = run(
        pytester,
        """
        import sys
        def test_it():
            assert "pytorch_memlab_c.pytest_plugin" in sys.modules
            assert not {"torch", "pandas", "jinja2", "pytorch_memlab_c.pytest_plugin.measure"} & set(sys.modules)
            assert sys.gettrace() is None
        """,
        head="",
        apart=True,
    )
    result.assert_outcomes(passed=1)
    too_late = re.findall(r"cannot be rewritten; (\S+)", result.stdout.str())
    assert set(too_late) <= {"_editable_skbc_pytorch_memlab_c"}


def test_coverage_is_the_same_with_and_without_a_limit(pytester):
    pytest.importorskip("coverage", reason="coverage is not installed")
    pytester.makepyfile(
        work="""
        from program_support import Block

        def work(n):
            total = 0
            for i in range(n):
                if i % 2:
                    total += Block(i).size
                else:
                    total -= 1
            if total < 0:
                raise ValueError
            return total

        def never():
            return 1
        """
    )
    test = "from work import work\n\n{mark}def test_it():\n    kept = work(7)\n    assert kept == 5\n"
    covered = []
    for mark in ("", '@limit("1 MB", device="cpu")\n', '@limit("1 B", device="cpu")\n'):
        pytester.makepyfile(test_it=HEAD + test.format(mark=mark))
        pytester.run(
            sys.executable, "-m", "coverage", "run", "--branch", "--include=work.py", "-m", "pytest", "-q", *QUICK
        )
        pytester.run(sys.executable, "-m", "coverage", "json", "-o", "covered.json")
        covered.append(json.loads((pytester.path / "covered.json").read_text())["files"]["work.py"])
    assert covered[0]["summary"]["percent_covered"] < 100
    assert covered[0]["executed_lines"] and covered[0]["executed_branches"] and covered[0]["missing_lines"]
    assert covered[0] == covered[1] == covered[2]


def test_doctests_and_other_items_are_measured_too(pytester):
    pytester.makepyfile(
        work='def f():\n    """\n    >>> from program_support import Block\n    >>> Block(77).size\n    77\n    """\n'
    )
    result = pytester.runpytest_inprocess(*QUICK, "--doctest-modules", "--memlab-report")
    result.assert_outcomes(passed=1)
    assert "     77.00B  work.py::work.f" in summary(result)


# --- with PyTorch --------------------------------------------------------------------------------


@needs_torch
def test_cpu_tensors_to_the_byte(pytester):
    pytester.makepyfile(
        nets="""
        import torch
        class Attention(torch.nn.Module):
            def forward(self, x):
                scores = x @ x.transpose(1, 2)
                return scores.sum()
        def make(): return torch.nn.Sequential(Attention())
        """
    )
    result = run(
        pytester,
        """
        import torch
        from nets import make
        @pytest.fixture
        def graph():
            return [torch.ones(1000, requires_grad=True).exp().sum()]  # 4,000 bytes that only autograd holds, and 4
        @limit("992 B", device="cpu")
        def test_frees_what_only_a_graph_holds(graph):
            graph.clear()
            torch.ones(2249)
        @pytest.fixture
        def model(): return make()
        @pytest.fixture
        def x(): return torch.ones(2, 100, 10)
        @pytest.mark.parametrize("n", [1000, 1001])
        @limit("4000 B", device=torch.device("cpu"))
        def test_ones(n): torch.ones(n)
        @limit("1 MB", device="cpu")
        def test_passing(model, x): model(x)
        @limit("70 KB", device="cpu")
        def test_net(model, x): model(x)
        """,
        "--memlab-report",
        head=HEAD.replace("from program_support import Block\n", ""),
        apart=True,
    )
    result.assert_outcomes(passed=3, failed=2)
    assert "4,004 bytes above the start" in failures(result)["test_ones[1001]"]
    text = failures(result)["test_net"]
    assert "scores = x @ x.transpose(1, 2)" in text or "return scores.sum()" in text
    assert "in Attention.forward" in text
    peaks = {line.split()[-1]: line.split()[0] for line in summary(result)[1:6]}
    assert peaks["test_it.py::test_ones[1000]"] == "3.91K"
    # Two results of 100 x 100 floats, and their sum.
    assert re.search(r"peak +78\.\d\dK +80,004 bytes", text)


@gpu_device.gpu()
def test_gpu_memory_and_the_default_device(pytester, monkeypatch):
    for name, value in gpu_device.environment().items():
        monkeypatch.setenv(name, value)
    result = run(
        pytester,
        """
        import torch
        def make(n): return torch.empty(n, dtype=torch.uint8, device="cuda:0")
        @limit("1 KB")
        def test_default(): make(1025)
        @limit("1 KB", device="cuda:0")
        def test_below(): make(1000)
        @limit("1 KB", device="cpu")
        def test_other_device(): make(5000)
        @limit("1 KB", device="cpu")
        @limit("2 KB", device="cuda:0")
        def test_each_device(): make(5000); torch.empty(2000, dtype=torch.uint8)
        """,
        "--memlab-report",
        head=HEAD.replace("from program_support import Block\n", ""),
        apart=True,
    )
    result.assert_outcomes(passed=2, failed=2)
    text = failures(result)["test_default"]
    scope = "cuda:0 (allocated bytes)" if gpu_device.REAL else "cuda:0 (allocated bytes, simulated)"
    assert f"1.50K on {scope}, the limit is 1 KB" in text  # blocks are multiples of 512 bytes
    assert re.search(
        r"1\.50K +1\.50K +1\.50K +1  test_it.py:\d+ in make|1\.50K +0\.00B +1\.50K +1  test_it.py:\d+ in make", text
    )
    assert ("note: CUDA figures are simulated: " in text) is not gpu_device.REAL
    both = failures(result)["test_each_device"]
    assert "1.95K on cpu (tensor bytes), the limit is 1 KB" in both
    assert f"5.00K on {scope}, the limit is 2 KB" in both
    assert summary(result)[0] == f"{scope}: the highest 4 of 4 tests"
    assert "cpu (tensor bytes): the highest 4 of 4 tests" in summary(result)
