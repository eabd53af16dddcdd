"""`MemReporter` on CPU tensors: every byte once, under its name, whatever kind of tensor holds it."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from run_program import run_program

torch = pytest.importorskip("torch")

from pytorch_memlab_c import MemReporter  # noqa: E402


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    """No report causes a warning; what earlier tests have dropped is gone."""
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # of the tests' own processes
        yield


def section(reporter: MemReporter | None = None, device: str = "cpu", **options: Any) -> Any:
    options = {"verbose": True, "model": None, "max_rows": None, **options}
    display = (reporter or MemReporter())._display(device=device, **options)
    (found,) = display.sections
    return found


def sizes(reporter: MemReporter | None = None, **options: Any) -> dict[str, int]:
    """Bytes by label, with owners."""
    return {f"{r.name}->{r.owner}" if r.owner else r.name: r.nbytes for r in section(reporter, **options).rows}


def level(device: str = "cpu") -> Any:
    return section(device=device).level


def adds(make: Any) -> tuple[Any, int, int]:
    """What `make` returns, and by how much it raises the bytes seen and those allocated."""
    gc.collect()
    before = level()
    made = make()
    gc.collect()
    after = level()
    assert after.unreachable == before.unreachable
    return made, after.seen - before.seen, after.allocated - before.allocated


class TestSizes:
    def test_a_linear_layer(self):
        """Case 53: bytes, not bytes times the element size."""
        model = torch.nn.Linear(1024, 1024)
        found = sizes(MemReporter(model))
        assert (found["weight"], found["bias"]) == (4 * 2**20, 4096)
        text = str(MemReporter(model)._display(False, "cpu", model, 10))
        assert "weight                                          (1024, 1024)     4.00M" in text
        assert "bias                                                 (1024,)     4.00K" in text
        assert "Total Tensors: 1049600 \tUsed Memory: 4.00M" in text

    def test_without_a_model_the_variable_gives_the_names(self):
        """Case 54."""
        layer = torch.nn.Linear(1234, 987)
        rows = [row for row in section().rows if row.shape in ((987, 1234), (987,))]
        assert {row.kind for row in rows} == {"Parameter"} and len(rows) == 2
        assert {row.name.rpartition(": ")[2] for row in rows} == {"layer.weight", "layer.bias"}
        names = [row.name for row in section().rows]
        assert len(names) == len(set(names)) and layer is not None

    def test_equal_sizes_are_in_the_order_of_the_model(self):
        layers = [torch.nn.Linear(30, 30, bias=False) for _ in range(12)]
        model = torch.nn.Sequential(*(layers[i] for i in (5, 11, 3, 0, 8, 1, 10, 2, 9, 4, 7, 6)))
        rows = [row.name for row in section(MemReporter(model), model=model).rows]
        assert rows == [f"{i}.weight" for i in range(12)]

    def test_rows_are_the_largest_first_and_sum_up(self):
        kept = [torch.ones(n) for n in (10, 1000, 100)]
        found = section()
        assert [row.nbytes for row in found.rows] == sorted((row.nbytes for row in found.rows), reverse=True)
        assert found.used == found.level.seen == sum(row.nbytes for row in found.rows) and kept

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8, torch.bool, torch.complex64])
    def test_every_dtype_counts_its_bytes(self, dtype):
        made, seen, allocated = adds(lambda: torch.zeros(1000, dtype=dtype))
        assert seen == allocated == 1000 * made.element_size()

    def test_a_storage_counts_once_however_many_look_at_it(self):
        def make():
            base = torch.zeros(8, 125)
            views = [base, base.data, base[2:5], base.t(), base.view(torch.int32), base.detach().numpy()]
            return [*views, base.expand(50, 8, 125), base.untyped_storage(), base.view(torch.uint8)[:0]]

        made, seen, allocated = adds(make)
        assert seen == allocated == 4000
        held = {label: size for label, size in sizes().items() if size == 4000}
        (owner,) = held
        assert sum(label.endswith(f"->{owner}") for label in sizes()) >= 5 and made

    def test_storages_that_share_memory_count_once(self):
        numpy = pytest.importorskip("numpy")

        def make():
            array = numpy.zeros(1000, dtype=numpy.uint8)
            tensor = torch.zeros(2000, dtype=torch.uint8)
            return [torch.from_numpy(array), torch.from_numpy(array), torch.from_numpy(array[100:]), tensor] + [
                torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(part)) for part in (tensor, tensor[500:])
            ]

        made, seen, allocated = adds(make)
        assert (seen, allocated) == (3000, 2000) and made

    def test_memory_from_elsewhere_is_said(self):
        numpy = pytest.importorskip("numpy")
        before = level().elsewhere
        kept = [torch.from_numpy(numpy.zeros(700)), torch.zeros(10).share_memory_()]
        assert level().elsewhere - before == 5640 and kept

    def test_a_storage_without_a_tensor(self):
        made, seen, allocated = adds(lambda: torch.zeros(1000).untyped_storage())
        assert seen == allocated == 4000 and made.nbytes() == 4000
        assert any(row.kind == "UntypedStorage" and row.nbytes == 4000 for row in section().rows)

    def test_a_storage_resized(self):
        tensor = torch.zeros(1000)

        def shrink():
            tensor.untyped_storage().resize_(0)

        assert adds(shrink)[1:] == (-4000, -4000)
        assert adds(lambda: tensor.untyped_storage().resize_(6000))[1:] == (6000, 6000)


def sparse(layout: str) -> Any:
    dense = torch.eye(64)
    make = {
        "coo": dense.to_sparse,
        "csr": dense.to_sparse_csr,
        "csc": dense.to_sparse_csc,
        "bsr": lambda: dense.to_sparse_bsr((4, 4)),
        "bsc": lambda: dense.to_sparse_bsc((4, 4)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make[layout]()


def quantized(per_channel: bool) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if per_channel:
            return torch.quantize_per_channel(torch.ones(64, 8), torch.ones(64), torch.zeros(64), 0, torch.qint8)
        return torch.quantize_per_tensor(torch.ones(1000), 0.1, 0, torch.qint8)


def nested(layout: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=layout)


class Wrapper(torch.Tensor):
    """Stands for an inner tensor, as DTensor does; whoever runs its code fails."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    @property
    def grad(self):
        raise AssertionError("code of the subclass ran")

    shape = device = is_leaf = requires_grad = grad

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("code of the subclass ran")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("code of the subclass ran")


