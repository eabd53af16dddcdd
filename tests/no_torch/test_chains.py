"""Which chains of Python objects hold given ones: one walk from roots, and what no root leads to."""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
import threading
from collections import deque
from itertools import repeat
from typing import Any

import pytest
from run_program import run_program

from pytorch_memlab_c import _native

OUTSIDE, GARBAGE = "outside", "garbage"


class Thing:
    """A target that the collector knows."""


class Slots:
    __slots__ = ("kept",)


class Hostile:
    """Whose every method is an error: none may be called."""

    def _fail(self, *arguments, **keywords):
        raise AssertionError("the program's code ran")

    __repr__ = __str__ = __hash__ = __eq__ = __getattribute__ = __iter__ = __len__ = __bool__ = _fail  # type: ignore


def chains(
    target: Any, *groups: list[Any], ours: tuple[Any, ...] = (), later: tuple[Any, ...] = (), most=8, limit=10**7
) -> list[list[Any]]:
    """All chains of one target: the number of the group, or its name, then the objects, without the target."""
    own = [sys._getframe(), sys._getframe(1), *ours]
    found = _native.find_chains([target], groups, own, list(later), most, limit)
    # A comprehension would have the target in a cell.
    return list(map(way, repeat(found), found.holders[0], repeat(target), repeat(len(groups))))


def way(found: Any, at: int, target: Any, groups: int) -> list[Any]:
    objects: list[Any] = []
    while at >= 0:
        objects.insert(0, found.objects[at])
        at = found.parents[at]
    if objects[-1] is target:
        objects.pop()
    group = -1 - at
    return [group if group < groups else (OUTSIDE, GARBAGE, GARBAGE)[group - groups], *objects]


def same(found: list[list[Any]], *expected: list[Any]) -> bool:
    """Equal objects are not enough."""
    return [list(map(id, one)) for one in found] == [list(map(id, one)) for one in expected]


class TestTheWayToATarget:
    def test_of_containers(self):
        thing = Thing()
        for held in ([thing], (thing,), {thing: 1}, {1: thing}, {thing}, frozenset([thing]), deque([thing])):
            root = [held]
            assert same(chains(thing, [root]), [0, root, held])

    def test_a_target_that_is_a_root(self):
        thing = Thing()
        assert same(chains(thing, [thing, thing]), [0])

    @pytest.mark.parametrize("kind", [str, object, int])
    def test_a_target_that_the_collector_does_not_know(self, kind):
        thing = {str: "".join(["no", " literal"]), object: object(), int: 10**30}[kind]
        held = [thing]
        assert same(chains(thing, [held]), [0, held])

    def test_of_attributes(self):
        thing, holder, slots = Thing(), Thing(), Slots()
        holder.kept, slots.kept = thing, thing
        (first, second) = chains(thing, [holder, slots])
        assert {id(first[1]), id(second[1])} == {id(holder), id(slots)}

    def test_of_closures_partials_methods_and_caches(self):
        thing = Thing()

        @functools.lru_cache(maxsize=2)
        def cached(n):
            return thing if n else None

        cached(1)
        for root in (lambda: thing, functools.partial(print, thing), functools.partial(print, key=thing), cached):
            (found, *_) = chains(thing, [root])
            assert found[:2] == [0, root]

    def test_the_shortest_comes_first(self):
        thing = Thing()
        near, far = [thing], [[[thing]]]
        assert same(chains(thing, [far, near]), [0, near], [0, far, far[0], far[0][0]])

    def test_a_holder_that_has_it_twice_is_one(self):
        thing = Thing()
        root = [thing, thing]
        assert same(chains(thing, [root]), [0, root])

    def test_as_many_as_asked_for(self):
        thing = Thing()
        root = [[thing] for _ in range(20)]
        assert len(chains(thing, [root], most=3)) == 3 and len(chains(thing, [root], most=30)) == 20

    def test_a_cycle_through_the_target_is_none(self):
        thing = Thing()
        thing.itself, thing.around = thing, [{"k": thing}]
        root = [thing]
        assert same(chains(thing, [root]), [0, root])
        thing.__dict__.clear()

    def test_what_is_ours_holds_nothing(self):
        thing = Thing()
        ours, other = [thing], [thing]
        root = [ours, other]
        assert same(chains(thing, [root], ours=(ours,)), [0, root, other])

    def test_the_first_group_goes_before_a_shorter_way(self):
        thing = Thing()
        first, second = [[[thing]]], [thing]
        assert same(chains(thing, [first], [second]), [0, first, first[0], first[0][0]], [1, second])

    def test_no_way_leads_through_a_root_of_a_later_group(self):
        thing = Thing()
        second = [thing]
        first = [second]
        assert same(chains(thing, [first], [second]), [1, second])

    def test_what_comes_later(self):
        thing, optimizer = Thing(), Thing()
        optimizer.state = [thing]
        model = [[[[[[thing]]]]]]
        found = chains(thing, [optimizer, model], later=(optimizer,))
        assert [one[1] for one in found] == [model, optimizer]
        alone = Thing()
        optimizer.state = [alone]
        assert chains(alone, [[optimizer]], later=(optimizer,))[0][2] is optimizer

    def test_a_class_is_looked_behind_last(self):
        class Holder:
            shared: Any = None

        thing = Thing()
        Holder.shared = thing
        deep = [[[[[thing]]]]]
        found = chains(thing, [Holder(), deep])
        assert [one[1] is deep for one in found] == [True, False]
        assert any(part is Holder for part in found[1])

    def test_the_limit(self):
        thing = Thing()
        root = [[[] for _ in range(1000)], [[[[thing]]]]]
        assert chains(thing, [root], limit=500) == []
        assert _native.find_chains([thing], ([root],), [sys._getframe()], [], 1, 500).walked < 2000

    def test_a_long_list_of_links(self):
        """Nothing recurs, and what chains share is there once."""
        things = [Thing() for _ in range(50_000)]
        head: Any = None
        for thing in things:
            head = (thing, head)
        found = _native.find_chains(things, ([head],), [things, sys._getframe()], [], 1, 10**7)
        assert all(len(held) == 1 for held in found.holders) and len(found.objects) == len(things)
        while head is not None:
            head = head[1]

    def test_several_targets_in_their_order_also_the_same_twice(self):
        a, b, c = Thing(), Thing(), Thing()
        root = [[a], [b]]
        found = _native.find_chains([b, a, c, b], ([root],), [sys._getframe()], [], 4, 10**6)
        places = [[found.objects[at] for at in held] for held in found.holders]
        assert [held[:1] for held in places] == [[[b]], [[a]], [], [[b]]] and c is not None


