"""`Courtesy` and all kinds of tensors, memory that must stay, several streams and devices."""

from __future__ import annotations

from courtesy_program import run
from gpu_device import gpu


@gpu()
def test_all_kinds_of_tensors_are_lent(tmp_path):
    values = run(
        """
        import torch.autograd.forward_ad as forward
        class Marked(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                raise SystemError("a subclass was asked")
        def same(make, read):
            thing = make()
            sums = [bits(t) for t in read(thing)]
            said = warned(lambda: lend(thing))
            return [said, lent.pop(), [bits(t) for t in read(thing)] == sums and len(sums) > 0]
        lent = []
        def lend(thing):
            with Courtesy():
                lent.append(torch.cuda.memory_allocated())
        def plain(marked):
            with torch._C.DisableTorchFunctionSubclass():
                return [marked.as_subclass(torch.Tensor)]
        def sparse():
            indices, values = torch.tensor([[0, 1], [2, 0]]), torch.randn(2)
            return torch.sparse_coo_tensor(indices, values, (3, 3)).cuda()
        def compressed():
            return torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.randn(2), (2, 2)).cuda()
        def with_gradient():
            leaf = random(100).requires_grad_()
            leaf.grad = random(100)
            return leaf
        script = lambda: torch.jit.script(torch.nn.Linear(9, 1)).cuda()
        nested = lambda layout: torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=layout).cuda()
        kinds = dict(
            coo=(sparse, lambda t: [t._indices(), t._values()]),
            csr=(compressed, lambda t: [t.crow_indices(), t.col_indices(), t.values()]),
            nested=(lambda: nested(torch.strided), lambda t: t.unbind()),
            jagged=(lambda: nested(torch.jagged), lambda t: [t._values, t._offsets]),
            quantized=(lambda: torch.quantize_per_tensor(torch.randn(5), 0.1, 0, torch.qint8).cuda(),
                lambda t: [t.int_repr()]),
            subclass=(lambda: random(10).as_subclass(Marked), plain),
            parameter=(lambda: torch.nn.Parameter(random(10)), lambda t: [t]),
            gradient=(with_gradient, lambda t: [t, t.grad]),
            complex=(lambda: random(10, dtype=torch.cfloat).conj(), lambda t: [t]),
            zero_dim=(lambda: random(), lambda t: [t]),
            empty=(lambda: [torch.empty(0, device="cuda"), random(1)], lambda t: t),
            storage=(lambda: random(10).untyped_storage(),
                lambda s: [torch.empty(0, dtype=torch.uint8, device="cuda").set_(s)]),
            script=(script, lambda m: list(m.parameters())),
        )
        for name, (make, read) in kinds.items():
            report(**{name: same(make, read)})
        """,
        tmp_path,
    )
    assert values == dict.fromkeys(values, [[], 0, True]) and len(values) == 13


