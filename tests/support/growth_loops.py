"""Loops that leak and loops that do not, to be run on one device under the profiler. The line that a report must mark
has
the comment `# grows`; no other line may be marked.

Usage: growth_loops.py DEVICE; reports {way: {loop: the lines marked, and those to be marked}}.
"""

from __future__ import annotations

import functools
import queue
import sys
import threading
from collections import deque
from typing import Any

import torch
from program_support import report

from pytorch_memlab_c import LineProfiler, _native

DEVICE = sys.argv[1]
MIB = 2**20


def tensor(mib: float = 1.0) -> Any:
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device=DEVICE)


def model() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64)).to(DEVICE)


def batch() -> Any:
    return torch.randn(32, 64, device=DEVICE)


# ---- leaks ----


def list_append() -> None:
    kept = []
    for _ in range(30):
        kept.append(tensor())  # grows
        work = tensor(4)
        del work


def leak_on_another_line() -> None:
    kept = []
    for _ in range(30):
        value = tensor()  # grows
        kept.append(value)
        other = tensor(3)
        del other


def leak_in_a_few_runs() -> None:
    kept = []
    for _ in range(8):
        kept.append(tensor())  # grows


def every_fifth_run() -> None:
    kept = []
    for i in range(200):
        value = tensor()  # grows
        if i % 5 == 0:
            kept.append(value)


def cached_graph() -> None:
    net, total = model(), 0.0
    for _ in range(20):
        output = net(batch())  # grows
        total = total + output.square().mean()


def kept_exceptions() -> None:
    def fails() -> None:
        local = tensor(2)
        raise ValueError(len(local))

    errors = []
    for _ in range(12):
        try:
            fails()  # grows
        except ValueError as error:
            errors.append(error)


STORE: list[Any] = []


def step_that_leaks() -> None:
    for _ in range(20):
        one_step()


def one_step() -> None:
    activations = [tensor() for _ in range(4)]
    STORE.append(tensor(0.25))  # grows
    activations.clear()


def leak_in_a_part_of_the_program() -> None:
    """It ends with the function's variables, and what comes after frees much."""
    build_and_train()
    for _ in range(20):
        work = tensor(2)
        del work


def build_and_train() -> None:
    data = build()
    outputs = []
    for batch_of_data in data * 8:
        activations = [tensor() for _ in range(4)]
        outputs.append(tensor(0.25))  # grows
        del activations, batch_of_data


def build() -> Any:
    data = []
    for _ in range(12):
        data.append(tensor())  # grows
    return data


# ---- no leaks ----


def freed_at_once() -> None:
    for _ in range(30):
        work = tensor()
        del work


def larger_each_time() -> None:
    for i in range(24):
        big = tensor(1 + i / 4)
        small = big[:1].clone()
        big = None
    del small


def replaced_by_the_next() -> None:
    for _ in range(30):
        value = tensor()
    del value


def freed_by_another_line() -> None:
    kept = []
    for _ in range(30):
        kept.append(tensor())
        kept.clear()


def double_buffering() -> None:
    front, back = tensor(), tensor()
    for _ in range(30):
        back = tensor()
        front, back = back, front


def cleared_every_ten_runs() -> None:
    kept = []
    for i in range(65):
        kept.append(tensor())
        if i % 10 == 9:
            kept.clear()


def grows_then_shrinks() -> None:
    kept = []
    for i in range(40):
        if i < 20:
            kept.append(tensor())
        else:
            kept.pop()


def cache_that_fills() -> None:
    @functools.lru_cache(maxsize=8)
    def table(key: int) -> Any:
        return tensor()

    for i in range(40):
        table(i % 12)


def cache_that_fills_slowly() -> None:
    cache: dict[int, Any] = {}
    for i in range(64):
        key = min(i, 40)
        cache[key] = cache[key] if key in cache else tensor()


def window_of_the_last() -> None:
    last = deque(maxlen=5)
    for _ in range(40):
        last.append(tensor())


def optimizer_state() -> None:
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(10):
        loss = net(batch()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def summed_with_item() -> None:
    net, total = model(), 0.0
    for _ in range(20):
        output = net(batch())
        total += output.square().mean().item()


def prefetched_batches() -> None:
    waiting: queue.Queue[Any] = queue.Queue(3)

    def load() -> None:
        for _ in range(30):
            waiting.put(tensor())
        waiting.put(None)

    loader = threading.Thread(target=load)
    loader.start()
    while (data := waiting.get()) is not None:
        result = data + 1
    loader.join()
    del result


def beside_a_leak() -> None:
    kept = []
    for _ in range(30):
        first = tensor(2)
        second = first + 1
        kept.append(tensor(0.5))  # grows
        del first
        del second


def layers_of_one_step() -> None:
    blocks, values = [torch.nn.Linear(64, 64).to(DEVICE) for _ in range(24)], batch()
    for block in blocks:
        values = layer(block, values)
    values.sum().backward()


def layer(block: Any, values: Any) -> Any:
    hidden = block(values)
    return hidden.tanh()


def layers_of_two_steps() -> None:
    layers_of_one_step()
    layers_of_one_step()


def workspace_at_the_first_product() -> None:
    left = torch.randn(64, 64, device=DEVICE)
    for _ in range(10):
        product = left @ left
    del product


LOOPS: dict[Any, tuple[Any, ...]] = {
    loop: (loop,)
    for loop in (list_append, leak_on_another_line, leak_in_a_few_runs, every_fifth_run, cached_graph, kept_exceptions)
}
LOOPS[step_that_leaks] = (one_step,)
LOOPS[leak_in_a_part_of_the_program] = (leak_in_a_part_of_the_program, build_and_train, build)
LOOPS.update(
    (loop, (loop,))
    for loop in (
        freed_at_once,
        larger_each_time,
        replaced_by_the_next,
        freed_by_another_line,
        double_buffering,
        cleared_every_ten_runs,
        grows_then_shrinks,
        cache_that_fills,
        cache_that_fills_slowly,
        window_of_the_last,
        optimizer_state,
        summed_with_item,
        prefetched_batches,
        beside_a_leak,
        workspace_at_the_first_product,
    )
)
LOOPS[layers_of_one_step] = (layers_of_one_step, layer)
LOOPS[layers_of_two_steps] = (layers_of_two_steps, layers_of_one_step, layer)


def check(loop: Any, functions: tuple[Any, ...]) -> dict[str, Any]:
    with LineProfiler(*functions, device=DEVICE) as profiler:
        loop()
    frame = profiler.to_dataframe(kind="growth")
    marked = frame.dropna(subset="bytes_per_run")
    code = [text.strip() for text in marked["code"]]
    expected = [
        line.strip()
        for function in profiler.records().functions
        for line in function.source or ()
        if line.rstrip().endswith("# grows")
    ]
    return {"marked": code, "expected": expected, "bytes": [int(value) for value in marked["bytes_per_run"]]}


def check_all() -> dict[str, Any]:
    results = {}
    for loop, functions in LOOPS.items():
        results[loop.__name__] = check(loop, functions)
        STORE.clear()
    return results


def main() -> None:
    if DEVICE != "cpu":
        torch.empty(1, device=DEVICE)
    report(events=check_all())
    if DEVICE != "cpu":
        _native.use_statistics_only(True)
        report(statistics=check_all())


if __name__ == "__main__":
    main()