def fake() -> Any:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(1000)


def functional() -> Any:
    from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode

    with FunctionalTensorMode():
        return FunctionalTensor.to_functional(torch.ones(1000))


class TestKinds:
    @pytest.mark.parametrize(
        ("layout", "parts"),
        [
            ("coo", {"indices": 1024, "values": 256}),
            ("csr", {"crow_indices": 520, "col_indices": 1024, "values": 256}),
            ("csc", {"ccol_indices": 520, "row_indices": 1024, "values": 256}),
            ("bsr", {"crow_indices": 136, "col_indices": 256, "values": 1024}),
            ("bsc", {"ccol_indices": 136, "row_indices": 256, "values": 1024}),
        ],
    )
    def test_sparse(self, layout, parts):
        """Case 52. Where PyTorch keeps both indices of a conversion in one storage, all of it counts."""
        made, seen, allocated = adds(lambda: sparse(layout))
        assert seen == allocated
        model = torch.nn.Module()
        model.register_buffer("m", made)
        found = sizes(MemReporter(model), model=model)
        assert {name: found[f"m.{name}"] for name in parts} == parts and sum(found.values()) == seen

    @pytest.mark.parametrize(
        ("make", "expected"),
        [
            (lambda: torch.ones(1000, device="meta"), 0),
            (fake, 0),
            (functional, 4000),
            (lambda: Wrapper(torch.ones(1000)), 4000),
            (lambda: quantized(False), 1000),
            (lambda: quantized(True), 512 + 256 + 256),
            (lambda: nested(torch.strided), 72 + 32 + 32 + 16),
            (lambda: torch.empty(0), 0),
            (lambda: torch.tensor(1.5), 4),
            (lambda: torch.ones(1).expand(1000), 4),
            (lambda: torch.nn.LazyLinear(5).weight, 0),
            (lambda: torch.ones(1000, requires_grad=True).to(torch.bfloat16).detach(), 2000),
        ],
        ids="meta fake functional wrapper quantized per-channel nested empty zero-dim expanded lazy bfloat16".split(),
    )
    def test_right_or_nothing(self, make, expected):
        """Case 57."""
        made, seen, allocated = adds(make)
        assert seen == allocated == expected and made is not None

    def test_a_jagged_tensor_counts_by_its_inner_ones(self):
        made, seen, allocated = adds(lambda: nested(torch.jagged))
        assert seen == allocated >= 72 + 24 and made is not None

    def test_several_without_memory_are_not_shared(self):
        kept = [
            torch.empty(0),
            torch.empty(0),
            torch.ones(3, device="meta"),
            torch.ones(3, device="meta"),
            fake(),
            fake(),
        ]
        for device in ("cpu", "meta"):
            assert all(
                row.owner == "" for row in section(device=device).rows if not row.nbytes and row.kind != "Wrapper"
            )
        assert kept

    def test_inside_transforms(self):
        seen = []

        def look(x):
            seen.append(level().seen)
            return x * 2

        before = level().seen
        torch.vmap(look)(torch.ones(3, 1000))
        torch.func.grad(lambda x: look(x).sum())(torch.ones(1000))
        assert seen[0] - before == 12000 and seen[1] - before >= 4000

    def test_inside_modes(self):
        """Modes of the program do not see the report, nor get in its way."""
        from torch._subclasses import FakeTensorMode
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode

        class Refuse(TorchFunctionMode):
            def __torch_function__(self, *args):
                raise AssertionError("the mode saw the report")

        class RefuseDispatch(TorchDispatchMode):
            def __torch_dispatch__(self, *args):
                raise AssertionError("the mode saw the report")

        kept, outside = sparse("coo"), level().seen
        for mode in (Refuse(), RefuseDispatch(), FakeTensorMode(), torch.device("meta"), torch.inference_mode()):
            with mode:
                assert level().seen == outside
        assert kept is not None

    def test_strangers(self):
        """Case 51: dead proxies, and objects that claim to be tensors."""

        class Claims:
            @property
            def __class__(self):
                raise AssertionError("asked")

        class Referent:
            pass

        referent, claims = Referent(), Claims()
        proxy = weakref.proxy(referent)
        del referent
        before = level()
        assert level() == before and type(proxy) is weakref.ProxyType and type(claims) is Claims


