"""The walk over live objects and what is made of its findings, without PyTorch: types alone decide, nothing is
touched."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections import deque

import pytest
from run_program import run_program

from pytorch_memlab_c import _native
from pytorch_memlab_c.data.device_names import device_order
from pytorch_memlab_c.mem_reporter.display import ReportDisplay
from pytorch_memlab_c.mem_reporter.frames import CHANGES, COLUMNS, compare
from pytorch_memlab_c.mem_reporter.levels import Level
from pytorch_memlab_c.mem_reporter.rows import Row, Section


class Thing:
    pass


class Derived(Thing):
    pass


class Other:
    pass


class Liar:
    """Claims to be a Thing; answers no question."""

    def __getattribute__(self, name):
        raise AssertionError(f"{name} was asked for")


class LyingMeta(type):
    def __instancecheck__(cls, instance):
        raise AssertionError("isinstance was asked")

    def __subclasscheck__(cls, subclass):
        raise AssertionError("issubclass was asked")


class Strange(metaclass=LyingMeta):
    pass


class TestWalk:
    def test_instances_of_the_type_and_of_what_derives_from_it(self):
        thing, derived, other = Thing(), Derived(), Other()
        found = _native.walk_instances(Thing)
        assert {id(thing), id(derived)} <= set(map(id, found)) and id(other) not in set(map(id, found))
        assert id(thing) not in set(map(id, _native.walk_instances(Derived)))

    def test_several_types_in_one_walk(self):
        thing, other = Thing(), Other()
        assert {id(thing), id(other)} <= set(map(id, _native.walk_instances((Thing, Other))))
        assert _native.walk_instances(()) == []

    def test_types_in_c_by_an_attribute(self):
        """Own attributes of types in C count, those of classes in Python do not, however they are called."""

        class Property:
            maxlen = property(lambda self: 1)

        kept = [Property(), deque()]
        assert {type(one) for one in _native.walk_instances("maxlen")} == {deque}
        assert {id(kept[0]), id(kept[1])} <= set(map(id, _native.walk_instances((Property, "maxlen"))))

    def test_strangers_are_asked_nothing(self):
        """Case 51: dead proxies, and classes with code of their own in every way of asking."""
        target, strange = Thing(), Strange()
        liar = object.__new__(Liar)
        proxy, live = weakref.proxy(target), Thing()
        alive = weakref.proxy(live)
        del target
        found = set(map(id, _native.walk_instances(Thing)))
        assert id(live) in found and not found & {id(proxy), id(alive), id(liar), id(strange)}
        assert id(strange) in set(map(id, _native.walk_instances(Strange)))

    def test_every_generation_is_walked(self):
        kept = []
        for generation in (2, 1, 0):
            kept.append(Thing())
            if generation:
                gc.collect(generation - 1)
        assert set(map(id, kept)) <= set(map(id, _native.walk_instances(Thing)))

    def test_the_same_objects_as_the_collector_lists(self):
        kept = [Derived() for _ in range(1000)]
        listed = {id(o) for o in gc.get_objects() if type(o) is Derived}
        found = _native.walk_instances(Derived)
        assert len(found) == len(listed) >= len(kept) and set(map(id, found)) == listed

    def test_nothing_is_kept(self):
        thing = Thing()
        before = sys.getrefcount(thing), sys.getrefcount(Thing)
        for _ in range(100):
            _native.walk_instances((Thing, Other))
        assert (sys.getrefcount(thing), sys.getrefcount(Thing)) == before

    def test_a_walk_over_everything_does_not_find_its_own_list(self):
        found = _native.walk_instances(object)
        assert id(found) not in map(id, found) and any(one is Thing for one in found)

    @pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 101])
    def test_each_once_in_the_order_of_the_collector(self, count):
        """The walk begins at both ends of the collector's lists: it meets once, wherever that is."""
        gc.collect()
        kept = [Other() if i % 3 else Derived() for i in range(count)]
        for derived in (Derived, Other):
            expected = [id(one) for one in kept if type(one) is derived]
            assert [id(one) for one in _native.walk_instances(derived)] == expected
        gc.collect()
        assert [id(one) for one in _native.walk_instances((Derived, Other))] == [id(one) for one in kept]

    def test_all_that_the_collector_lists(self):
        listed = gc.get_objects()
        found = set(map(id, _native.walk_instances(object)))
        assert {id(one) for one in listed} - {id(listed)} <= found

    @pytest.mark.parametrize("frozen", [False, True])
    def test_in_order_however_many_modules_lie_between(self, monkeypatch, frozen):
        """The walk begins at some of the modules as well: one known by two names, and what is no module, among them."""
        kept = []
        for i in range(300):
            module = types.ModuleType(f"between{i}")
            for name in (module.__name__, f"{module.__name__}_again"):
                monkeypatch.setitem(sys.modules, name, module if i % 5 else kept)
            kept += [Derived() for _ in range(i % 4)]
        gc.collect()
        expected = [id(one) for one in gc.get_objects() if type(one) is Derived]
        if frozen:
            gc.freeze()
        try:
            assert [id(one) for one in _native.walk_instances(Derived)] == expected and len(expected) == 450
        finally:
            gc.unfreeze()

    def test_a_list_for_each_kind_in_that_of_the_first_that_fits(self):
        kept = [Thing(), Derived(), Other(), deque()]
        derived, things, ends, none = _native.walk_kinds(Derived, Thing, "maxlen", Strange)
        assert [type(one) for one in derived] == [Derived] and [type(one) for one in things] == [Thing]
        assert id(kept[3]) in set(map(id, ends)) and none == [] and _native.walk_kinds() == ()
        with pytest.raises(TypeError, match="needs types"):
            _native.walk_kinds(Thing, 3)

    def test_while_a_collection_runs(self, tmp_path):
        """A finalizer makes modules known that the collector has set aside, and walks."""
        values = run_program(
            """
            import gc, sys, types
            from pytorch_memlab_c import _native
            from program_support import report

            class Thing: pass
            found = []

            class Finalized:
                def __del__(self):
                    for i, module in enumerate(self.modules):
                        sys.modules[f"from_the_dead{i}"] = module
                    found.append(len(_native.walk_instances(Thing)))

            things = [Thing() for _ in range(100)]
            finalized = Finalized()
            finalized.modules = [types.ModuleType(f"m{i}") for i in range(2000)]
            for module in finalized.modules:
                module.keeper = finalized
            del finalized, module
            gc.collect()
            report(found=found, after=len(_native.walk_instances(Thing)))
            """,
            tmp_path,
        ).values
        assert values == {"found": [100], "after": 100}

    @pytest.mark.parametrize("enabled", [True, False])
    def test_the_collector_is_as_it_was(self, enabled):
        (gc.enable if enabled else gc.disable)()
        try:
            _native.walk_instances(Thing)
            assert gc.isenabled() is enabled
        finally:
            gc.enable()

    @pytest.mark.parametrize("wrong", [3, b"Thing", (Thing, 3), None])
    def test_what_is_no_type_is_named(self, wrong):
        with pytest.raises(TypeError, match="needs types"):
            _native.walk_instances(wrong)

    def test_objects_that_gc_freeze_has_set_aside(self, tmp_path):
        """Held by an instance, a module, a local variable of a running frame, and a closure."""
        values = run_program(
            """
            import gc, weakref
            from pytorch_memlab_c import _native
            from program_support import report

            class Thing: pass
            class Holder: pass

            in_module = Thing()
            def outer():
                local, holder = Thing(), Holder()
                holder.inside = {"list": [Thing()]}
                closed = Thing()
                inner = lambda: closed
                gc.collect()
                gc.freeze()
                later = Thing()
                listed = sum(type(o) is Thing for o in gc.get_objects())
                found = len(_native.walk_instances(Thing))
                again = len(_native.walk_instances(Thing))
                frozen = gc.get_freeze_count()
                watched = weakref.ref(local)
                del local
                report(listed=listed, found=found, again=again, frozen=frozen, kept=watched() is not None)
                gc.unfreeze()
                return holder, inner, later
            outer()
            """,
            tmp_path,
        ).values
        assert values["listed"] == 1 and values["found"] == values["again"] == 5 and values["frozen"] > 1000
        assert not values["kept"], "the walk has left nothing in the frames that run"


