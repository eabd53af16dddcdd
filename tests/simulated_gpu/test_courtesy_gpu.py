"""`Courtesy` on a CUDA GPU: the simulated one, where copies are real and kernels do nothing, or a real one."""

from __future__ import annotations

from courtesy_program import run
from gpu_device import gpu


@gpu()
def test_everything_comes_back(tmp_path):
    """A model with optimizer state, tied weights, views, strides and a graph built before."""
    values = run(
        """
        def training(interlude):
            torch.manual_seed(3)
            model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
            model[2].weight = model[0].weight
            model.cuda()
            optimizer = torch.optim.Adam(model.parameters())
            optimizer.zero_grad()
            model(random(32, 256)).square().mean().backward()
            optimizer.step()
            called = []
            model[0].weight.register_hook(lambda gradient: called.append(1))
            images = random(2, 3, 8, 8).to(memory_format=torch.channels_last)
            big = random(3 << 20)
            views = [big[5:], big.view(3, -1)[1:, ::2], images[0].t() if images[0].dim() == 2 else images[:, 1:]]
            kinds = [random(7, 9, dtype=dtype)
                for dtype in (torch.half, torch.bfloat16, torch.double, torch.int8, torch.bool)]
            inputs = random(32, 256).requires_grad_()
            loss = (model(inputs) * (inputs + 2)).sum()
            state = [v for s in optimizer.state.values() for v in s.values()]
            held = [*model.parameters(), *[p.grad for p in model.parameters()], *state, images, big, *views, *kinds,
                inputs]
            facts = [lambda t=t: (id(t), str(t.device), list(t.shape), t.stride(), t.storage_offset(), t.requires_grad,
                t.is_leaf,
                                  t._version, id(t.grad) if t.is_leaf else None,
                                  t.untyped_storage().nbytes()) for t in held]
            before, sums = [f() for f in facts], [bits(t) for t in held]
            interlude()
            after = [f() for f in facts]
            loss.backward()
            torch.cuda.synchronize()
            gradients = [bits(p.grad) for p in (*model.parameters(), inputs)]
            hook_ran = len(called) == 1
            rest = slice(2 * len(list(model.parameters())), None)
            same = [bits(t) for t in held[rest]] == sums[rest]
            same_weights = [bits(p) for p in model.parameters()] == sums[:len(list(model.parameters()))]
            big.zero_()
            alias = views[0].data_ptr() == big.data_ptr() + 20 and model[0].weight is model[2].weight
            optimizer.step()
            return [same, same_weights, before == after, hook_ran, alias, len(set(sums)) > 10], gradients, len(held)

        def interlude():
            free, total = torch.cuda.mem_get_info()
            courtesy = Courtesy()
            before = levels()
            lent = courtesy.yield_memory()
            report(levels=levels(), freed=torch.cuda.mem_get_info()[0] - free, reserved=before[1], allocated=before[0],
                   lent=lent.lent_bytes, kept=lent.kept_bytes, reasons=lent.reasons, size=courtesy.lent_bytes,
                   text=str(lent))
            courtesy.restore()
            report(after=[courtesy.lent_bytes, torch.cuda.memory_allocated()])

        _, plain, _ = training(lambda: None)
        facts, gradients, count = training(interlude)
        report(facts=facts, gradients=gradients == plain, count=count)
        """,
        tmp_path,
    )
    assert values["facts"] == [True] * 6 and values["gradients"] and values["count"] > 25
    assert values["levels"] == [0, 0], values["text"]
    assert values["freed"] >= values["reserved"] > 12 << 20
    assert values["lent"] == {"cuda:0": values["size"]} and values["size"] > 12 << 20
    assert values["kept"] == {} and values["reasons"] == []
    assert values["after"][0] == 0 and values["size"] <= values["after"][1] <= values["allocated"]


@gpu()
def test_what_only_autograd_holds_is_lent_too(tmp_path):
    """`inp * (inp + 2)`: no Python tensor has the sum, nor a function's saved tensors, nor a node inside an in-place
    one."""
    values = run(
        """
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
        unpacked = []
        def hooked(x):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: unpacked.append(1) or t):
                return x * (x + 2)
        def in_place(x):
            y = torch.zeros(1000, device="cuda")
            y[:500] = x[:500] * (x[:500] + 5)
            y[:500].mul_(x[500:] + 7)
            return y
        builds = dict(product=lambda x: x * (x + 2), function=Cube.apply, hooked=hooked, in_place=in_place,
                      exp=lambda x: (x + 1).exp(), softmax=lambda x: (x + 1).softmax(0),
                      cat=lambda x: torch.cat([x.sin().cos(), x.exp().log()]))
        for name, build in builds.items():
            inp = random(1000).requires_grad_()
            plain, = torch.autograd.grad(build(inp).sum(), inp)
            out = build(inp).sum()
            inside = torch.cuda.memory_allocated()
            with Courtesy() as courtesy:
                lent = [*levels(), courtesy.lent_bytes > 4 * 2000]
            gradient, = torch.autograd.grad(out, inp)
            report(**{name: [*lent, bits(plain) == bits(gradient)]})
            del out, gradient, plain, inp
        report(unpacked=len(unpacked))
        """,
        tmp_path,
    )
    assert values.pop("unpacked") == 4, "twice in each backward, never by Courtesy"
    assert values == dict.fromkeys(values, [0, 0, True, True]) and len(values) == 7