class TestNames:
    def test_all_names_of_tied_parameters_buffers_and_gradients(self):
        model = torch.nn.Sequential(torch.nn.Linear(30, 30), torch.nn.Linear(30, 30), torch.nn.BatchNorm1d(30))
        model[1].weight = model[0].weight
        model(torch.ones(4, 30)).sum().backward()
        found = sizes(MemReporter(model), model=model)
        assert found["0.weight+1.weight"] == found["0.weight+1.weight.grad"] == 3600
        assert found["0.bias"] == found["1.bias.grad"] == found["2.running_mean"] == 120
        assert found["2.num_batches_tracked"] == 8 and len(found) == 13

    def test_views_name_their_owner_if_asked(self):
        model = torch.nn.Linear(31, 31)
        view = model.weight.data[3:]
        rows = [row for row in section(MemReporter(model), model=model).rows if row.shape == (28, 31)]
        assert [(row.owner, row.nbytes) for row in rows] == [("weight", 0)] and view is not None

    def test_a_gradient_that_python_has_never_touched(self):
        model = torch.nn.Linear(500, 3)
        model(torch.ones(1, 500)).sum().backward()
        assert sizes(MemReporter(model))["weight.grad"] == 6000

    def test_sparse_and_retained_gradients(self):
        embedding = torch.nn.Embedding(50, 8, sparse=True)
        embedding(torch.tensor([1, 2])).sum().backward()
        middle = embedding.weight * 2
        middle.retain_grad()
        middle.sum().backward(inputs=[middle])
        found = sizes(MemReporter(embedding))
        assert found["weight.grad.indices"] == 16 and found["weight.grad.values"] == 64
        assert [size for name, size in found.items() if name.endswith("(): middle.grad")] == [1600]

    def test_a_model_that_changes_keeps_its_names(self):
        model = torch.nn.Linear(10, 10)
        reporter = MemReporter(model)
        model.double()
        model.extra = torch.nn.Linear(3, 3)
        model.weight = torch.nn.Parameter(torch.ones(7, 7))
        found = sizes(reporter, model=model)
        assert found == {"weight": 196, "bias": 80, "extra.weight": 36, "extra.bias": 12}


