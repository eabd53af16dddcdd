"""Public reports about kinds of callables (cases 4 to 7): each stays what it is, is profiled, and pickles."""

from __future__ import annotations

import functools
import inspect
import pickle

import pytest
from program_support import Block, decorated, hits, level, lines, peaks
from run_program import run_program, titles

from pytorch_memlab_c import LineProfiler, profile, profile_every

# ---- 4 and 5: each kind of callable stays what it is, and is profiled ----


class Kinds:
    @profile(device="cpu")
    @classmethod
    def over_class(cls, size):
        block = Block(size)  # over_class
        return cls, block.size

    @classmethod
    @profile(device="cpu")
    def under_class(cls, size):
        block = Block(size)  # under_class
        return cls, block.size

    @profile(device="cpu")
    @staticmethod
    def over_static(size):
        block = Block(size)  # over_static
        return block.size

    @staticmethod
    @profile(device="cpu")
    def under_static(size):
        block = Block(size)  # under_static
        return block.size

    @profile(device="cpu")
    @property
    def over_property(self):
        "doc of over_property"
        block = Block(self.size)  # over_property
        return block.size

    @over_property.setter
    def over_property(self, value):
        self.size = value

    @property
    @profile(device="cpu")
    def under_property(self):
        block = Block(self.size)  # under_property
        return block.size

    @profile(device="cpu")
    @functools.cached_property
    def over_cached(self):
        block = Block(self.size)  # over_cached
        return block.size

    @functools.cached_property
    @profile(device="cpu")
    def under_cached(self):
        block = Block(self.size)  # under_cached
        return block.size

    @profile(device="cpu")
    @functools.lru_cache(maxsize=7)  # noqa: B019
    def over_lru(self, size):
        block = Block(size)  # over_lru
        return block.size

    @profile(device="cpu")
    def method(self, size):
        block = Block(size)  # method
        return self, block.size

    def method_for_partial(self, size):
        block = Block(size)
        return self, block.size

    size = 4096
    partial = profile(functools.partialmethod(method_for_partial, 4096), device="cpu")


class Derived(Kinds):
    pass


def test_case_4_kinds_are_kept():
    kinds = vars(Kinds)
    assert type(kinds["over_class"]) is type(kinds["under_class"]) is classmethod
    assert type(kinds["over_static"]) is type(kinds["under_static"]) is staticmethod
    assert type(kinds["over_property"]) is type(kinds["under_property"]) is property
    assert type(kinds["over_cached"]) is type(kinds["under_cached"]) is functools.cached_property
    assert type(kinds["partial"]) is functools.partialmethod
    assert type(kinds["over_lru"]) is type(functools.lru_cache(len))
    assert inspect.isfunction(kinds["method"])
    assert Kinds.over_property.__doc__ == "doc of over_property"


@pytest.mark.parametrize("name", ["over_class", "under_class"])
def test_case_4_a_classmethod_gets_the_right_class(name):
    assert getattr(Kinds, name)(4096) == (Kinds, 4096)
    assert getattr(Derived, name)(4096) == (Derived, 4096)
    assert getattr(Derived(), name)(4096) == (Derived, 4096)


CALLS = {
    "over_class": lambda k: k.over_class(4096),
    "under_class": lambda k: k.under_class(4096),
    "over_static": lambda k: k.over_static(4096),
    "under_static": lambda k: k.under_static(4096),
    "over_property": lambda k: k.over_property,
    "under_property": lambda k: k.under_property,
    "over_cached": lambda k: (k.over_cached, k.over_cached),
    "under_cached": lambda k: (k.under_cached, k.under_cached),
    "over_lru": lambda k: (k.over_lru(4096), k.over_lru(4096)),
    "method": lambda k: k.method(4096),
}


@pytest.mark.parametrize("name", CALLS)
def test_cases_4_and_5_each_kind_is_profiled_with_its_bytes(name):
    profiler = decorated(f"Kinds.{name}")
    profiler.clear()
    before = level()
    CALLS[name](Kinds())
    (row,) = [line for text, line in lines(profiler).items() if text.endswith(f"# {name}")]
    assert (row.hits, row.peak, row.net) == (1, before + 4096, 4096)
    assert level() == before


def test_case_5_a_property_setter_added_after_the_decorator_works():
    kinds = Kinds()
    kinds.over_property = 123
    assert kinds.over_property == 123


def test_case_5_a_cached_property_is_cached():
    kinds = Kinds()
    assert kinds.over_cached == kinds.__dict__["over_cached"] == 4096


def test_case_5_a_cached_property_decorated_after_its_class():
    class Late:
        @functools.cached_property
        def value(self):
            return 5

    Late.value = profile(vars(Late)["value"], device="cpu")
    late = Late()
    assert late.value == 5 and late.__dict__["value"] == 5


def test_case_5_partialmethod_and_its_arguments():
    kinds = Kinds()
    profiler = decorated("Kinds.method_for_partial")
    profiler.clear()
    before = level()
    assert kinds.partial() == (kinds, 4096)
    assert lines(profiler)["block = Block(size)"][:3] == (1, before + 4096, 4096)