@gpu()
def test_memory_that_stays_is_told(tmp_path):
    """Nothing is freed under a neighbour that goes on using it; what holds no memory is passed over in silence."""
    values = run(
        """
        import gc
        from torch._subclasses.fake_tensor import FakeTensorMode
        class Meta(type):
            def __hash__(cls):
                raise SystemError("a metaclass was asked")
        class Stranger(metaclass=Meta):
            @property
            def __class__(self):
                raise SystemError("a stranger was asked")
        strangers = [Stranger()]
        class Wrapper(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
            def __init__(self, inner):
                self.inner = inner
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                raise SystemError("a wrapper was asked")
        with FakeTensorMode() as fake_mode:
            fake = torch.empty(1000, device="cuda")
        silent = [fake, torch.empty(10, device="meta"), Wrapper(random(1000)), torch._to_functional_tensor(random(10)),
                  torch._efficientzerotensor(10, device="cuda")]
        x = random(1000)
        sums = bits(x)
        courtesy = Courtesy()
        with fake_mode:
            lent = courtesy.yield_memory()
        report(silent=[lent.reasons, levels()])
        courtesy.restore()
        del silent, fake

        alias = torch.from_dlpack(x)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lent = courtesy.yield_memory()
        report(dlpack=[lent.reasons, bits(alias) == sums, bits(x) == sums, levels()[0]],
            told=[str(w.message) for w in caught], line=caught[0].filename)
        courtesy.restore()
        neighbour = random(100)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with courtesy:
                    report(entered=True)
        except RuntimeWarning as error:
            report(as_error=[str(error) == str(lent).replace("nothing (0", "400.00B of cuda:0 (1"),
                refused(lambda: neighbour + 1), lender._loans == []])
        del alias, neighbour

        gc.collect()
        gc.freeze()
        report(frozen=warned(courtesy.yield_memory))
        gc.unfreeze()
        courtesy.restore()

        clone = torch._lazy_clone(x)
        warned(lambda: globals().update(lent=courtesy.yield_memory()))
        shared = torch._C._is_cow_tensor(clone) and bits(clone) == sums
        report(lazy=[lent.reasons, shared, bits(x) == sums])
        courtesy.restore()
        del clone
        x = x.clone()
        gone = random(1)

        if hasattr(torch.cuda, "MemPool"):
            pool = torch.cuda.MemPool()
            with torch.cuda.use_mem_pool(pool):
                inside = random(1000)
            sums = bits(inside)
            warned(lambda: globals().update(lent=courtesy.yield_memory()))
            report(pool=[lent.reasons, bits(inside) == sums])
            courtesy.restore()
            del inside, pool

        graph = torch.cuda.CUDAGraph()
        static = random(1000)
        with torch.cuda.graph(graph):
            output = static + 1
        before = levels()
        try:
            courtesy.yield_memory()
        except RuntimeError as error:
            report(graph=[str(error), levels() == before, refused(lambda: static + 1)])
        """,
        tmp_path,
    )
    assert values["silent"] == [[], [0, 0]]
    foreign = (
        "1 storages (3.91K) stay on cuda:0: not PyTorch's own memory "
        "(shared with another process, by DLPack, or made from a pointer)"
    )
    aliased = "1 storages (3.91K) stay on cuda:0: also used under another storage (by DLPack or from a pointer)"
    assert sorted(values["dlpack"][0]) == sorted([foreign, aliased])
    assert values["dlpack"][1:] == [True, True, 4096]
    assert len(values["told"]) == 1 and aliased in values["told"][0]
    assert values["line"].endswith("program.py")
    assert values["as_error"] == [True, False, True] and "entered" not in values
    assert values["frozen"] == [], "what gc.freeze() has set aside is found"
    assert values["lazy"] == [["2 storages (7.81K) stay on cuda:0: a copy-on-write clone"], True, True]
    if "pool" in values:
        pool = "1 storages (3.91K) stay on cuda:0: in the private pool of a CUDA graph or a torch.cuda.MemPool"
        assert values["pool"] == [[pool], True]
    text, unchanged, lent = values["graph"]
    assert text.startswith("nothing was lent: 1 CUDA graphs live") and unchanged and not lent


@gpu()
def test_streams(tmp_path):
    """Memory goes back to the stream it was allocated on; work that was queued is done before the copies."""
    values = run(
        """
        def stream_of(tensor):
            for segment in torch.cuda.memory_snapshot():
                if 0 <= tensor.data_ptr() - segment["address"] < segment["total_size"]:
                    return segment["stream"]
        side = torch.cuda.Stream()
        pinned = torch.randn(1 << 20).pin_memory()
        with torch.cuda.stream(side):
            there = torch.empty(1 << 20, device="cuda")
            for _ in range(50):
                there.copy_(pinned, non_blocking=True)
        here = random(1 << 20)
        pending = random(1 << 20)
        pending.record_stream(side)
        del pending
        sums = bits(here)
        courtesy = Courtesy()
        courtesy.yield_memory()
        free = levels()
        with torch.cuda.stream(torch.cuda.Stream()):
            courtesy.restore()
        report(free=free, side=stream_of(there) == side.cuda_stream, default=stream_of(here), allocated=levels()[0],
               same=[bits(there) == bits(pinned), bits(here) == sums])
        """,
        tmp_path,
    )
    assert values == {"free": [0, 0], "side": True, "default": 0, "allocated": 8 << 20, "same": [True, True]}


@gpu(devices=2)
def test_devices(tmp_path):
    values = run(
        """
        a, b = random(1 << 20), random(1 << 21, device="cuda:1")
        sums = bits(a), bits(b)
        torch.cuda.set_device(1)
        courtesy = Courtesy()
        lent = courtesy.yield_memory()
        free = levels(0) + levels(1)
        block = torch.empty(torch.cuda.mem_get_info(1)[0] - 4 * MIB, dtype=torch.uint8, device="cuda:1")
        try:
            courtesy.restore()
        except torch.cuda.OutOfMemoryError as error:
            report(full=str(error))
        lent_now = courtesy.lent_bytes
        del block
        courtesy.restore()
        report(lent=lent.lent_bytes, free=free, rest=lent_now, same=sums == (bits(a), bits(b)),
            devices=[str(a.device), str(b.device)],
               current=torch.cuda.current_device(), allocated=[levels(0)[0], levels(1)[0]])
        """,
        tmp_path,
    )
    assert "no room on cuda:1" in values.pop("full")
    assert values == {
        "lent": {"cuda:0": 4 << 20, "cuda:1": 8 << 20},
        "free": [0, 0, 0, 0],
        "rest": 12 << 20,
        "same": True,
        "devices": ["cuda:0", "cuda:1"],
        "current": 1,
        "allocated": [4 << 20, 8 << 20],
    }