class TestWhatNoRootLeadsTo:
    def test_garbage_in_a_cycle(self):
        gc.collect()
        gc.disable()
        try:
            thing, cycle = Thing(), Thing()
            cycle.itself, cycle.kept = cycle, [thing]
            held = cycle.kept
            del cycle, held
            (found,) = chains(thing, [])
            assert found[0] == GARBAGE and type(found[1]) is Thing and found[-1] == [thing]
            del found
        finally:
            gc.enable()

    def test_what_a_running_call_has_on_its_stack(self):
        thing = Thing()
        found = []
        for _ in iter([thing]):
            found = chains(thing, [])
        assert [one[0] for one in found] == [OUTSIDE]
        assert "iterator" in type(found[0][1]).__name__

    def test_not_for_what_has_a_root(self):
        thing, missing = Thing(), object()
        root, other = [thing], [thing]
        address = id(other)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(other))
        del other
        found = _native.find_chains([thing, missing], ([root],), [sys._getframe()], [], 8, 10**7)
        assert [found.objects[at] for at in found.holders[0]] == [root]
        ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(address))

    def test_what_c_holds(self):
        thing = Thing()
        held = [thing]
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
        address = id(held)
        del held
        (found,) = chains(thing, [])
        assert found[0] == OUTSIDE and id(found[1]) == address
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(found[1]))

    def test_the_lists_given_are_no_answer(self):
        thing = Thing()
        assert chains(thing, [], [[]], later=([],), ours=([],)) == []

    def test_not_looked_for_where_all_is_found(self):
        thing = Thing()
        garbage: Any = [thing]
        garbage.append(garbage)
        assert len(chains(thing, [[thing]])) == 1
        garbage.clear()


def test_nothing_is_kept_and_no_code_runs():
    thing, hostile = Thing(), Hostile()
    root = [hostile, {"k": [thing]}, thing]
    watched = [thing, root, root[1], Thing, Hostile, hostile]
    gc.collect()
    before = [sys.getrefcount(one) for one in watched]
    for _ in range(5):
        chains(thing, [root], later=(root[1],))
        chains(thing, [])
    gc.collect()  # the lists of these tests hold frames
    assert [sys.getrefcount(one) for one in watched] == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), (), [], [], 1, 1), "list"),
        (([], [], [], [], 1, 1), "tuple"),
        (([], ((),), [], [], 1, 1), "groups of roots that are lists"),
        (([], (), [], [], "1", 1), "int"),
    ],
)
def test_what_is_no_list_is_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        _native.find_chains(*arguments)


def test_while_other_threads_run():
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            kept: Any = [Thing() for _ in range(100)]
            kept.append(kept)

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        thing = Thing()
        root = {"k": [thing]}
        for _ in range(10):
            assert chains(thing, [root])[0] == [0, root, root["k"]]
            chains(thing, [])
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_all_objects_of_a_process(tmp_path):
    """From the modules on the walk comes to every kind of object, in every state that a program leaves them in."""
    values = run_program(
        """
        import asyncio, contextvars, ctypes, decimal, gc, itertools, json, re, sqlite3, sys, threading, types, weakref
        import xml.etree.ElementTree
        from pytorch_memlab_c import _native
        from program_support import report

        def generator():
            yield from itertools.tee(iter([1]))

        kept = [generator(), itertools.cycle([]), weakref.WeakKeyDictionary(), threading.local()]
        kept.append(types.SimpleNamespace(kept=kept))
        next(kept[0])
        class Thing: pass
        last = Thing()
        hidden = {"k": (last,)}
        frame = sys._getframe()
        found = _native.find_chains([last], ([sys.modules],), [frame], [], 8, 10**7)
        report(walked=found.walked, ways=[type(found.objects[at]).__name__ for at in found.holders[0]])
        """,
        tmp_path,
    ).values
    assert values["walked"] > 5000
    assert values["ways"] == ["dict", "tuple"]