def test_case_5_partial_keeps_its_parts_and_is_profiled():
    def f(a, b, *, size):
        block = Block(size)
        return a, b, block.size

    partial = functools.partial(f, 1, size=4096)
    partial.note = "kept"
    decorated_partial = profile(partial, device="cpu")
    before = level()
    assert type(decorated_partial) is functools.partial
    assert (decorated_partial.args, decorated_partial.keywords) == ((1,), {"size": 4096})
    assert decorated_partial.note == "kept"
    assert decorated_partial(2) == (1, 2, 4096)
    assert peaks(decorated(f.__qualname__))["block = Block(size)"] == before + 4096
    assert partial(2) == (1, 2, 4096)
    assert hits(decorated(f.__qualname__))["block = Block(size)"] == 1  # the partial given is not changed


def test_case_5_bound_method_keeps_its_object():
    class A:
        def m(self, size):
            block = Block(size)
            return self, block.size

    a = A()
    bound = profile(a.m, device="cpu")
    before = level()
    assert inspect.ismethod(bound) and bound.__self__ is a
    assert bound(4096) == (a, 4096)
    assert peaks(decorated(A.m.__qualname__))["block = Block(size)"] == before + 4096


def test_case_5_line_profiler_takes_each_kind():
    class A:
        @classmethod
        def of_class(cls):
            block = Block(1)
            return block.size

        @staticmethod
        def static():
            block = Block(2)
            return block.size

        @property
        def value(self):
            block = Block(4)
            return block.size

        @functools.cached_property
        def cached(self):
            block = Block(8)
            return block.size

        def method(self, size):
            block = Block(16)
            return block.size + size

        partial = functools.partialmethod(method, 1)

    @functools.lru_cache
    def lru():
        block = Block(32)
        return block.size

    def plain(size):
        block = Block(64)
        return block.size + size

    added = [vars(A)[n] for n in ("of_class", "static", "value", "cached", "partial")] + [A().method, lru]
    profiler = LineProfiler(*added, functools.partial(plain, 1), device="cpu")
    names = [f.qualname.rpartition(".")[2] for f in profiler.records().functions]
    assert names == ["of_class", "static", "value", "cached", "method", "lru", "plain"]  # method only once
    before = level()
    with profiler:
        a = A()
        A.of_class(), A.static(), a.value, a.cached, a.partial(), lru(), lru(), plain(1)
    for name, size in zip(names, (1, 2, 4, 8, 16, 32, 64), strict=True):
        (qualname,) = [f.qualname for f in profiler.records().functions if f.qualname.endswith(f".{name}")]
        assert lines(profiler, qualname)[f"block = Block({size})"][:3] == (1, before + size, size)


def test_line_profiler_takes_each_part_of_a_property():
    class A:
        @property
        def value(self):
            return self._value

        @value.setter
        def value(self, size):
            self._value = Block(size)

        @value.deleter
        def value(self):
            del self._value

    profiler = LineProfiler(A.value, device="cpu")
    assert len(profiler.records().functions) == 3
    with profiler:
        a = A()
        a.value = 100
        assert a.value.size == 100
        del a.value
    rows = [row for f in profiler.records().functions for row in f.lines if row.hits]
    assert [row.stats["cpu"][8] for row in rows] == [0, 100, -100]


# ---- 6: name, doc, signature ----


def every_kind():
    def plain(a, b: int = 2, /, c: str = "c", *rest: int, d, e: float = 5.0, **more: object) -> str:
        "doc of plain"
        return repr((a, b, c, rest, d, e, more))

    def generator(a, *, b=1):
        "doc of generator"
        yield a

    async def coroutine(a, b=(1, 2)):
        "doc of coroutine"
        return a

    async def asyncgen(*a, **b):
        "doc of asyncgen"
        yield a

    def no_parameters():
        "doc of no_parameters"

    return [plain, generator, coroutine, asyncgen, no_parameters, lambda x, y=3: (x, y)]


KINDS_OF_FUNCTION = [
    inspect.isfunction, inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction
]  # fmt: skip
KEPT = "__name__ __qualname__ __doc__ __module__ __annotations__ __defaults__ __kwdefaults__".split()


@pytest.mark.parametrize("decorate", [profile, profile_every(10**9), profile(device="cpu"), profile()])
@pytest.mark.parametrize("position", range(6))
def test_case_6_names_docs_and_signatures_are_kept(decorate, position):
    function = every_kind()[position]
    function.own_attribute = ["kept"]
    wrapped = decorate(function)
    assert wrapped is not function and wrapped.__wrapped__ is function
    assert inspect.signature(wrapped) == inspect.signature(function)
    assert inspect.signature(wrapped, follow_wrapped=False) == inspect.signature(function)
    assert [getattr(wrapped, name) for name in KEPT] == [getattr(function, name) for name in KEPT]
    assert [kind(wrapped) for kind in KINDS_OF_FUNCTION] == [kind(function) for kind in KINDS_OF_FUNCTION]
    assert wrapped.own_attribute == ["kept"]


