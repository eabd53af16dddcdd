"""Programs on the simulated GPU end with their own exit code, whatever their last statement is.

Each ending runs several times, with a switch interval that lets no other thread have the GIL before the main thread
gives it up. Without the simulation's exit handler most runs of `backward()` as the last statement then abort (SIGABRT)
on Python 3.13 and older.
"""

from __future__ import annotations

import json

import pytest
from simulated_gpu_process import fresh

from pytorch_memlab_c.simulate import availability

RUNS = 5

# Forks for each run. A child goes on to the program, and then to the interpreter's own end.
_FORKING = """
import json, os, sys
{first}
from pytorch_memlab_c import simulate
simulate.enable("a100-80gb", count=2)
import torch

sys.setswitchinterval(1000)
codes = []
for _ in range({runs}):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        break
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    print(json.dumps(codes))
    sys.exit()
"""

_STEP = """
layers = [torch.nn.Linear(256, 256) for _ in range(8)]
model = torch.nn.Sequential(*layers).cuda()
inputs = torch.randn(64, 256, device="cuda")
"""

_PYTHON_BACKWARD = """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(context, gradient):
        return 2 * gradient

inputs = [torch.randn(64, device="cuda", requires_grad=True) for _ in range(8)]
sum(Double.apply(Double.apply(x)).sum() for x in inputs).backward()
"""

_TWO_DEVICES = """
half = torch.nn.Linear(256, 256).to("cuda:1")
half(model(inputs).to("cuda:1")).sum().backward()
"""

_BACKWARD = "model(inputs).sum().backward()\n"
_ENDINGS = {
    "backward": (_STEP + _BACKWARD, 0),
    "two devices": (_STEP + _TWO_DEVICES, 0),
    "Python function": (_PYTHON_BACKWARD, 0),
    "sys.exit": (_STEP + _BACKWARD + "sys.exit(3)", 3),
    "exception": (_STEP + _BACKWARD + "raise KeyError('end')", 1),
    "exit handler": (_STEP + "import atexit\n@atexit.register\ndef end():\n    " + _BACKWARD, 0),
    "no gradients": (_STEP + _BACKWARD + "torch.set_grad_enabled(False)", 0),
    "inference mode": (_STEP + _BACKWARD + "mode = torch.inference_mode()\nmode.__enter__()", 0),
    "thread": (_STEP + f"import threading\nthreading.Thread(target=lambda: {_BACKWARD.strip()}).start()", 0),
    "os._exit": (_STEP + _BACKWARD + "os._exit(5)", 5),
}


def _needs_simulated_gpu(test):
    try:
        available = availability.cuda_version_of_build() is not None
    except availability.SimulationUnavailable:
        available = False
    return pytest.mark.simcuda(pytest.mark.skipif(not available, reason="no CUDA build of PyTorch")(test))


@_needs_simulated_gpu
@pytest.mark.parametrize("name", _ENDINGS)
def test_program_ends_with_its_own_exit_code(name):
    # GIVEN
    program, code = _ENDINGS[name]
    runs = 4 * RUNS if name == "backward" else RUNS
    # WHEN
    result = fresh(_FORKING.format(runs=runs, first="") + program)
    # THEN
    assert json.loads(result.stdout) == [code] * runs


@_needs_simulated_gpu
def test_program_that_imports_torch_first_ends_cleanly():
    """PyTorch's own exit handlers then run after the simulation's, and release objects that the threads share."""
    program = _STEP + _TWO_DEVICES
    result = fresh(_FORKING.format(runs=2 * RUNS, first="import torch") + program)
    assert json.loads(result.stdout) == [0] * (2 * RUNS)


@_needs_simulated_gpu
def test_the_exit_handler_starts_no_autograd_thread_and_allocates_nothing():
    """A program without a backward has no such thread; nor does it get one."""
    result = fresh(
        """
        import atexit, pathlib
        from pytorch_memlab_c import simulate

        @atexit.register
        def look():
            names = [(task / "comm").read_text() for task in pathlib.Path("/proc/self/task").iterdir()]
            print(any("autograd" in name for name in names), torch.cuda.memory_stats()["allocation.all.allocated"])

        simulate.enable("a100-80gb")
        import torch
        torch.ones(1, device="cuda")
        """
    )
    assert result.stdout.split() == ["False", "1"]


@_needs_simulated_gpu
def test_the_exit_handler_allocates_nothing_after_a_backward():
    result = fresh(
        """
        import atexit

        @atexit.register
        def look():
            print(torch.cuda.memory_stats()["allocation.all.allocated"] - before)

        from pytorch_memlab_c import simulate
        simulate.enable("a100-80gb")
        import torch
        torch.ones(1, device="cuda", requires_grad=True).sum().backward()
        torch.cuda.synchronize()
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        """
    )
    assert result.stdout.split() == ["0"]