class TestOptimizers:
    """Case 56."""

    def test_states_before_and_after_the_first_step(self):
        model = torch.nn.Linear(20, 20)
        optimizer = torch.optim.Adam(model.parameters())
        reporter = MemReporter(model)
        reporter.add_optimizer(optimizer)
        assert not any(name.startswith("Adam") for name in sizes(reporter))
        model(torch.ones(2, 20)).sum().backward()
        optimizer.step()
        found = {name: size for name, size in sizes(reporter).items() if name.startswith("Adam")}
        assert found == {
            f"Adam.{parameter}.{state}": size
            for parameter, sizes_ in (("weight", (1600, 1600, 4)), ("bias", (80, 80, 4)))
            for state, size in zip(("exp_avg", "exp_avg_sq", "step"), sizes_)
        }
        assert sizes(reporter, model=model).keys() == {*found, "weight", "bias", "weight.grad", "bias.grad"}

    def test_sgd_without_momentum_and_parameters_of_no_model(self):
        outside = [torch.nn.Parameter(torch.ones(n)) for n in (33, 44)]
        sgd = torch.optim.SGD([{"params": outside[:1]}, {"params": outside[1:], "lr": torch.tensor(0.1)}], lr=0.1)
        adam = torch.optim.Adam(outside[1:])
        reporter = MemReporter()
        for optimizer in (sgd, adam, adam, torch.optim.SGD(outside, lr=1.0, momentum=0.9)):
            reporter.add_optimizer(optimizer)
        sum(p.sum() for p in outside).backward()
        sgd.step()
        adam.step()
        found = sizes(reporter)
        assert found["SGD.groups.0.params.0"] == 132 and found["SGD.groups.1.params.0"] == 176
        assert found["SGD.groups.1.lr"] == 4 and found["Adam.SGD.groups.1.params.0.exp_avg"] == 176

    def test_states_in_lists(self):
        model = torch.nn.Linear(6, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
        reporter = MemReporter(model)
        reporter.add_optimizer(optimizer)

        def loss():
            optimizer.zero_grad()
            value = (model(torch.arange(12.0).view(2, 6)) - 3).square().sum()
            value.backward()
            return value

        optimizer.step(loss)
        assert any(name.startswith("LBFGS.weight.old_dirs.0") for name in sizes(reporter))

    @pytest.mark.parametrize("wrong", [None, torch.ones(1), "Adam"])
    def test_what_is_no_optimizer_or_model_is_named(self, wrong):
        with pytest.raises(TypeError, match="optimizer must be a torch.optim.Optimizer"):
            MemReporter().add_optimizer(wrong)
        if wrong is not None:
            with pytest.raises(TypeError, match="model must be a torch.nn.Module"):
                MemReporter(wrong)


class TestChoices:
    def test_rows_are_folded(self):
        kept = [torch.ones(n) for n in range(1, 400)]
        every = section()
        few = section(max_rows=5)
        assert few.rows == every.rows[:5] and few.used == every.used
        assert few.folded == (len(every.rows) - 5, every.used - sum(row.nbytes for row in few.rows)) and kept
        assert section(max_rows=0).rows == [] and len(section(max_rows=10**6).rows) == len(every.rows)

    def test_one_device(self):
        kept = [torch.ones(3, device="meta"), torch.ones(3)]
        for device in ("cpu", torch.device("cpu")):
            assert section(device=device).device == "cpu"
        assert MemReporter()._display(False, "xpu:7", None, 5).sections == [] and kept

    @pytest.mark.parametrize("device", ["gpu", "cuda:x", 1.5, object()])
    def test_what_is_no_device_is_named(self, device):
        with pytest.raises(ValueError, match="is not a device; give"):
            MemReporter().report(device=device)

    @pytest.mark.parametrize("rows", [-1, "all", 2.5])
    def test_what_is_no_number_of_rows_is_named(self, rows):
        with pytest.raises(ValueError, match="max_rows"):
            MemReporter().report(max_rows=rows)

    def test_a_part_of_a_model(self):
        model = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.Linear(6, 6))
        assert sizes(MemReporter(model), model=model[1]).keys() == {"1.weight", "1.bias"}
        assert sizes(model=model[1]).keys() == {"weight", "bias"}
        with pytest.raises(TypeError, match="model must be"):
            MemReporter().report(model="net")

    def test_garbage_is_collected_first_if_asked(self):
        gc.disable()
        try:
            cycle: list[Any] = [torch.ones(4321)]
            cycle.append(cycle)
            del cycle
            assert 4321 * 4 in sizes().values()
            assert 4321 * 4 not in sizes(MemReporter(pre_collect=True)).values()
        finally:
            gc.enable()