def test_arguments_of_every_form_arrive():
    plain = profile(every_kind()[0], device="cpu")
    assert plain(1, d=4) == "(1, 2, 'c', (), 4, 5.0, {})"
    assert plain(1, 8, "x", 7, 6, d=4, e=1, z=9) == "(1, 8, 'x', (7, 6), 4, 1, {'z': 9})"
    assert plain(1, d=4, a=5, b=6) == "(1, 2, 'c', (), 4, 5.0, {'a': 5, 'b': 6})"


def test_names_and_numbers_of_arguments_that_cannot_be_written_out_arrive():
    @profile(device="cpu")
    def f(a, *rest, b=0, **named):
        return a, rest, b, named

    odd = {"class": 1, "a-b": 2, "x, y": 3, "__debug__": 4, "\ufb01": 5, "\u5927": 6, "": 7}
    assert f(1, 2, b=3, **odd) == (1, (2,), 3, odd)
    assert list(f(1, **odd)[3]) == list(odd)
    assert f(*range(1000)) == (0, tuple(range(1, 1000)), 0, {})
    assert f(0, function=1, arguments=2, _pml_function=3)[3] == {"function": 1, "arguments": 2, "_pml_function": 3}
    for count in range(70):
        names = {f"k{i}": i for i in range(count)}
        assert f(0, *range(count), **names) == (0, tuple(range(count)), 0, names)


def test_wrong_arguments_raise_as_without():
    function = every_kind()[0]
    messages = []
    for target in (function, profile(function, device="cpu")):
        with pytest.raises(TypeError) as caught:
            target()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_mutable_default_is_the_same_object():
    def f(seen=[]):  # noqa: B006
        seen.append(1)
        return seen

    assert profile(f, device="cpu")() is f.__defaults__[0] is f()


def test_a_closure_keeps_its_cell_and_super_works():
    class Base:
        def who(self):
            return "base"

    class Child(Base):
        @profile(device="cpu")
        def who(self):
            return "child of " + super().who()

    counted = 0

    @profile(device="cpu")
    def count():
        nonlocal counted
        counted += 1
        return counted

    assert Child().who() == "child of base"
    assert (count(), count(), counted) == (1, 2, 2)


def test_an_abstract_method_stays_abstract():
    import abc

    class A(abc.ABC):
        @profile(device="cpu")
        @abc.abstractmethod
        def m(self): ...

        @profile(device="cpu")
        @property
        @abc.abstractmethod
        def p(self): ...

    assert A.__abstractmethods__ == {"m", "p"}


# ---- 7: pickling ----


@profile(device="cpu")
def module_function(x):
    return x + 1


@profile_every(10**9)
def module_function_every(x):
    return x + 1


@profile(device="cpu")
@functools.lru_cache
def module_lru(x):
    return x + 1


@pytest.mark.parametrize("function", [module_function, module_function_every, module_lru, Kinds.over_class])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_case_7_decorated_functions_pickle(function, protocol):
    loaded = pickle.loads(pickle.dumps(function, protocol))
    assert loaded == function


def test_case_7_a_bound_method_and_an_object_of_a_decorated_class_pickle():
    kinds = Kinds()
    kinds.size = 17
    assert pickle.loads(pickle.dumps(kinds)).size == 17
    owner, size = pickle.loads(pickle.dumps(kinds.method))(5)
    assert type(owner) is Kinds and size == 5


POOL = """
import multiprocessing
from pytorch_memlab_c import profile, LineProfiler
from program_support import Block, level, report, report_lines, decorated

@profile
def work(size):
    block = Block(size)
    return block.size

class Model:
    @profile
    def __call__(self, size):
        block = Block(size)
        return -block.size

if __name__ == "__main__":
    with multiprocessing.get_context(METHOD).Pool(2) as pool:
        report(function=pool.map(work, range(5)), model=pool.map(Model(), range(5)))
    work(1024)
    report_lines(work=decorated("work"))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_case_7_pools_of_the_main_module(tmp_path, method):
    run = run_program(POOL.replace("METHOD", repr(method)), tmp_path)
    assert run.values["function"] == [0, 1, 2, 3, 4]
    assert run.values["model"] == [0, -1, -2, -3, -4]
    assert run.values["work"] == {"block = Block(size)": [1, 1024, 1024], "return block.size": [1, 1024, 0]}
    assert titles(run.stdout)[-2:] == ["work", "Model.__call__"]
    assert run.stdout.count("Model.__call__: never called") == 1  # the parent's own report; once, complete
    assert run.stderr == ""


def test_case_7_forked_pool_workers_print_nothing(tmp_path):
    run = run_program(POOL.replace("METHOD", "'fork'"), tmp_path)
    assert titles(run.stdout) == ["work", "Model.__call__"]
