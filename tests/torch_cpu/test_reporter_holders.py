"""MemReporter names tensors by what holds them: variables, and containers and attributes a few steps from there."""

from __future__ import annotations

import collections
import functools
import sys
import time

import pandas
import pytest

torch = pytest.importorskip("torch")

from other_thread import inside  # noqa: E402

from pytorch_memlab_c import MemReporter  # noqa: E402
from pytorch_memlab_c.chains.insides import names_in  # noqa: E402

HISTORY: list[torch.Tensor] = []


class Holder:
    shared: torch.Tensor | None = None

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Slots:
    __slots__ = ("kept",)


class Hostile:
    """Whose every method is an error: none may be called."""

    def __init__(self, kept):
        object.__setattr__(self, "kept", kept)

    def _fail(self, *arguments, **keywords):
        raise AssertionError("the program's code ran")

    __repr__ = __str__ = __hash__ = __eq__ = __getattribute__ = __iter__ = __len__ = __bool__ = _fail  # type: ignore


class HostileList(list):
    __iter__ = __len__ = __getitem__ = __repr__ = __bool__ = Hostile._fail  # type: ignore


def names():
    """{elements: name} of all tensors, as the caller would see them."""
    code = sys._getframe(1).f_code
    caller = f"{getattr(code, 'co_qualname', code.co_name)}(): "
    frame = MemReporter().snapshot()
    return {
        shape[0]: name.removeprefix(caller) for shape, name in zip(frame["shape"], frame["name"]) if len(shape) == 1
    }


def test_containers_and_attributes_of_local_variables():
    slots = Slots()
    slots.kept = torch.ones(1010)
    kept = [
        [torch.ones(1000), torch.ones(1001)],
        {"k": torch.ones(1002), 3: torch.ones(1003), ("a", 1): torch.ones(1004)},
        collections.OrderedDict(k=torch.ones(1005)),
        collections.deque([torch.ones(1006)]),
        (torch.ones(1007),),
        {torch.ones(1008)},
        Holder(cache={"k": torch.ones(1009)}),
        slots,
        functools.partial(print, torch.ones(1011)),
        torch.nn.Linear(1, 1012),
    ]
    lists, keys, ordered, queue, pair, group, holder, slots, partial, layer = kept
    direct = torch.ones(1013)
    found = names()
    expected = {
        1000: "lists[0]",
        1001: "lists[1]",
        1002: "keys['k']",
        1003: "keys[3]",
        1004: "keys['a', 1]",
        1005: "ordered['k']",
        1006: "queue[0]",
        1007: "pair[0]",
        1008: "group{...}",
        1009: "holder.cache['k']",
        1010: "slots.kept",
        1011: "partial.args[0]",
        1012: "layer.bias",
        1013: "direct",
    }
    assert {size: found[size] for size in expected} == expected
    assert direct is not None and all(part is not None for part in kept)


def test_self_and_callers():
    class Trainer:
        def __init__(self):
            self.cache = {"k": torch.ones(1100)}

        def step(self):
            return names()

    def caller():
        waiting = torch.ones(1101)
        return Trainer().step(), waiting

    found, _ = caller()
    assert found[1100] == "self.cache['k']"
    assert found[1101].endswith("caller(): waiting")


def test_globals_classes_defaults_and_closures():
    HISTORY[:] = [torch.ones(1200), torch.ones(1201)]
    Holder.shared = torch.ones(1202)

    def made():
        free = torch.ones(1203)

        def function(default=torch.ones(1204)):  # noqa: B008
            return free, default

        return function

    functions = [made()]
    try:
        found = names()
    finally:
        HISTORY.clear()
        Holder.shared = None
    assert found[1201] == f"{__name__}.HISTORY[1]"
    assert found[1202] == f"{__name__}.Holder.shared"
    assert found[1203] == "functions[0](): free"
    assert found[1204] == "functions[0].__defaults__[0]"
    assert functions


