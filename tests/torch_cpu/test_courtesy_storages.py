"""The way a storage's bytes go and come back, on CPU tensors: values and gradients are real there, on every machine."""

from __future__ import annotations

import importlib.util
from textwrap import dedent, indent

import pytest
from run_program import run_program

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

#: By the ban that PyTorch has on a storage (if it has), and by the watch for versions without it.
GUARDS = ("own", "watch")

START = """
import concurrent.futures
import torch
import torch.utils.checkpoint
import program_support
from pytorch_memlab_c.courtesy import guard, lending
from pytorch_memlab_c.courtesy.lending import LentStorage, undisturbed
from pytorch_memlab_c.courtesy.search import live_storages

lending.CHUNK = 100  # bytes: most copies take several pieces, the last a smaller one
native = guard.is_native(torch)
before = [storage for storage in live_storages(torch, "cpu")]
strangers = {storage._cdata for storage in before}

class lent:
    def __enter__(self):
        with undisturbed(torch):
            storages = [s for s in live_storages(torch, "cpu") if s._cdata not in strangers and s.nbytes()]
            self.entries = [LentStorage(torch, s, 0, lambda n: None) for s in storages]
            for entry in self.entries:
                entry.take()
        guard.adjust(torch)
        return self
    def __exit__(self, *exc):
        with undisturbed(torch):
            for entry in self.entries:
                entry.give(lambda n: None)
        guard.adjust(torch)

def on_a_thread(use):
    def call():
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(use).result()
    return call

def error(use):
    try:
        use()
    except RuntimeError as refused:
        return "restore()" in str(refused) and "lent" in str(refused)
    return False

"""


END = """
for name in {guards}:
    guard.is_native = lambda torch: native and name == "own"
    found = {{}}
    program(found.update)
    program_support.report(**{{name: found}})
"""


def run(source, tmp_path, guards=GUARDS):
    """Runs the program under each guard in one process; yields what it reported under each."""
    body = "def program(report):\n" + indent(dedent(source), "    ")
    return run_program(START + body + END.format(guards=guards), tmp_path).values.values()


def test_a_training_step_goes_on_as_without(tmp_path):
    """Tied weights, views, optimizer state, hooks and a graph built before: the same gradients, the same next step."""
    for values in run(
        """
        def training(interlude):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16))
            model[2].weight = model[0].weight
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            model(torch.randn(4, 16)).square().mean().backward()
            optimizer.step()
            called = []
            model[0].weight.register_hook(lambda gradient: called.append(float(gradient.sum())))
            batch = torch.randn(8, 16).t().contiguous().t()
            view = batch[2:]
            inputs = batch.clone().requires_grad_()
            loss = (model(inputs) * (inputs + 2)).exp().sum()
            optimizer.zero_grad()
            held = [model[0].weight, batch, view, inputs, loss, *model.parameters()]
            facts = lambda: [(id(t), t.stride(), t.storage_offset(), t.requires_grad, t._version) for t in held]
            facts_before = facts()
            interlude()
            same = facts() == facts_before
            loss.backward()
            optimizer.step()
            view.zero_()
            tied = model[2].weight is model[0].weight
            return [same, tied, batch[2:].abs().sum() == 0, batch[:2].abs().sum() > 0, len(called) == 1], [
                *model.parameters(), inputs.grad, batch, loss, torch.tensor(called),
                *(v for state in optimizer.state.values() for v in state.values())]

        def lend():
            with lent() as loan:
                report(storages=len(loan.entries))

        def bits(tensor):
            return tensor.detach().numpy().tobytes()
        facts, plain = training(lambda: None)
        facts_lent, values = training(lend)
        report(facts=[bool(f) for f in facts + facts_lent], count=len(values),
               equal=[bits(a) == bits(b) for a, b in zip(plain, values)])
        """,
        tmp_path,
    ):
        assert all(values["facts"]) and len(values["facts"]) == 10
        assert all(values["equal"]) and values["count"] == len(values["equal"]) >= 15
        assert values["storages"] > 15


