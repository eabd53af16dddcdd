"""`measure_peak_rss` (spec.md 6): one child, its whole life, and nothing else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from run_program import run_program

from pytorch_memlab_c import _native, measure_peak_rss

MB = 10**6
pytestmark = pytest.mark.skipif(not hasattr(os, "wait4"), reason="this system has no wait4")


def python(source: str) -> list[str]:
    """A command: a bare interpreter that runs `source`."""
    return [sys.executable, "-S", "-E", "-c", source]


def test_all_fields_and_one_type():
    """Cases 48 and 49: a real figure, and always the same kind of answer."""
    result = measure_peak_rss(["true"])
    assert list(result) == ["status", "value", "known_value", "unit", "scope", "method"]
    assert (result["status"], result["unit"], result["method"]) == ("complete", "bytes", "wait4 ru_maxrss")
    assert type(result["value"]) is int and result["value"] == result["known_value"] > 500_000
    assert json.loads(json.dumps(result)) == result


def test_a_peak_of_20_ms_is_seen():
    source = "import time; x = bytearray(b'1') * 500_000_000; time.sleep(0.02); del x"
    result = measure_peak_rss(python(source))
    assert 500 * MB <= result["value"] < 530 * MB


def test_memory_of_the_parent_is_not_in_it(tmp_path):
    values = run_program(
        """
        import mmap
        from pytorch_memlab_c import measure_peak_rss
        from program_support import report

        memory = mmap.mmap(-1, 2 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1
        with open("/proc/self/status") as status:
            own = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
        report(own=own, child=measure_peak_rss(["true"])["value"])
        """,
        tmp_path,
    ).values
    assert values["own"] > 2 << 30
    assert values["child"] < 5 * MB


def test_of_its_own_children_the_highest_alone_counts_and_they_are_not_added():
    grandchild = "x = bytearray(b'1') * 300_000_000"
    child = f"""
import subprocess, sys
x = bytearray(b'1') * 200_000_000
subprocess.run([sys.executable, '-S', '-E', '-c', {grandchild!r}], check=True)
"""
    assert 300 * MB <= measure_peak_rss(python(child))["value"] < 400 * MB


def test_a_grandchild_that_nobody_waited_for_does_not_count():
    grandchild = "x = bytearray(b'1') * 300_000_000; print('done', flush=True)"
    child = f"""
import os, subprocess, sys
process = subprocess.Popen([sys.executable, '-S', '-E', '-c', {grandchild!r}], stdout=subprocess.PIPE)
assert process.stdout.read() == b'done\\n'
os._exit(0)
"""
    assert measure_peak_rss(python(child))["value"] < 150 * MB


class TestErrors:
    def test_the_exit_code_is_reported(self):
        """Case 18."""
        command = python("raise SystemExit(3)")
        with pytest.raises(subprocess.CalledProcessError) as caught:
            measure_peak_rss(command)
        assert (caught.value.returncode, caught.value.cmd) == (3, command)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    def test_a_death_by_signal_is_reported(self, number):
        with pytest.raises(subprocess.CalledProcessError) as caught:
            measure_peak_rss(["sh", "-c", f"kill -{int(number)} $$"])
        assert caught.value.returncode == -number

    @pytest.mark.parametrize(
        "command", [[], (), "true", b"true", [b"true"], ["true", 1], ["true", None], [""], ["a\0b"], None, 3, {"true"}]
    )
    def test_what_is_no_command_is_refused(self, command):
        with pytest.raises(ValueError):
            measure_peak_rss(command)

    @pytest.mark.parametrize(
        "command", [["no-such-program-here"], ["./no-such"], ["/etc/passwd"], ["/etc"], ["no\ud800"]]
    )
    def test_a_command_that_cannot_be_run_gives_what_subprocess_gives(self, command):
        with pytest.raises(Exception) as expected:
            subprocess.call(command)
        with pytest.raises(type(expected.value)) as caught:
            measure_peak_rss(command)
        assert str(caught.value) == str(expected.value)

    @pytest.mark.parametrize("folder", ["/no/such/folder", "/etc/passwd", ""])
    def test_a_folder_that_is_not_there_gives_what_subprocess_gives(self, folder):
        with pytest.raises(OSError) as expected:
            subprocess.call(["true"], cwd=folder)
        with pytest.raises(type(expected.value)) as caught:
            measure_peak_rss(["true"], cwd=folder)
        assert (caught.value.errno, caught.value.filename) == (expected.value.errno, folder)

    def test_without_wait4_nothing_is_started(self, monkeypatch):
        def started(*args):
            raise AssertionError("a child was started")

        monkeypatch.setattr(_native, "run_child", started)
        monkeypatch.delattr(os, "wait4")
        with pytest.raises(NotImplementedError, match="wait4"):
            measure_peak_rss(["true"])

    def test_a_child_that_someone_else_waited_for_is_unavailable_not_zero(self, tmp_path):
        values = run_program(
            """
            import signal
            from pytorch_memlab_c import measure_peak_rss
            from program_support import report
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            report(**measure_peak_rss(["true"]))
            """,
            tmp_path,
        ).values
        assert (values["status"], values["value"], values["known_value"]) == ("unavailable", None, None)

    def test_nothing_is_left_behind(self, tmp_path):
        before = sorted(os.listdir("/proc/self/fd"))
        for command in (["true"], ["false"], ["no-such-program-here"], ["sh", "-c", "kill -9 $$"]):
            try:
                measure_peak_rss(command, cwd=tmp_path)
            except (OSError, subprocess.CalledProcessError):
                pass
        with pytest.raises(OSError):
            measure_peak_rss(["true"], cwd="/no/such/folder")
        assert sorted(os.listdir("/proc/self/fd")) == before
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_without_the_starter_the_error_names_it(self, monkeypatch):
        from pytorch_memlab_c.process import rss

        monkeypatch.setattr(rss, "_STARTER", "pml_no_starter")
        with pytest.raises(FileNotFoundError, match="pml_no_starter"):
            measure_peak_rss(["true"])


class TestSurroundings:
    """The child finds what a child of `subprocess` finds."""

    def test_streams_are_inherited(self, tmp_path):
        run = run_program(
            """
            import os
            from pytorch_memlab_c import measure_peak_rss
            read, write = os.pipe()
            os.dup2(read, 0)
            os.write(write, b"given\\n")
            os.close(write)
            measure_peak_rss(["sh", "-c", "cat; echo told >&2"])
            """,
            tmp_path,
        )
        assert (run.stdout, run.stderr) == ("given\n", "told\n")

    def test_folder_environment_and_parent(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PML_TEST_VALUE", "kept")
        source = f"""
import json, os
with open({str(tmp_path / "seen")!r}, 'w') as file:
    json.dump([os.getcwd(), os.environ['PML_TEST_VALUE'], os.getppid(), os.getpgrp()], file)
"""
        measure_peak_rss(python(source), cwd=tmp_path)
        seen = json.loads((tmp_path / "seen").read_text())
        assert seen == [os.path.realpath(tmp_path), "kept", os.getpid(), os.getpgrp()]

    def test_a_program_is_looked_up_in_the_path_and_in_the_folder(self, tmp_path, monkeypatch):
        for folder, code in (("first", 11), ("second", 12)):
            (tmp_path / folder).mkdir()
            program = tmp_path / folder / "pml-program"
            program.write_text(f"#!/bin/sh\nexit {code}\n")
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/none:{tmp_path}/second:{tmp_path}/first:{os.environ['PATH']}")
        for command, cwd, code in ((["pml-program"], None, 12), (["./pml-program"], tmp_path / "first", 11)):
            with pytest.raises(subprocess.CalledProcessError) as caught:
                measure_peak_rss(command, cwd=cwd)
            assert caught.value.returncode == code

    def test_no_shell_reads_the_arguments(self, tmp_path):
        measure_peak_rss(["touch", "a b; $HOME *"], cwd=tmp_path)
        assert os.listdir(tmp_path) == ["a b; $HOME *"]

    def test_signals_and_descriptors_are_those_of_subprocess(self, tmp_path):
        run = run_program(
            """
            import os, signal, subprocess, sys
            from pytorch_memlab_c import measure_peak_rss
            os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGRTMIN + 3])
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, lambda *_: None)
            for run in (measure_peak_rss, subprocess.check_call):
                run(["grep", "-E", "Sig(Blk|Ign|Cgt|Pnd)|ShdPnd", "/proc/self/status"])
                run(["ls", "/proc/self/fd"])
                run(["echo", "end"])
            """,
            tmp_path,
        )
        # glibc's posix_spawn leaves its two internal signals (32, 33) ignored; every glibc program sets them itself
        internal = 0x1_8000_0000
        stdout = re.sub(r"(?<=SigIgn:\t)\w+", lambda found: f"{int(found[0], 16) & ~internal:016x}", run.stdout)
        ours, theirs, rest = stdout.split("end\n")
        assert ours == theirs and rest == ""
        assert "SigBlk:\t0000001000000200" in ours


class TestInterrupt:
    def test_ctrl_c_reaches_the_child_which_may_end_by_itself(self, tmp_path):
        (tmp_path / "child.py").write_text(
            """