@gpu()
def test_use_in_between_is_an_error(tmp_path):
    """The check is PyTorch's own, where each operation asks for the data; nothing reaches the device."""
    values = run(
        """
        for name in ("own", "watch"):
            if name == "watch":
                guard.is_native = lambda torch: False
            x, w = random(3, 4), random(4, 4).requires_grad_()
            index = torch.tensor([0, 1]).cuda()
            loss = ((x @ w) * (w[:3] + 2)).sum()
            sums = bits(x), bits(w)
            uses = dict(
                add=lambda: x + 1, total=lambda: x.sum(), item=lambda: x[0, 0].item(), clone=lambda: x.clone(),
                matmul=lambda: x @ w, cat=lambda: torch.cat([x, x]),
                foreach=lambda: torch._foreach_add([x], 1),
                out=lambda: torch.add(torch.ones(3, 4, device="cuda"), 1, out=x), mask=lambda: x[x > 0],
                index=lambda: x[index], sort=lambda: x.sort(), svd=lambda: torch.linalg.svd(x), to_cpu=lambda: x.cpu(),
                from_cpu=lambda: torch.ones(3, 4).copy_(x),
                backward=lambda: loss.backward(retain_graph=True),
                gradient=lambda: torch.autograd.grad(loss, w, retain_graph=True), view=lambda: x[1:] * 2,
                conv=lambda: torch.nn.functional.conv1d(x[None], w[:, :3, None]),
                embedding=lambda: torch.nn.functional.embedding(index, w),
            )
            if name == "own":
                uses |= dict(
                    prints=lambda: repr(x), tolist=lambda: x.tolist(), pointer=lambda: x.data_ptr(),
                    array=lambda: x.__cuda_array_interface__,
                    dlpack=lambda: torch.utils.dlpack.to_dlpack(x), save=lambda: torch.save(x, "x.pt"),
                    storage=lambda: x.untyped_storage().cpu(),
                    stream=lambda: x.record_stream(torch.cuda.Stream()), resize=lambda: x.untyped_storage().resize_(4),
                )
            def on_thread(use):
                def call():
                    caught = []
                    def body():
                        try: use()
                        except RuntimeError as error: caught.append(error)
                    thread = threading.Thread(target=body); thread.start(); thread.join()
                    raise caught[0]
                return call
            if name == "own":
                uses["thread"] = on_thread(lambda: x + 1)
            with Courtesy():
                accepted = [key for key, use in uses.items() if not refused(use)]
                metadata = [list(x.shape), str(x.device), x.numel()]
                if name == "own":
                    metadata += [list(x.t().shape), list(x[1:].shape)]
                fresh = torch.arange(4.0).cuda().add(1).cpu().tolist()
                cpu = float(torch.ones(3).sum())
            still = [key for key, use in uses.items() if key not in ("svd", "thread", "resize") and refused(use)]
            torch.cuda.synchronize()
            report(**{name: [accepted, metadata, cpu, still, sums == (bits(x), bits(w))]})
        """,
        tmp_path,
    )
    assert values["own"] == [[], [[3, 4], "cuda:0", 12, [4, 3], [2, 4]], 3.0, [], True]
    assert values["watch"] == [[], [[3, 4], "cuda:0", 12], 3.0, [], True]


@gpu()
def test_who_has_lent_what(tmp_path):
    """Twice, not at all, nested, two objects in either order, exceptions, an object that is lost."""
    values = run(
        """
        x = random(1 << 18)
        sums = bits(x)
        fine = lambda *tensors: bits(x) == sums and not any(map(refused, (lambda t=t: t + 1 for t in (x, *tensors))))
        courtesy = Courtesy()
        courtesy.restore()
        never = fine()

        courtesy.yield_memory()
        y = random(1 << 18)
        first = courtesy.lent_bytes
        again = courtesy.yield_memory().lent_bytes["cuda:0"]
        report(twice=[never, first == again == courtesy.lent_bytes // 2 == MIB, levels()])
        courtesy.restore()
        report(restored=[fine(y), courtesy.lent_bytes])
        courtesy.restore()
        report(restored_twice=[fine(y), courtesy.lent_bytes])

        with courtesy:
            with courtesy:
                pass
            inner = refused(lambda: x + 1)
            with courtesy as same:
                courtesy.restore()
                outer = fine(y)
        report(nested=[inner, outer, same is courtesy, fine(y)])

        for order in ("in order", "crossed"):
            a, b = Courtesy(), Courtesy()
            a.yield_memory()
            z = random(1000)
            b.yield_memory()
            sizes = [a.lent_bytes, b.lent_bytes]
            (b if order == "in order" else a).restore()
            half = [refused(lambda: x + 1), refused(lambda: z + 1)]
            (a if order == "in order" else b).restore()
            report(**{order: [sizes, half, fine(y, z)]})
            del z

        try:
            with Courtesy():
                raise KeyError("mine")
        except KeyError as error:
            report(exception=[str(error), fine(y)])

        lost = Courtesy()
        lost.yield_memory()
        def lose():
            global lost
            lost = None
        told = warned(lose)
        gone = refused(lambda: x + 1)
        other = Courtesy()
        other.restore()
        report(lost=[told, gone, fine(y), lender._loans == []])

        with Courtesy() as courtesy:
            del y
            x2 = x.detach()
            free = levels()
        report(dead=[free, levels()[0] == MIB, fine(x2)])
        """,
        tmp_path,
    )
    assert values.pop("twice") == [True, True, [0, 0]]
    told, *lost = values.pop("lost")
    assert told[0].startswith("a Courtesy object is gone while memory is lent") and lost == [True, True, True]
    assert values == {
        "restored": [True, 0],
        "restored_twice": [True, 0],
        "nested": [True, True, True, True],
        "in order": [[2 << 20, 4000], [True, False], True],
        "crossed": [[2 << 20, 4000], [False, True], True],
        "exception": ["'mine'", True],
        "dead": [[0, 0], True, True],
    }