class TestFrames:
    def test_columns_and_sums(self):
        kept = torch.ones(100)
        view, empty = kept[:50], torch.empty(0)
        frame = MemReporter().snapshot()
        assert list(frame.columns) == [
            "name", "type", "shape", "dtype", "device", "storage_id", "storage_bytes", "allocator_bytes",
        ]  # fmt: skip
        found = level()
        assert frame["storage_bytes"].sum() == found.seen
        assert frame["allocator_bytes"].sum() == found.allocated - found.unreachable
        ids = frame.loc[[shape in ((100,), (50,)) for shape in frame["shape"]], "storage_id"]
        assert ids.nunique() == 1 and (0,) in set(frame["shape"]) and view is not None and empty is not None

    def test_storages_are_told_apart_for_ever(self):
        """An address that is used again is another storage."""
        reporter, changes = MemReporter(), []
        tensor = torch.ones(50_000)
        kept = torch.ones(5)
        for size in (50_000, 50_000, 20_000):
            before = reporter.snapshot()
            del tensor
            tensor = torch.ones(size)
            changes.append(reporter.diff(before, reporter.snapshot()))
        assert [sorted(c["change"]) for c in changes] == [["gone", "new"]] * 3 and tensor is not kept
        assert [sorted(c["bytes_changed"]) for c in changes] == [[-200_000, 200_000]] * 2 + [[-200_000, 80_000]]

    def test_a_storage_that_grows(self):
        tensor = torch.ones(10)
        before = MemReporter().snapshot()
        tensor.resize_(1000)
        (change,) = MemReporter.diff(before, MemReporter().snapshot()).to_dict("records")
        assert (change["change"], change["bytes_before"], change["bytes_after"]) == ("grown", 40, 4000)

    def test_weak_references_keep_no_memory(self):
        before = level().allocated
        tensor = torch.ones(100_000)
        MemReporter().snapshot()
        del tensor
        assert level().allocated == before


class TestInvisible:
    def test_nothing_is_kept(self):
        model = torch.nn.Linear(10, 10)
        out = model(torch.ones(1, 10)).exp()
        held = [model.weight, out, sparse("coo")]
        model.weight.grad = torch.ones(10, 10)
        reporter = MemReporter(model)
        reporter.report(max_rows=3)
        before = [sys.getrefcount(t) for t in held], level().allocated
        versions = [t._version for t in held[:2]]
        for _ in range(3):
            reporter.report(max_rows=3)
            reporter.snapshot()
        assert ([sys.getrefcount(t) for t in held], level().allocated) == before
        assert [t._version for t in held[:2]] == versions
        watch = weakref.ref(model.weight)
        del held, model, out
        gc.collect()
        assert watch() is None

    def test_reports_of_models_that_are_gone(self):
        reporter = MemReporter(torch.nn.Linear(10, 10))
        reporter.add_optimizer(torch.optim.SGD([torch.ones(1)], lr=1.0))
        gc.collect()
        reporter.report()


def test_what_is_printed(tmp_path, capsys):
    """The peer's first example, in a process of its own: all bytes are accounted for, and nothing else is printed."""
    out = run_program(
        """
        import warnings
        warnings.simplefilter("error")
        import torch
        from pytorch_memlab_c import MemReporter
        linear = torch.nn.Linear(1024, 1024)
        reporter = MemReporter()
        reporter.report()
        """,
        tmp_path,
    )
    assert out.stderr == ""
    assert out.stdout.splitlines() == [
        "Element type                                            Size  Used MEM",
        "-" * 79,
        "Storage on cpu",
        "linear.weight                                   (1024, 1024)     4.00M",
        "linear.bias                                          (1024,)     4.00K",
        "-" * 79,
        "Total Tensors: 1049600 \tUsed Memory: 4.00M",
        "The allocated memory on cpu: 4.00M",
        "tensors seen: 4198400 bytes (4.00M)",
        "not reachable from Python: 0 bytes (0.00B)",
        "allocated: 4198400 bytes (4.00M)",
        "-" * 79,
    ]
