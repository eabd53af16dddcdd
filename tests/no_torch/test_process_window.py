"""`peak_memory` and the engine's windows (spec.md 3), on a made-up allocator: no PyTorch is needed."""

from __future__ import annotations

import random
import sys
import threading
from contextlib import ExitStack

import pytest
from program_support import CPU, Block, allocate, free, level, peaks
from run_program import run_program

from pytorch_memlab_c import LineProfiler, _native, peak_memory

ACTIVE, ALLOCATED, RESERVED = range(3)


def figures(window, slot=CPU):
    """(start, peak, now) of the window, each as (active, allocated, reserved)."""
    values = window.figures(slot)
    return values[:3], values[3:6], values[6:]


class TestBlock:
    def test_the_peak_and_what_it_is_above_the_start(self):
        before = level()
        held = Block(1000)
        with peak_memory("cpu") as p:
            allocate(5000)
            free(5000)
            allocate(10)
        assert p.allocated_peak_bytes == p.peak_bytes
        assert (p.baseline_bytes, p.peak_bytes, p.delta_bytes) == (before + 1000, before + 6000, 5000)
        assert p.reserved_peak_bytes is None, "the CPU has no caching allocator"
        free(10)
        del held

    def test_an_earlier_peak_is_not_the_blocks(self):
        del_me = Block(10**9)
        del del_me
        with peak_memory("cpu") as p:
            allocate(7)
            free(7)
        assert p.delta_bytes == 7

    def test_nothing_allocated_is_zero_also_where_memory_is_freed(self):
        held = Block(500)
        with peak_memory("cpu") as p:
            del held
        assert p.delta_bytes == 0
        assert p.peak_bytes == p.baseline_bytes

    def test_figures_are_live_while_it_is_open_and_stay_afterwards(self):
        with peak_memory("cpu") as p:
            assert p.delta_bytes == 0
            allocate(100)
            assert p.delta_bytes == 100
            free(100)
            allocate(300)
            assert p.delta_bytes == 300
            free(300)
        allocate(10_000)
        assert p.delta_bytes == 300
        free(10_000)

    def test_blocks_nest(self):
        with peak_memory("cpu") as outer:
            allocate(100)
            with peak_memory("cpu") as inner:
                allocate(30)
                free(30)
            free(100)
            allocate(40)
            free(40)
        assert (outer.delta_bytes, inner.delta_bytes) == (130, 30)

    def test_blocks_overlap(self):
        first, second = peak_memory("cpu"), peak_memory("cpu")
        first.__enter__()
        allocate(100)
        second.__enter__()
        allocate(1)
        first.__exit__()
        allocate(1000)
        second.__exit__()
        free(1101)
        assert (first.delta_bytes, second.delta_bytes) == (101, 1001)

    def test_a_block_may_be_entered_again_and_begins_anew(self):
        p = peak_memory("cpu")
        with p:
            allocate(50)
        first = p.delta_bytes
        with p:
            allocate(3)
        free(53)
        assert (first, p.delta_bytes) == (50, 3)

    def test_entering_an_open_block_is_refused_and_does_not_disturb_it(self):
        with peak_memory("cpu") as p:
            allocate(5)
            with pytest.raises(RuntimeError, match="open already"):
                p.__enter__()
            allocate(6)
        free(11)
        assert p.delta_bytes == 11

    def test_an_exception_passes_and_the_block_has_its_figures(self):
        with pytest.raises(KeyError, match="lost"):
            with peak_memory("cpu") as p:
                allocate(9)
                raise KeyError("lost")
        allocate(100)
        free(109)
        assert p.delta_bytes == 9

    def test_before_it_is_entered_there_are_no_figures(self):
        p = peak_memory("cpu")
        with pytest.raises(RuntimeError, match="not been entered"):
            print(p.peak_bytes)
        assert "not entered" in repr(p)

    def test_its_repr_tells_the_figures(self):
        with peak_memory("cpu") as p:
            allocate(4000)
            free(4000)
        assert "cpu, closed" in repr(p) and "4,000 above the start" in repr(p)

    def test_what_another_thread_allocates_counts_in_every_open_block(self):
        def other():
            with peak_memory("cpu") as theirs:
                allocate(70)
                free(70)
            seen.append(theirs.delta_bytes)

        seen: list[int] = []
        with peak_memory("cpu") as p:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert seen == [70]
        assert p.delta_bytes == 70

    def test_many_threads_open_and_close_blocks(self):
        def work(size):
            for _ in range(200):
                with peak_memory("cpu") as p:
                    allocate(size)
                    free(size)
                if not size <= p.delta_bytes <= 8 * 800:
                    wrong.append((size, p.delta_bytes))

        wrong: list[tuple[int, int]] = []
        threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_inside_a_profiled_line_both_are_right(self):
        def work():
            allocate(10)
            with peak_memory("cpu") as p:
                allocate(200)
                free(200)
            free(10)
            return p

        base = level()
        with LineProfiler(work, device="cpu") as profiler:
            p = work()
        assert p.delta_bytes == 200
        assert peaks(profiler)["allocate(200)"] - base == 210
        assert peaks(profiler)["free(10)"] - base == 10

    def test_around_a_profiled_function(self):
        def work():
            allocate(33)
            free(33)

        profiler = LineProfiler(work, device="cpu")
        with peak_memory("cpu") as p, profiler:
            work()
            work()
        assert p.delta_bytes == 33

    def test_a_block_that_is_dropped_open_leaves_the_others_alone(self):
        with peak_memory("cpu") as outer:
            dropped = peak_memory("cpu")
            dropped.__enter__()
            del dropped
            allocate(12)
            free(12)
        assert outer.delta_bytes == 12