@gpu()
def test_faults_lose_nothing(tmp_path):
    values = run(
        """
        tensors = [random(8 << 20) for _ in range(3)]
        small = random(10)
        sums = [bits(t) for t in (*tensors, small)]
        fine = lambda: [bits(t) for t in (*tensors, small)] == sums
        def error(action):
            try:
                action()
            except BaseException as failure:
                return [type(failure).__name__, str(failure)]
        real_copy = lending.copy_bytes
        def failing(after, failure):
            calls = []
            def copy(*args):
                calls.append(1)
                if len(calls) > after:
                    raise failure
                return real_copy(*args)
            lending.copy_bytes = copy

        courtesy = Courtesy()
        # The host: it is asked first, it refuses an allocation, and a copy is interrupted.
        before = levels()
        real_available = lender.host_memory.available_bytes
        lender.host_memory.available_bytes = lambda: 96 * MIB
        full = error(courtesy.yield_memory)
        lender.host_memory.available_bytes = real_available
        real_storage = lending._host_storage
        lending._host_storage = lambda torch, nbytes: real_storage(torch, nbytes if nbytes > 100 else 1 << 60)
        refusal = error(courtesy.yield_memory)
        lending._host_storage = real_storage
        failing(2, KeyboardInterrupt())
        interrupted = error(courtesy.yield_memory)
        lending.copy_bytes = real_copy
        report(host=[full, refusal, interrupted], after_host=[levels() == before, courtesy.lent_bytes, fine()])

        # An interrupt while the bytes are being freed: those that are gone come back.
        real_empty = guard.empty
        calls = []
        def empty(torch, storage):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            real_empty(torch, storage)
        guard.empty = empty
        report(freeing=error(courtesy.yield_memory), after_freeing=[courtesy.lent_bytes, fine(), lender._loans == []])
        guard.empty = real_empty

        # The device: somebody takes the room, one of the large ones fits.
        courtesy.yield_memory()
        room = torch.cuda.mem_get_info()[0]
        block = torch.empty(room - 44 * MIB, dtype=torch.uint8, device="cuda")
        full = error(courtesy.restore)
        back = [not refused(lambda: t[0].item()) for t in tensors]
        lent = courtesy.lent_bytes
        again = error(courtesy.restore)[0]
        report(device=[full, back, lent, again])
        del block
        courtesy.restore()
        def body():
            global block
            with courtesy:
                block = torch.empty(room - 44 * MIB, dtype=torch.uint8, device="cuda")
                raise KeyError("mine")
        told = warned(lambda: report(in_block=error(body)))
        del block
        failing(0, KeyboardInterrupt())
        interrupted = error(courtesy.restore)
        lending.copy_bytes = real_copy
        courtesy.restore()
        report(told=told, interrupted=interrupted[0], finally_fine=[fine(), courtesy.lent_bytes, lender._loans == []])
        """,
        tmp_path,
    )
    full, refusal, interrupted = values["host"]
    assert full[0] == refusal[0] == "MemoryError" and interrupted[0] == "KeyboardInterrupt"
    assert "nothing was lent: the host has not enough memory for 96.00M of tensors. It has 96.00M" in full[1]
    assert values["after_host"] == [True, 0, True]
    assert values["freeing"][0] == "KeyboardInterrupt" and values["after_freeing"] == [0, True, True]
    (kind, message), back, lent, again = values["device"]
    assert kind == again == "OutOfMemoryError"
    assert "no room on cuda:0: 1 storages are back, 3 storages (64.00M) are still lent" in message
    assert sorted(back) == [False, False, True] and lent == (64 << 20) + 40
    assert values["in_block"] == ["KeyError", "'mine'"], "the program's exception comes first"
    assert any("still lent" in text for text in values["told"])
    assert values["interrupted"] == "KeyboardInterrupt" and values["finally_fine"] == [True, 0, True]
