"""The parts of the pytest plugin: what a mark says, and which functions are under test. Needs no torch."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytorch_memlab_c.data.sizes import parse_size
from pytorch_memlab_c.pytest_plugin.functions import Project, functions_under_test
from pytorch_memlab_c.pytest_plugin.limits import limit_of

pytest_plugins = "pytester"

WRONG = {
    "": "the limit is missing",
    "200": "the limit 200 has no unit",
    "'200'": "the limit '200' has no unit",
    "'200 Mb'": "unknown unit 'Mb'",
    "'200 mb'": "unknown unit 'mb'",
    "'200 MBs'": "unknown unit 'MBs'",
    "'200 M'": "unknown unit 'M'",
    "'-1 MB'": "is negative",
    "'1e3 MB'": "is not a size",
    "'1,000 MB'": "is not a size",
    "'inf MB'": "is not a size",
    "' 1 MB'": "is not a size",
    "'1  MB'": "is not a size",
    "'MB'": "is not a size",
    "'1. MB'": "is not a size",
    "'\\u0661 MB'": "is not a size",
    "None": "the limit None has no unit",
    "'1 MB', 'cpu'": "give one limit",
    "'1 MB', limit='1 MB'": "give one limit",
    "'1 MB', gpu=0": "unknown argument gpu",
    "'1 MB', device='gpu'": "device='gpu' is not a device",
    "'1 MB', device='cuda:-1'": "device='cuda:-1' is not a device",
    "'1 MB', device='cpu:1'": "device='cpu:1' is not a device",
    "'1 MB', device=0": "device=0 is not a device",
    "'1 MB', device='all'": "device='all' is not a device",
    "'1 MB', functions='f'": "functions='f' is not a list",
    "'1 MB', functions=[len]": "functions: cannot profile 'len'",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_mark_has_a_reason(arguments):
    mark = eval(f"(lambda *args, **kwargs: SimpleNamespace(args=args, kwargs=kwargs))({arguments})", globals())
    with pytest.raises(ValueError) as error:
        limit_of(mark)
    assert WRONG[arguments] in str(error.value)


@pytest.mark.parametrize(
    "text, size",
    [
        *(("0 B", 0), ("512 B", 512), ("1 KB", 1024), ("1KiB", 1024), ("200 MB", 200 << 20), ("200MiB", 200 << 20)),
        *(("1.5 GB", 3 << 29), ("2 TB", 2 << 40), (".5 KB", 512), ("0.3 KB", 307), ("+1 MB", 1 << 20)),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


def test_devices_and_torch_devices():
    def device(value):
        return limit_of(SimpleNamespace(args=("1 MB",), kwargs={"device": value})).device

    assert [device(name) for name in (None, "cpu", "cpu:0", "cuda", "cuda:12", "mps", "xpu:1")] == [
        *(None, "cpu", "cpu", "cuda", "cuda:12", "mps", "xpu:1")
    ]
    assert device(SimpleNamespace(type="cuda", index=1)) == "cuda:1"
    assert device(SimpleNamespace(type="cuda", index=None)) == "cuda"


# --- which functions are under test --------------------------------------------------------------


def names_under_test(pytester, source, test="test", arguments=(), **modules):
    """Qualnames of what is found from the function `test` of `source`."""
    pytester.makepyfile(main=source, **modules)
    pytester.syspathinsert()
    main = importlib.import_module("main")
    values = {name: getattr(main, name) for name in arguments}
    instance = getattr(main, "instance", None)
    function = getattr(instance, test, None) if instance is not None else getattr(main, test)
    plain = getattr(function, "__func__", function)
    found = functions_under_test(plain, values, instance, Project(pytester.path))
    return [function.__qualname__ for function in found]


def test_functions_are_found_by_the_names_in_the_code(pytester):
    found = names_under_test(
        pytester,
        """
        import json, functools, collections
        import package.deep as deep
        from package import near
        from package.deep import Net, cached
        unused = near
        def test(model):
            deep.by_attribute()
            near.call(json.dumps({}), [inner() for _ in range(3)])
            return Net(), cached(), collections.OrderedDict()
        def inner(): return len
        def not_named(): pass
        class Model:
            def forward(self): return helper()
            @property
            def loss(self): return 1
            @staticmethod
            def static(): pass
        def helper(): return inner() or helper()
        model = Model()
        """,
        arguments=["model"],
        **{
            "package/__init__": "",
            "package/near": "def call(*args): return further()\ndef further(): pass\ndef other(): pass",
            "package/deep": """
                import functools
                class Base:
                    def inherited(self): pass
                class Net(Base):
                    def __init__(self): self.part = Part()
                class Part:
                    def forward(self): pass
                def by_attribute(): pass
                @functools.lru_cache
                def cached(): pass
            """,
        },
    )
    expected = {
        "test",
        "by_attribute",
        "call",
        "further",
        "inner",
        "helper",
        "cached",
        "Net.__init__",
        "Base.inherited",
    }
    assert set(found) == expected | {"Part.forward", "Model.forward", "Model.loss", "Model.static"}
    assert found[0] == "test" and len(found) == len(set(found))
    assert found.index("call") < found.index("further") and found.index("Model.forward") < found.index("helper")


def test_a_test_s_class_gives_the_methods_that_are_named(pytester):
    source = """
        class TestIt:
            def test(self): self.helper()
            def helper(self): pass
            def test_other(self): pass
        instance = TestIt()
    """
    assert names_under_test(pytester, source) == ["TestIt.test", "TestIt.helper"]


def test_objects_that_do_things_when_looked_at_are_not_looked_at(pytester):
    source = """
        import weakref
        touched = []
        class Lazy:
            @property
            def __class__(self): touched.append(1); raise RuntimeError
            def __getattribute__(self, name): touched.append(name); raise RuntimeError
        class Meta(type):
            def __getattr__(cls, name): touched.append(name); raise RuntimeError
        class Odd(metaclass=Meta): pass
        class Gone: pass
        lazy = Lazy()
        dead = weakref.proxy(Gone())
        def test(lazy, dead):
            return lazy.forward, dead.forward, Odd.forward, touched
    """
    found = names_under_test(pytester, source, arguments=["lazy", "dead"])
    assert found[0] == "test" and sys.modules["main"].touched == []


def test_only_the_project_s_own_files(tmp_path):
    project = Project(tmp_path)
    assert project.owns(str(tmp_path / "a.py")) and project.owns(str(tmp_path / "src" / "pkg" / "b.py"))
    for other in ("<string>", "a.py", json.__file__, pytest.__file__, "/elsewhere/a.py"):
        assert not project.owns(other)
    assert not project.owns(str(tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "x" / "a.py"))
    assert not Project(Path("/")).owns(json.__file__)