def test_suspended_generators_and_coroutines():
    def stream():
        batch = torch.ones(1300)
        yield batch.shape

    async def task():
        state = torch.ones(1301)
        await Pause()
        return state

    class Pause:
        def __await__(self):
            yield

    generator, coroutine = stream(), task()
    next(generator)
    coroutine.send(None)
    found = names()
    coroutine.close()
    assert found[1300].endswith("stream(): batch")
    assert found[1301].endswith("task(): state")


def test_the_traceback_of_an_exception():
    def fails():
        inside = torch.ones(1400)
        raise ValueError(inside.shape)

    try:
        fails()
    except ValueError as error:
        caught = error
    assert names()[1400] == "held by the traceback of ValueError: inside"
    del caught
    assert 1400 not in names()


def test_another_thread():
    def work(wait):
        theirs = torch.ones(1500)
        wait()
        assert theirs is not None

    with inside(work):
        found = names()
    assert found[1500].endswith("work(): theirs")


def test_parts_of_named_tensors():
    weight = torch.ones(1600, requires_grad=True)
    (weight * 2).sum().backward()
    frame = MemReporter().snapshot()
    assert {"weight", "weight.grad"} <= set(frame["name"])


def test_code_of_the_program_does_not_run():
    hostile, keys = Hostile(torch.ones(1700)), HostileList([torch.ones(1701)])
    table = {hostile_key: torch.ones(1702) for hostile_key in [object()]}
    found = names()
    assert (found[1700], found[1701], found[1702]) == ("hostile.kept", "keys[0]", "table[<object>]")
    assert type(hostile) is Hostile and type(keys) is HostileList and type(table) is dict


def test_nothing_is_kept_by_the_search():
    local = torch.ones(1800)
    names()
    before = sys.getrefcount(local)
    for _ in range(3):
        names()
    assert sys.getrefcount(local) == before


def test_variables_of_locals_stay():
    kept = locals()
    kept["extra"] = 1
    value = torch.ones(1900)
    names()
    assert kept["extra"] == 1
    assert value is not None


def test_a_large_heap_is_searched_for_a_limited_time():
    numbers = list(range(3_000_000))
    deep = [[[object() for _ in range(10)] for _ in range(100)] for _ in range(300)]
    last = torch.ones(2000)
    start = time.perf_counter()
    found = names()
    assert time.perf_counter() - start < 20
    assert found[2000] == "last"
    assert numbers and deep and last.numel()


def test_what_is_not_found_is_numbered():
    deep = [[[[[[torch.ones(2100)]]]]]]
    assert names()[2100].startswith("Tensor")
    assert deep


@pytest.mark.parametrize("show", [str, repr, lambda frame: frame._repr_html_()], ids=["str", "repr", "html"])
def test_a_difference_is_shown_whole(show):
    before = MemReporter().snapshot()
    history = [torch.ones(3000 + i) for i in range(100)]
    changes = MemReporter.diff(before, MemReporter().snapshot())
    text = show(changes)
    assert isinstance(changes, pandas.DataFrame)
    assert all(f"history[{i}]" in text for i in range(len(history)))
    assert all(column in text for column in changes.columns)
    assert "..." not in text


def test_a_variable_that_holds_another_tensor_now_is_no_growth():
    kept = torch.ones(100)
    before = MemReporter().snapshot()
    kept = torch.ones(200)
    changes = MemReporter.diff(before, MemReporter().snapshot())
    assert sorted(changes["change"]) == ["gone", "new"]
    assert kept is not None


def test_a_type_that_its_module_has_not_made_ready():
    """`_testcapi` has one: its `__dict__` is None."""
    testcapi = pytest.importorskip("_testcapi")
    unready = [
        one
        for one in vars(testcapi).values()
        if isinstance(one, type) and type.__dict__["__dict__"].__get__(one) is None
    ]
    assert [list(names_in("unready", one, 100)) for one in unready] == [[]] * len(unready)