import os, signal, sys, time
def leave(*_):
    open("told", "w").close()
    os._exit(0)
signal.signal(signal.SIGINT, leave)
os.killpg(0, signal.SIGINT)
time.sleep(60)
"""
        )
        values = run_program(
            """
            import os, sys
            from pytorch_memlab_c import measure_peak_rss
            from program_support import report
            os.setpgrp()
            try:
                measure_peak_rss([sys.executable, "-S", "child.py"])
            except KeyboardInterrupt:
                report(interrupted=True)
            report(told=os.path.exists("told"))
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                report(zombies=0)
            """,
            tmp_path,
            timeout=30,
        ).values
        assert values == {"interrupted": True, "told": True, "zombies": 0}

    def test_a_child_that_ignores_it_is_killed(self, tmp_path):
        (tmp_path / "child.py").write_text(
            """
import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
with open("pid", "w") as file:
    file.write(str(os.getpid()))
print("ready", flush=True)
time.sleep(60)
"""
        )
        values = run_program(
            """
            import os, sys, time
            from pytorch_memlab_c import measure_peak_rss
            from program_support import report
            try:
                measure_peak_rss([sys.executable, "-S", "child.py"])
            except KeyboardInterrupt:
                report(interrupted=True)
            try:
                os.kill(int(open("pid").read()), 0)
            except ProcessLookupError:
                report(alive=False)
            """,
            tmp_path,
            interrupt_at="ready",
            timeout=30,
        ).values
        assert values == {"interrupted": True, "alive": False}

    def test_a_handler_that_raises_nothing_does_not_end_the_wait(self, tmp_path):
        values = run_program(
            """
            import signal, sys
            from pytorch_memlab_c import measure_peak_rss
            from program_support import report
            calls = []
            signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
            signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
            result = measure_peak_rss(["sleep", "0.3"])
            signal.setitimer(signal.ITIMER_REAL, 0)
            report(status=result["status"], handled=len(calls) >= 3)
            """,
            tmp_path,
        ).values
        assert values == {"status": "complete", "handled": True}

    def test_other_threads_run_meanwhile(self, tmp_path):
        values = run_program(
            """
            import threading, time
            from pytorch_memlab_c import measure_peak_rss
            from program_support import report
            results = []
            threads = [threading.Thread(target=lambda: results.append(measure_peak_rss(["sleep", "0.5"])))
                for _ in range(4)]
            start = time.monotonic()
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            report(complete=[r["status"] for r in results].count("complete"), together=time.monotonic() - start < 1.5)
            """,
            tmp_path,
        ).values
        assert values == {"complete": 4, "together": True}


def test_a_thousand_calls_leak_nothing(tmp_path):
    values = run_program(
        """
        import os
        from pytorch_memlab_c import measure_peak_rss
        from program_support import report

        def calls(count):
            for _ in range(count):
                measure_peak_rss(["true"])
                try:
                    measure_peak_rss(["no-such-program-here"])
                except FileNotFoundError:
                    pass

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        calls(50)
        before, descriptors = resident(), os.listdir("/proc/self/fd")
        calls(500)
        report(grown=resident() - before, same=os.listdir("/proc/self/fd") == descriptors)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            report(zombies=0)
        """,
        tmp_path,
    ).values
    assert values["same"] and values["zombies"] == 0
    assert values["grown"] < 300_000, "a page for each ten calls would be 400,000"


def test_arguments_are_not_kept():
    words = ["true", "x" * 1000]
    measure_peak_rss(words)
    before = sys.getrefcount(words[1])
    for _ in range(20):
        measure_peak_rss(words)
    after = sys.getrefcount(words[1])
    assert after == before