def test_what_only_autograd_holds_is_found(tmp_path):
    """Nodes name what they saved; the program's hooks that unpack it are not run."""
    for values in run(
        """
        unpacked = []
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                square = x * x
                ctx.save_for_backward(x, square)
                return square * x
            @staticmethod
            def backward(ctx, gradient):
                x, square = ctx.saved_tensors
                return 3 * square * gradient

        x = torch.arange(1.0, 9.0).requires_grad_()
        def product(): return x * (x + 2)
        def function(): return Cube.apply(x)
        def modified_later():
            y = x.exp()
            z = y * 1
            return z
        def in_place():
            y = torch.zeros(8)
            y[:4] = x[:4] * (x[:4] + 5)
            y[:4].mul_(x[4:] + 7)
            return y
        def concatenated(): return torch.cat([x.sin().cos(), x.cos().sin()])
        def packed():
            with torch.autograd.graph.saved_tensors_hooks(lambda t: ("packed", t.clone()),
                lambda p: unpacked.append(1) or p[1]):
                return x * (x + 2)
        def packed_alone():
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: unpacked.append(1) or t):
                return x * (x + 2)
        def checkpointed():
            return torch.utils.checkpoint.checkpoint(lambda a: a.sin() * a, x + 1, use_reentrant=False)

        for build in (product, function, modified_later, in_place, concatenated, packed, packed_alone, checkpointed):
            expected, = torch.autograd.grad(build().sum(), x)
            graph = build().sum()
            unpacked.clear()
            with lent() as loan:
                sizes = sorted(entry.nbytes for entry in loan.entries)
                calls = len(unpacked)
            got, = torch.autograd.grad(graph, x)
            report(**{build.__name__: [torch.equal(expected, got), sizes.count(32), calls]})
            del graph, got, expected, loan
        """,
        tmp_path,
    ):
        assert {name: facts[0] for name, facts in values.items()} == dict.fromkeys(values, True)
        assert {name: facts[2] for name, facts in values.items()} == dict.fromkeys(values, 0)
        assert len(values) == 8
        # x and the expected gradient, and what each graph alone holds
        found = {name: facts[1] - 2 for name, facts in values.items()}
        assert found["product"] == 1 and found["function"] == 1 and found["concatenated"] == 2, found
        assert found["modified_later"] == 1 and found["packed"] == 2 and found["packed_alone"] == 2, found


def test_storages_that_have_no_tensor_in_python(tmp_path):
    """Each of them is 40 bytes (or 80), found once."""
    for values in run(
        """
        import torch.autograd.forward_ad as forward
        def found_now():
            with undisturbed(torch):
                return sorted(s.nbytes() for s in live_storages(torch, "cpu") if s._cdata not in strangers)
        def check(name, thing):
            report(**{name: found_now()})

        check("nothing", None)
        storage = torch.arange(10.0).untyped_storage(); check("storage", storage); del storage
        leaf = torch.zeros(10, requires_grad=True); leaf.sum().backward(); check("gradient", leaf); del leaf
        y = torch.zeros(10, requires_grad=True) * 1; y.retain_grad(); y.sum().backward()
        check("retained gradient", y); del y
        node = (torch.zeros(10, requires_grad=True) * torch.ones(10)).grad_fn; check("node", node); del node
        node = torch.zeros(10, requires_grad=True).exp().sum().grad_fn; check("node of a sum", node); del node
        sparse = torch.eye(5).to_sparse(); check("coo", sparse); del sparse
        sparse = torch.eye(5).to_sparse_csr(); check("csr", sparse); del sparse
        script = torch.jit.script(torch.nn.Linear(9, 1)); check("script", script); del script
        with forward.dual_level():
            dual = forward.make_dual(torch.zeros(10), torch.ones(10)); check("dual", dual); del dual
        nested = torch.nested.nested_tensor([torch.zeros(4), torch.zeros(6)], layout=torch.strided)
        check("nested", nested); del nested
        views = [v for v in torch.zeros(10).split(2)]; check("views", views); del views
        """,
        tmp_path,
        ("own",),
    ):
        values = {name: [n for n in sizes if n] for name, sizes in values.items()}
        assert values.pop("nothing") == []
        assert values.pop("coo") == [20, 80], "values and indices"
        assert values.pop("csr") == [20, 48, 80], "values, row starts, and columns within the indices of before"
        assert values.pop("script") == [4, 36]
        assert 40 in values.pop("nested")
        assert values == {
            "storage": [40],
            "gradient": [40, 40],
            "retained gradient": [40, 40, 40, 40],
            "node": [40, 40],
            "node of a sum": [40, 40],
            "dual": [40, 40],
            "views": [40],
        }


