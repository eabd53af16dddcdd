"""A few steps with a leak, several streams, an allocation that fails. Usage: train.py OUT [GPU]"""

import json
import pickle
import sys

from pytorch_memlab_c import simulate

simulate.enable("a100-40gb" if len(sys.argv) < 3 else sys.argv[2])
import torch  # noqa: E402  after the simulated GPU is there

kept = []


def forward(x, w):
    return torch.relu(x @ w)


def remember(y):
    kept.append(y.clone())


def main():
    torch.cuda.memory._record_memory_history(max_entries=10000, stacks="python")
    w = torch.empty(1100, 1100, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    for _ in range(12):
        x = torch.empty(1100, 1100, device="cuda")
        y = forward(x, w)
        remember(y.detach())
        y.sum().backward()
        w.grad = None
        x.record_stream(side)
        del x, y
    try:
        torch.empty(1 << 40, device="cuda")
    except RuntimeError:
        pass


main()
stats = torch.cuda.memory_stats()
snapshot = torch.cuda.memory._snapshot()
environment, program = sys.prefix, __file__
for place in [
    *snapshot["segments"],
    *(b for s in snapshot["segments"] for b in s["blocks"]),
    *(e for t in snapshot["device_traces"] for e in t),
]:
    for frame in place.get("frames", []):
        frame["filename"] = frame["filename"].replace(environment, "/job/env").replace(program, "/job/train.py")
pickle.dump(snapshot, open(sys.argv[1] + ".pickle", "wb"))
figures = {
    f"{kind}_{which}": stats[f"{kind}_bytes.all.{which}"]
    for kind in ("allocated", "active", "reserved")
    for which in ("current", "peak")
}
json.dump({"torch": torch.__version__, **figures}, open(sys.argv[1] + ".json", "w"), indent=0)