class TestTryEach:
    def test_functions_and_attributes_of_c_types(self):
        assert _native.try_each(len, ["a", [1, 2], 3]) == [1, 2, None]
        assert _native.try_each(type.__dict__["__name__"], [int, Thing, 5]) == ["int", "Thing", None]
        assert _native.try_each(len, []) == []

    def test_what_must_end_the_program_passes(self):
        def interrupt(_):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            _native.try_each(interrupt, [1])
        with pytest.raises(TypeError):
            _native.try_each(len, (1, 2))


def test_cpu_blocks_are_known_by_their_address(tmp_path):
    values = run_program(
        """
        from pytorch_memlab_c import _native
        from program_support import report
        _native.seed_cpu(4096, 100)
        storages = [_native.Storage(1, address, 8, None) for address in (4096, 4100, 0)]
        _native.set_cpu_blocks(storages)
        report(known=storages[0].block, inside=storages[1].block, none=storages[2].block)
        """,
        tmp_path,
    ).values
    assert values == {"known": 100, "inside": 0, "none": 0}


def test_without_pytorch_the_report_says_so(tmp_path):
    program = """
        import sys
        from pytorch_memlab_c import MemReporter
        reporter = MemReporter(pre_collect=True)
        reporter.report(verbose=True, max_rows=None)
        frame = reporter.snapshot()
        assert len(frame) == 0 and len(reporter.diff(frame, frame)) == 0
        assert "torch" not in sys.modules
        """
    out = run_program(program, tmp_path).stdout
    assert out.startswith("Element type") and "note: PyTorch is not imported" in out


