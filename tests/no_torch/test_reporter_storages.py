"""Storages and what is done with all of them at once, without PyTorch: plain objects answer the questions."""

from __future__ import annotations

import gc
import random
import sys
from collections import defaultdict
from operator import attrgetter

import pytest

from pytorch_memlab_c import _native
from pytorch_memlab_c._native import Storage


class Handle:
    def __init__(self, key, device="cpu", address=0, nbytes=0):
        self.key, self.device, self.address, self.nbytes = key, device, address, nbytes


class Thing:
    """Stands for a tensor."""

    def __init__(self, handle):
        self.handle = handle


#: Handle, key, device, address, bytes; the address is asked of the tensor.
QUESTIONS = (
    attrgetter("handle"),
    attrgetter("key"),
    attrgetter("device"),
    attrgetter("handle.address"),
    attrgetter("nbytes"),
)


def enter(things, questions=QUESTIONS):
    storages, devices = {}, defaultdict(list)
    answer = _native.enter_tensors(things, storages, devices, questions)
    return storages, devices, answer


def of_sizes(*sizes):
    storages = [Storage(i, 0, size, None) for i, size in enumerate(sizes)]
    for storage in storages:
        storage.tensors = [object()]
    return storages


class TestEntering:
    def test_each_storage_once_with_its_tensors_in_order(self):
        first, second = Handle(7, "cpu", 4096, 40), Handle(2**63, "cuda:0", 2**63 + 8, 2**40)
        things = [Thing(first), Thing(second), Thing(first), Thing(first)]
        storages, devices, answer = enter(things)
        assert answer == ([], []) and list(storages) == [7, 2**63]
        one, two = storages.values()
        assert (one.key, one.address, one.nbytes, one.counted, one.block, one.bare) == (7, 4096, 40, 40, 0, None)
        assert (two.key, two.address, two.nbytes) == (2**63, 2**63 + 8, 2**40)
        assert one.tensors == [things[0], things[2], things[3]] and two.tensors == [things[1]]
        assert devices == {"cpu": [one], "cuda:0": [two]}

    def test_what_has_no_storage_or_does_not_answer(self):
        things = [Thing(None), object(), Thing(object()), Thing(Handle("no number"))]
        storages, devices, (without, unbacked) = enter(things)
        assert without == things and not unbacked and not storages and not devices

    def test_a_size_without_memory_holds_nothing_and_is_told(self):
        class Symbol:
            pass

        symbol = Symbol()
        things = [Thing(Handle(i, "meta", 0, size)) for i, size in enumerate([0, 12, None, symbol])]
        storages, _, (without, unbacked) = enter(things)
        assert unbacked == [things[1], things[3]] and not without
        assert [storage.nbytes for storage in storages.values()] == [0, 0, 0, 0]

    def test_sizes_that_cannot_be_are_none(self):
        storages, _, _ = enter([Thing(Handle(i, "cpu", 64, size)) for i, size in enumerate([-1, 2**64 - 1, None, "8"])])
        assert [storage.nbytes for storage in storages.values()] == [0, 0, 0, 0]

    def test_what_must_end_the_program_passes_and_nothing_is_kept(self):
        def interrupt(_):
            raise KeyboardInterrupt

        things = [Thing(Handle(1, "cpu", 1, 1))]
        before = sys.getrefcount(things[0])
        for place in range(len(QUESTIONS)):
            with pytest.raises(KeyboardInterrupt):
                enter(things, (*QUESTIONS[:place], interrupt, *QUESTIONS[place + 1 :]))
        gc.collect()  # the frames of the tracebacks
        after = sys.getrefcount(things[0])
        assert after == before

    def test_nothing_is_kept(self):
        things = [Thing(Handle(i // 2, "cpu", 64 + i, 8)) for i in range(100)]
        before = [*map(sys.getrefcount, things), sys.getrefcount(Storage)]
        for _ in range(100):
            storages, _, _ = enter(things)
            _native.largest_first(list(storages.values()), 3)
            del storages
        after = [*map(sys.getrefcount, things), sys.getrefcount(Storage)]
        assert after == before

    def test_tensors_can_be_set(self):
        storage = Storage(1, 2, 3, "bare")
        assert storage.tensors == [] and storage.bare == "bare"
        for tensors in (["a"], ["a", "b"], []):
            storage.tensors = tensors
            assert storage.tensors == tensors
        with pytest.raises(TypeError, match="must be a list"):
            storage.tensors = ("a",)
        with pytest.raises(TypeError, match="must be a list"):
            del storage.tensors


class TestCountingOnce:
    def test_bytes_that_several_have_are_those_of_the_first(self):
        spans = [(100, 50), (0, 0), (120, 40), (100, 10), (160, 5), (0, 0), (120, 0)]
        storages = [Storage(i, address, nbytes, None) for i, (address, nbytes) in enumerate(spans)]
        _native.count_once(storages)
        assert [(s.address, s.nbytes, s.counted) for s in storages if s.nbytes] == [
            (100, 50, 50),
            (100, 10, 0),
            (120, 40, 10),
            (160, 5, 5),
        ]

    def test_as_many_bytes_as_are_covered(self):
        chance = random.Random(5)
        spans = [(chance.randrange(1, 2000), chance.randrange(60)) for _ in range(300)]
        storages = [Storage(i, address, nbytes, None) for i, (address, nbytes) in enumerate(spans)]
        kept = set(map(id, storages))
        _native.count_once(storages)
        covered = {byte for address, nbytes in spans for byte in range(address, address + nbytes)}
        assert sum(storage.counted for storage in storages) == len(covered)
        assert set(map(id, storages)) == kept and [s.address for s in storages] == sorted(a for a, _ in spans)


class TestLargestFirst:
    def test_all_in_order_and_equal_ones_as_they_came(self):
        storages = of_sizes(5, 9, 5, 0, 9)
        ordered, left_out = _native.largest_first(storages, sys.maxsize)
        assert [storage.key for storage in ordered] == [1, 4, 0, 2, 3] and left_out == []
        assert [storage.key for storage in storages] == [0, 1, 2, 3, 4]

    def test_left_out_are_single_ones_with_bytes(self):
        storages = of_sizes(1, 2, 3, 4, 0, 2)
        storages[0].tensors = ["a", "b"]
        ordered, left_out = _native.largest_first(storages, 2)
        assert [storage.key for storage in ordered] == [3, 2, 0, 4]
        assert left_out == storages[1].tensors + storages[5].tensors

    @pytest.mark.parametrize("rows", [0, 1, 10, 99, 100, 500])
    def test_the_same_as_sorting(self, rows):
        chance = random.Random(rows)
        storages = of_sizes(*(chance.randrange(1, 12) for _ in range(300)))
        ordered, left_out = _native.largest_first(storages, rows)
        expected = sorted(storages, key=lambda storage: -storage.counted)
        assert [s.key for s in ordered] == [s.key for s in expected[:rows]]
        assert set(map(id, left_out)) == {id(s.tensors[0]) for s in expected[rows:]}


class TestSums:
    def test_bytes_blocks_and_bytes_without_a_block(self):
        storages = of_sizes(10, 20, 2**40)
        storages[0].block, storages[1].block = 512, 1024
        assert _native.sum_storages(storages) == (30 + 2**40, 1536, 2**40)
        assert _native.sum_storages([]) == (0, 0, 0)

    @pytest.mark.parametrize("wrong", [None, (1,), [1], [None]])
    def test_what_is_no_list_of_storages_is_refused(self, wrong):
        for function in (_native.sum_storages, _native.count_once, _native.set_cpu_blocks):
            with pytest.raises(TypeError, match="Storage"):
                function(wrong)
        with pytest.raises(TypeError, match="Storage"):
            _native.largest_first(wrong, 1)


class TestQuestions:
    def test_answers_that_are_neither_none_nor_false(self):
        objects = ["a", "", 3, None]
        lengths, texts = _native.find_answers(objects, len, lambda one: isinstance(one, str))
        assert lengths == [("a", 1), ("", 0)] and texts == [("a", True), ("", True)]
        assert _native.find_answers([], len) == ([],) and _native.find_answers(["a"]) == ()

    def test_sums_of_integers(self):
        assert _native.sum_answers(len, ["abc", 3, [1], {}]) == 4
        assert _native.sum_answers(lambda one: one, [2, 2**40, "x", 1.5, None, True, -1]) == 2**40 + 1

    def test_what_must_end_the_program_passes(self):
        def interrupt(_):
            raise KeyboardInterrupt

        for ask in (lambda: _native.find_answers([1], interrupt), lambda: _native.sum_answers(interrupt, [1])):
            with pytest.raises(KeyboardInterrupt):
                ask()
        for wrong in ((), ((1,), len)):
            with pytest.raises(TypeError, match="needs a list"):
                _native.find_answers(*wrong)

    def test_an_object_that_is_not_of_the_attributes_type(self):
        name = type.__dict__["__name__"]
        assert _native.try_each(name, [int, 5]) == ["int", None]
        assert _native.find_answers([int, 5], name) == ([(int, "int")],)


def test_storages_are_no_burden_to_the_collector():
    assert not gc.is_tracked(Storage(1, 2, 3, None))
