"""Programs of users that keep memory, or do not, on one device under the profiler: which lines are named, and with
how many
bytes a run.

Usage: growth_programs.py DEVICE; reports {program: [{line: bytes a run}, what is right]}.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from program_support import report
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from pytorch_memlab_c import LineProfiler

DEVICE = sys.argv[1]
MIB = 2**20
#: The smallest block, and so what a number takes.
SMALL = 4 if DEVICE == "cpu" else 512
KEPT: list[Any] = []


def tensor(mib: float = 1) -> Any:
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device=DEVICE)


def linear(size: int = 1024) -> Any:
    return torch.nn.Linear(size, size, bias=False, device=DEVICE)


def found(functions: tuple[Any, ...], program: Callable[[], Any]) -> dict[str, int]:
    KEPT.clear()
    with LineProfiler(*functions, device=DEVICE) as profiler:
        program()
    frame = profiler.to_dataframe(kind="growth").dropna(subset="bytes_per_run")
    return {code.strip(): int(size) for code, size in zip(frame["code"], frame["bytes_per_run"])}


# ---- gradients, made on autograd's threads where the device has some ----

NET, BATCH = linear(), torch.ones(4, 1024, device=DEVICE)


def keep_gradients() -> None:
    for _ in range(20):
        loss = NET(BATCH).sum()
        loss.backward()
        KEPT.append(NET.weight.grad)
        NET.zero_grad(set_to_none=True)


def collect_by_hook() -> None:
    handle = NET.weight.register_hook(lambda gradient: KEPT.append(gradient.clone()))
    for _ in range(20):
        loss = NET(BATCH).sum()
        loss.backward()
        NET.zero_grad(set_to_none=True)
    handle.remove()


def keep_second_order() -> None:
    for _ in range(20):
        loss = (NET.weight * NET.weight).sum()
        loss.backward(create_graph=True)
        KEPT.append(NET.weight.grad)
        NET.weight.grad = None


def keep_from_autograd_grad() -> None:
    for _ in range(20):
        loss = NET(BATCH).sum()
        KEPT.extend(torch.autograd.grad(loss, NET.weight))


def recompute() -> None:
    for _ in range(8):
        out = checkpoint(lambda batch: NET(batch).relu().square().sum(), BATCH, use_reentrant=False)
        out.backward()
        NET.zero_grad(set_to_none=True)


def step_an_optimizer() -> None:
    optimizer = torch.optim.AdamW(NET.parameters())
    for _ in range(10):
        loss = NET(BATCH).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


# ---- what runs afterwards ----


def train(runs: int) -> None:
    for _ in range(runs):
        KEPT.append(tensor())


def validate(runs: int) -> None:
    for _ in range(runs):
        fresh = tensor(2)
        assert fresh.numel() == 2 * MIB


def forget(runs: int) -> None:
    train(runs)
    KEPT.clear()
    validate(runs)


# ---- evaluation ----


class Evaluation:
    def __init__(self) -> None:
        self.all: Any = None

    def run(self, steps: int) -> None:
        for _ in range(steps):
            new = tensor(0.0625)
            self.all = new if self.all is None else torch.cat((self.all, new))

    def run_on_several_lines(self, steps: int) -> None:
        self.all = tensor(0.0625)
        for _ in range(steps):
            new = tensor(0.0625)
            self.all = torch.cat(
                (self.all, new),
            )

    def run_and_forget(self, steps: int) -> None:
        self.run(steps)
        self.all = None


def evaluate(method: Callable[[Any, int], None], steps: int) -> Callable[[], Any]:
    evaluation = Evaluation()
    return lambda: method(evaluation, steps)


def make_room_early() -> None:
    work = []
    for run in range(12):
        KEPT.append(tensor())
        if run == 2:
            work.append(tensor(32))


def one_large_run() -> None:
    for run in range(12):
        KEPT.append(tensor(32 if run == 1 else 1))


class Trainer:
    def __init__(self) -> None:
        self.losses: list[Any] = []
        self.net = torch.nn.Linear(64, 10, device=DEVICE)
        self.y = torch.zeros(1000, dtype=torch.long, device=DEVICE)

    @torch.no_grad()
    def fit(self, net: Any, y: Any) -> None:
        x = torch.ones(1000, 64, device=DEVICE)
        for _ in range(200):
            loss = cross_entropy(net(x), y); self.losses.append(loss)  # fmt: skip

    @torch.no_grad()
    def fit_batches(self, net: Any, y: Any) -> None:
        for run in range(40):
            x = torch.ones(99 + run % 9, 64, device=DEVICE); self.losses.append(net(x).sum())  # fmt: skip


def comprehension() -> None:
    once = [tensor(0.01) for _ in range(20)]
    for _ in range(10):
        KEPT.append([tensor(0.25) for _ in range(4)])
    del once


# ---- modules: one forward pass is one run of each layer ----


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(256, 256, device=DEVICE))

    def forward(self, x: Any) -> Any:
        hidden = x @ self.weight
        return hidden.relu()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for _ in range(32):
            self.layers.append(Layer())
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def predict(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
            self.seen.append(x.clone())
        return x


MODEL = Net()


def build() -> None:
    KEPT.append(Net())


def one_forward() -> None:
    KEPT.append(MODEL(torch.ones(256, 256, device=DEVICE)))


def forwards(count: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            one_forward()

    return run


def steps() -> None:
    for _ in range(8):
        MODEL(torch.ones(256, 256, device=DEVICE)).sum().backward()
        MODEL.zero_grad(set_to_none=True)


# ---- how functions end ----


def local_list() -> None:
    kept = []
    for _ in range(10):
        kept.append(tensor())


def local_list_of_each_call() -> None:
    for _ in range(6):
        local_list()


def fails() -> None:
    for run in range(10):
        KEPT.append(tensor())
        if run == 9:
            raise ValueError("no more")


def caught() -> None:
    try:
        fails()
    except ValueError:
        pass


X = "KEPT.append(tensor())"
CAT = "self.all = new if self.all is None else torch.cat((self.all, new))"
LAYER = {"hidden = x @ self.weight": MIB // 4, "return hidden.relu()": MIB // 4}
RELU = {"return hidden.relu()": MIB // 4}
TRAINER = Trainer()

PROGRAMS: dict[str, tuple[tuple[Any, ...], Callable[[], Any], dict[str, int]]] = {
    "gradients": ((keep_gradients,), keep_gradients, {"loss.backward()": 4 * MIB}),
    "hook": ((collect_by_hook,), collect_by_hook, {"loss.backward()": 4 * MIB}),
    "create_graph": ((keep_second_order,), keep_second_order, {"loss.backward(create_graph=True)": 4 * MIB + SMALL}),
    "autograd.grad": (
        (keep_from_autograd_grad,),
        keep_from_autograd_grad,
        {"KEPT.extend(torch.autograd.grad(loss, NET.weight))": 4 * MIB},
    ),
    "checkpoint": ((recompute,), recompute, {}),
    "optimizer": ((step_an_optimizer,), step_an_optimizer, {}),
    **{
        f"validate {n}": ((train, validate), lambda n=n: (train(12), validate(n)), {X: MIB})  # type: ignore[misc]
        for n in (0, 6, 12, 100)
    },
    "forgotten": ((train, validate, forget), lambda: forget(12), {}),
    "forgotten elsewhere": ((train, validate), lambda: forget(12), {}),
    **{
        f"concatenate {n}": ((Evaluation.run,), evaluate(Evaluation.run, n), {CAT: MIB // 16})
        for n in (6, 7, 8, 9, 10, 11, 12, 13, 50)
    },
    "concatenate on several lines": (
        (Evaluation.run_on_several_lines,),
        evaluate(Evaluation.run_on_several_lines, 8),
        {"self.all = torch.cat(": MIB // 16},
    ),
    "concatenate and forget": (
        (Evaluation.run, Evaluation.run_and_forget),
        evaluate(Evaluation.run_and_forget, 12),
        {},
    ),
    "early": ((make_room_early,), make_room_early, {X: MIB}),
    "one large run": ((one_large_run,), one_large_run, {"KEPT.append(tensor(32 if run == 1 else 1))": MIB}),
    "losses": (
        (Trainer.fit,),
        lambda: TRAINER.fit(TRAINER.net, TRAINER.y),
        {"loss = cross_entropy(net(x), y); self.losses.append(loss)  # fmt: skip": SMALL},
    ),
    "losses of batches": (
        (Trainer.fit_batches,),
        lambda: TRAINER.fit_batches(TRAINER.net, TRAINER.y),
        {"x = torch.ones(99 + run % 9, 64, device=DEVICE); self.losses.append(net(x).sum())  # fmt: skip": SMALL},
    ),
    "comprehension": (
        (comprehension,),
        comprehension,
        {"KEPT.append([tensor(0.25) for _ in range(4)])": MIB},
    ),
    "weights": ((Layer.__init__, Net.__init__), build, {}),
    "one forward, layers": ((Layer.forward,), one_forward, {}),
    "one forward, model": ((Net.forward,), one_forward, {}),
    "one forward, both": ((Net.forward, Layer.forward, one_forward), one_forward, {}),
    "two forwards": ((Net.forward, Layer.forward), forwards(2), {}),
    "eight forwards kept, layers": ((Layer.forward,), forwards(8), RELU),
    "eight forwards kept, model": ((Net.forward,), forwards(8), {"x = layer(x)": MIB // 4}),
    "steps": ((Net.forward, Layer.forward), steps, {}),
    "local list": ((local_list,), local_list, {"kept.append(tensor())": MIB}),
    "local list of each call": ((local_list,), local_list_of_each_call, {}),
    "exception": ((fails,), caught, {X: MIB}),
}


def main() -> None:
    NET(BATCH).sum().backward()
    NET.zero_grad(set_to_none=True)
    for name, (functions, program, right) in PROGRAMS.items():
        report(**{name: [found(functions, program), right]})


if __name__ == "__main__":
    main()