# ---- two snapshots ----


def frame(*rows):
    import pandas

    filled = [(name, kind, (1,), "float32", device, key, size, size) for name, kind, device, key, size in rows]
    return pandas.DataFrame.from_records(filled, columns=list(COLUMNS))


class TestDiff:
    def test_new_gone_grown_and_shrunk_largest_first(self):
        before = frame(
            ("a", "Tensor", "cpu", 1, 100),
            ("b", "Tensor", "cpu", 2, 50),
            ("c", "Tensor", "cpu", 3, 7),
            ("d", "T", "cpu", 4, 9),
        )
        after = frame(
            ("a", "Tensor", "cpu", 1, 300),
            ("c", "Tensor", "cpu", 3, 7),
            ("d", "T", "cpu", 4, 1),
            ("e", "T", "cuda:0", 9, 60),
        )
        found = compare(before, after)
        assert list(found.columns) == list(CHANGES)
        assert list(zip(found["change"], found["name"], found["bytes_changed"])) == [
            ("grown", "a", 200),
            ("new", "e", 60),
            ("gone", "b", -50),
            ("shrunk", "d", -8),
        ]
        assert found["bytes_changed"].sum() == after["storage_bytes"].sum() - before["storage_bytes"].sum()

    def test_a_named_tensor_on_another_storage_is_the_same_thing(self):
        before = frame(("cache", "Tensor", "cpu", 1, 100), ("w.grad", "Tensor", "cpu", 2, 40))
        after = frame(("cache", "Tensor", "cpu", 5, 150), ("w.grad", "Tensor", "cpu", 6, 40))
        assert [tuple(row) for row in compare(before, after)[["change", "name", "bytes_changed"]].values] == [
            ("grown", "cache", 50)
        ]

    def test_a_number_is_no_name(self):
        before, after = frame(("Tensor0", "Tensor", "cpu", 1, 100)), frame(("Tensor0", "Tensor", "cpu", 2, 100))
        assert sorted(compare(before, after)["change"]) == ["gone", "new"]

    def test_two_of_one_name_are_not_taken_for_one_another(self):
        before = frame(("s", "T", "cpu", 1, 10), ("s", "T", "cpu", 2, 20))
        after = frame(("s", "T", "cpu", 3, 30))
        assert sorted(compare(before, after)["change"]) == ["gone", "gone", "new"]

    def test_what_is_no_snapshot_is_named(self):
        import pandas

        with pytest.raises(ValueError, match="before is not a frame of MemReporter.snapshot"):
            compare(pandas.DataFrame(), frame())
        with pytest.raises(ValueError, match="after is not"):
            compare(frame(), "after")