class TestWindow:
    """What `peak_memory` stands on, with accelerators made up: slot 1 + i is accelerator i."""

    def test_all_three_metrics_have_their_own_start_peak_and_present(self, tmp_path):
        values = run_program(
            """
            from pytorch_memlab_c import _native
            from program_support import report
            _native.inject_event(1, 100, 100, 2000)
            window = _native.PeakWindow()
            window.open()
            _native.inject_event(1, 50, 150, 2000)
            _native.inject_event(1, -100, 50, 4000)
            _native.inject_event(1, -20, 30, 1000)
            live = window.figures(1)
            window.close()
            _native.inject_event(1, 9000, 9030, 9999)
            report(live=live, closed=window.figures(1), other=window.figures(2))
            """,
            tmp_path,
        ).values
        assert values["live"] == values["closed"] == [100, 100, 2000, 150, 150, 4000, 30, 30, 1000]
        assert values["other"] == [0] * 9

    def test_a_device_that_appears_inside_began_with_nothing(self, tmp_path):
        values = run_program(
            """
            from pytorch_memlab_c import _native
            from program_support import report
            window = _native.PeakWindow()
            window.open()
            _native.inject_event(3, 64, 64, 512)
            window.close()
            report(figures=window.figures(3))
            """,
            tmp_path,
        ).values
        assert values["figures"] == [0, 0, 0, 64, 64, 512, 64, 64, 512]

    def test_closing_twice_and_before_opening_does_nothing(self):
        window = _native.PeakWindow()
        window.close()
        assert not window.is_open and window.figures(CPU) == (0,) * 9
        window.open()
        assert window.is_open
        allocate(5)
        window.close()
        free(5)
        kept = window.figures(CPU)
        window.close()
        assert window.figures(CPU) == kept and not window.is_open

    def test_opening_an_open_window_is_refused(self):
        window = _native.PeakWindow()
        window.open()
        with pytest.raises(RuntimeError, match="open already"):
            window.open()

    @pytest.mark.parametrize("slot", [-1, _native.MAX_DEVICES, 10**30])
    def test_a_slot_that_is_none_is_refused(self, slot):
        with pytest.raises((ValueError, OverflowError)):
            _native.PeakWindow().figures(slot)

    def test_it_takes_no_arguments(self):
        with pytest.raises(TypeError):
            _native.PeakWindow(1)

    @pytest.mark.parametrize("seed", range(20))
    def test_any_overlap_against_the_history_of_levels(self, seed):
        choose = random.Random(seed)
        held, history, windows = 0, [level()], {}
        for _ in range(400):
            change = choose.randint(-held, 1000 - held // 4)
            held += change
            _native.inject_event(CPU, change)
            history.append(history[-1] + change)
            key = choose.randrange(6)
            if key in windows:
                window, since = windows.pop(key)
                window.close()
                start, peak, now = figures(window)
                assert start[ALLOCATED] == history[since]
                assert peak[ALLOCATED] == max(history[since:])
                assert now[ALLOCATED] == history[-1]
            else:
                windows[key] = _native.PeakWindow(), len(history) - 1
                windows[key][0].open()
        free(held)

    def test_a_thousand_windows_leave_nothing(self):
        def use(count):
            for _ in range(count):
                window = _native.PeakWindow()
                window.open()
                window.figures(CPU)

        use(10)
        before = sys.getrefcount(_native.PeakWindow)
        use(1000)
        assert sys.getrefcount(_native.PeakWindow) < before + 10

    def test_a_profiler_that_stops_inside_a_block_takes_nothing_from_it(self):
        def work():
            allocate(20)
            free(20)

        with ExitStack() as stack:
            p = stack.enter_context(peak_memory("cpu"))
            with LineProfiler(work, device="cpu"):
                work()
            allocate(1)
            free(1)
            assert p.delta_bytes == 20


class TestFork:
    def test_the_childs_blocks_stay_as_they_were_and_new_ones_work(self, tmp_path):
        values = run_program(
            """
            import os
            from pytorch_memlab_c import peak_memory
            from program_support import allocate, free, report

            with peak_memory("cpu") as p:
                allocate(100)
                assert p.peak_bytes
                pid = os.fork()
                if pid == 0:
                    allocate(5000)
                    report(inherited=p.delta_bytes, is_open=p._window.is_open)
                    with peak_memory("cpu") as own:
                        allocate(7)
                    report(own=own.delta_bytes, begun_again=p.__enter__() is p)
                    allocate(70)
                    report(again=p.delta_bytes)
                    del own, p
                    os._exit(0)
                report(code=os.waitpid(pid, 0)[1])
                allocate(1)
            report(parent=p.delta_bytes)
            """,
            tmp_path,
        ).values
        assert values == {
            "inherited": 100,
            "is_open": False,
            "own": 7,
            "begun_again": True,
            "again": 70,
            "code": 0,
            "parent": 101,
        }