def test_use_in_between_is_an_error(tmp_path):
    for values in run(
        """
        x = torch.arange(12.0).view(3, 4)
        w = torch.ones(4, requires_grad=True)
        loss = (w * (w + 2)).sum()
        uses = dict(
            add=lambda: x + 1, reads=lambda: x.sum(), writes=lambda: x.fill_(1), item=lambda: x[0, 0].item(),
            copies=lambda: x.clone(), matmul=lambda: x @ w, foreach=lambda: torch._foreach_add([x], 1),
            out=lambda: torch.add(torch.ones(3, 4), 1, out=x),
            index=lambda: x[x > 0], assign=lambda: x.__setitem__(0, 1.0), backward=loss.backward,
            view_of_it=lambda: x[1:] * 2, cat=lambda: torch.cat([x, x]),
            deepcopy=lambda: __import__("copy").deepcopy(x),
        )
        if guard.is_native(torch):
            uses |= dict(prints=lambda: repr(x), tolist=lambda: x.tolist(), numpy=lambda: x.numpy(),
                         pointer=lambda: x.data_ptr(),
                         storage=lambda: x.untyped_storage()[0], saving=lambda: torch.save(x, "x.pt"),
                         other_thread=on_a_thread(lambda: x + 1))
        with lent():
            refused = {name: error(use) for name, use in uses.items()}
            metadata = [list(x.shape), list(x.stride()), x.numel(), x.dtype == torch.float32, w.is_leaf]
            fresh = float((torch.ones(3) * 2).sum())
        again = {name: error(use) for name, use in uses.items()}
        report(refused=refused, again=again, metadata=metadata, fresh=fresh)
        """,
        tmp_path,
    ):
        assert {name for name, refused in values["refused"].items() if not refused} == set()
        assert {name for name, refused in values["again"].items() if refused} == set()
        assert values["metadata"] == [[3, 4], [4, 1], 12, True, True] and values["fresh"] == 6


def test_the_watch_keeps_to_the_order_of_modes(tmp_path):
    """It begins and ends only where it is on top; in between the program's modes come and go."""
    for values in run(
        """
        from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode as top
        class Counting(TorchDispatchMode):
            calls = 0
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                Counting.calls += 1
                return func(*args, **(kwargs or {}))
        x = torch.arange(4.0)
        with Counting() as mine:
            loan = lent()
            loan.__enter__()
            under = top() is mine
        report(under=under, none=top() is None)
        loan.__exit__()

        loan = lent()
        loan.__enter__()
        with Counting() as mine:
            loan.__exit__()
            kept = top() is mine
            value = float(x.sum())
        report(kept=kept, value=value, calls=Counting.calls > 0)
        with lent():
            refused = error(lambda: x + 1)
        report(refused=refused, gone=top() is None)
        """,
        tmp_path,
        ("watch",),
    ):
        assert values == {
            "under": True,
            "none": True,
            "kept": True,
            "value": 6.0,
            "calls": True,
            "refused": True,
            "gone": True,
        }


def test_storages_that_die_meanwhile_and_modes_of_the_program(tmp_path):
    for values in run(
        """
        x, y = torch.arange(4.0), torch.arange(5.0)
        with lent() as loan:
            count = len(loan.entries)
            del x
            y = torch.ones(3)
        report(count=count, value=float(y.sum()))
        fresh = [torch.zeros(4) for _ in range(100)]
        report(fresh=float(sum(t.sum() for t in fresh)))
        del fresh, y, loan

        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        seen = []
        class Functions(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))
        class Operations(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))
        x = torch.arange(4.0)
        with torch.device("meta"), Functions(), Operations():
            with lent() as loan:
                pass
            during = list(seen)
        with torch.inference_mode():
            with lent():
                pass
        y = x.requires_grad_() * 2
        report(seen=during, values=x.tolist(), gradient=y.requires_grad, inference=x.is_inference(),
            found=len(loan.entries))
        """,
        tmp_path,
    ):
        expected = {"count": 2, "value": 3.0, "fresh": 0.0, "seen": [], "values": [0, 1, 2, 3], "found": 1}
        assert values == {**expected, "gradient": True, "inference": False}