# ---- what is shown ----


def section(rows, folded=(0, 0), device="cuda:0", level=None):
    return Section(device, rows, folded, 5, sum(row.nbytes for row in rows) + folded[1], level)


ROW = Row("weight", "", "Parameter", (1024, 1024), "float32", 1, 4 * 2**20, 4 * 2**20)
VIEW = Row("view", "weight", "Tensor", (2,), "float32", 1, 0, 0)
LEVEL = Level("cuda:0", seen=1000, saved=0, elsewhere=100, rounding=24, allocated=2000, reserved=4096, used=8192)


class TestLayout:
    def test_columns_stand_where_they_stood(self):
        lines = str(ReportDisplay([section([ROW, VIEW])], [], verbose=True)).splitlines()
        assert lines[0] == "Element type                                            Size  Used MEM"
        assert lines[1] == "-" * 79 and lines[2] == "Storage on cuda:0"
        assert lines[3] == "weight                                          (1024, 1024)     4.00M"
        assert lines[4] == "view(->weight)                                          (2,)     0.00B"
        assert lines[6] == "Total Tensors: 5 \tUsed Memory: 4.00M"

    def test_owners_only_if_asked_for(self):
        assert "view(->" not in str(ReportDisplay([section([ROW, VIEW])], [], verbose=False))

    def test_long_names_keep_the_columns_apart(self):
        lines = str(ReportDisplay([section([ROW._replace(name="x" * 70), ROW])], [], verbose=False)).splitlines()
        assert {len(line) for line in (lines[0], lines[3], lines[4])} == {len(lines[0])}

    def test_rows_left_out_are_one_line(self):
        text = str(ReportDisplay([section([ROW], folded=(99_999, 2**20))], [], verbose=False))
        assert "... and 99,999 more" in text and "1.00M" in text

    def test_the_ladder(self):
        text = str(ReportDisplay([section([ROW], level=LEVEL)], [], verbose=False))
        assert LEVEL.unreachable == 2000 - (1000 - 100 + 24)
        for line in (
            "tensors seen: 1000 bytes (1000.00B)",
            "of them not from PyTorch's allocator: 100 bytes (100.00B)",
            "allocator rounding: 24 bytes (24.00B)",
            "not reachable from Python: 1076 bytes (1.05K)",
            "allocated: 2000 bytes (1.95K)",
            "reserved: 4096 bytes (4.00K)",
            "used on cuda:0 by all processes: 8192 bytes (8.00K)",
        ):
            assert line in text.splitlines()

    def test_html_has_the_same_and_escapes_names(self):
        pytest.importorskip("jinja2")
        row = ROW._replace(name="<b>w</b>")
        html = ReportDisplay([section([row, VIEW], folded=(2, 8), level=LEVEL)], ["a <note>"], True)._repr_html_()
        assert "&lt;b&gt;w&lt;/b&gt;" in html and "<b>w" not in html and "a &lt;note&gt;" in html
        assert "4.00M" in html and "view(-&gt;weight)" in html and "... and 2 more" in html
        assert "not reachable from Python" in html and "1,076 bytes" in html

    def test_devices_are_in_order(self):
        names = ["meta", "cpu", "cuda:10", "cuda:2", "xpu:0"]
        assert sorted(names, key=device_order) == ["cuda:2", "cuda:10", "xpu:0", "cpu", "meta"]


def test_a_notebook_shows_html(tmp_path):
    pytest.importorskip("IPython")
    pytest.importorskip("jinja2")
    values = run_program(
        """
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.utils.capture import capture_output
        from program_support import report
        shell = InteractiveShell.instance()
        with capture_output() as captured:
            shell.run_cell("from pytorch_memlab_c import MemReporter; MemReporter().report()")
        report(kinds=[sorted(output.data) for output in captured.outputs], printed=captured.stdout)
        """,
        tmp_path,
    ).values
    assert values == {"kinds": [["text/html", "text/plain"]], "printed": ""}
