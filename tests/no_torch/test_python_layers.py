"""The order of the package's folders, from all import statements: those in functions and under TYPE_CHECKING too."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "pytorch_memlab_c"
#: The lowest layer first. A folder imports itself and folders of lower layers; not its neighbours.
LAYERS = (
    ("data",),
    ("render",),
    ("_native",),
    ("tensors",),
    ("engine",),
    ("simulate", "chains"),
    ("line_profiler", "mem_reporter", "courtesy", "process", "snapshot"),
    ("cli", "pytest_plugin", "magics"),
    ("",),  # the package itself, and modules that re-export a name under its public path
)
#: Folders that never import PyTorch, not even in a function.
WITHOUT_TORCH = ("data", "render", "tensors", "engine", "simulate", "chains", "snapshot", "cli", "magics")
Sources = Mapping[str, str]


def sources() -> dict[str, str]:
    """Each module's text by its dotted name below the package; a package's `__init__` has the package's name."""
    found = {"_native": ""}
    for folder, prefix in ((ROOT / PACKAGE, ()), (ROOT / "magics", ("magics",))):
        for path in folder.rglob("*.py"):
            parts = (*prefix, *path.relative_to(folder).with_suffix("").parts)
            found[".".join(part for part in parts if part != "__init__")] = path.read_text(encoding="utf-8")
    return found


def is_package(name: str, modules: Sources) -> bool:
    return not name or any(other.startswith(f"{name}.") for other in modules)


def imports(name: str, modules: Sources) -> Iterator[str]:
    """The modules that a module imports: the package's own by their names below it, others as they are written."""
    parts = name.split(".") if name else []
    here = parts if is_package(name, modules) else parts[:-1]
    for node in ast.walk(ast.parse(modules[name])):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield below_package(alias.name, modules)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*here[: len(here) + 1 - node.level], *filter(None, [node.module])])
            for alias in node.names:
                yield imported_from(base if node.level else node.module or "", alias.name, bool(node.level), modules)


def below_package(module: str, modules: Sources) -> str:
    own = module.removeprefix(f"{PACKAGE}.")
    return "" if module == PACKAGE else own if own in modules else module


def imported_from(base: str, name: str, relative: bool, modules: Sources) -> str:
    own = base if relative else below_package(base, modules)
    whole = f"{own}.{name}" if own else name
    if whole in modules and (relative or own != base):
        return whole
    return own


def layer(name: str) -> int:
    folder = name.partition(".")[0]
    level = next((level for level, folders in enumerate(LAYERS) if folder in folders), None)
    return len(LAYERS) - 1 if level is None else level


def problems(modules: Sources) -> list[str]:
    graph = {name: set(imports(name, modules)) - {name} for name in modules}
    return [*wrong_order(graph, modules), *circle(graph, modules), *torch_imports(graph)]


def wrong_order(graph: Mapping[str, set[str]], modules: Sources) -> Iterator[str]:
    for name, targets in sorted(graph.items()):
        for target in sorted(targets & modules.keys()):
            same_folder = name.partition(".")[0] == target.partition(".")[0]
            if layer(target) > layer(name) or (layer(target) == layer(name) < len(LAYERS) - 1 and not same_folder):
                yield f"{name} imports {target}"


def circle(graph: Mapping[str, set[str]], modules: Sources) -> Iterator[str]:
    try:
        TopologicalSorter({name: targets & modules.keys() for name, targets in graph.items()}).prepare()
    except CycleError as error:
        yield "circle: " + " <- ".join(error.args[1])


def torch_imports(graph: Mapping[str, set[str]]) -> Iterator[str]:
    for name, targets in sorted(graph.items()):
        if name.partition(".")[0] in WITHOUT_TORCH and any(target.partition(".")[0] == "torch" for target in targets):
            yield f"{name} imports torch"


def test_the_package_is_in_order() -> None:
    assert problems(sources()) == []


def test_every_folder_has_a_layer() -> None:
    folders = {name.partition(".")[0] for name in sources() if "." in name}
    assert folders == {folder for folders in LAYERS for folder in folders} - {"", "_native"}


def test_modules_beside_the_folders_only_re_export() -> None:
    modules = sources()
    for name in (name for name in modules if "." not in name and not is_package(name, modules)):
        kinds = {type(node) for node in ast.parse(modules[name]).body}
        assert name in ("_native", "__main__") or kinds <= {ast.Expr, ast.Import, ast.ImportFrom}, name


ORDERLY = {
    "": "from .engine.hook import follow",
    "_native": "",
    "data": "",
    "data.names": "",
    "data.tables": "from .names import CPU\nimport sys",
    "render": "",
    "render.text": "from ..data import tables",
    "engine": "",
    "engine.hook": "from .. import _native\nfrom ..render.text import show",
    "cli": "",
    "cli.main": "from pytorch_memlab_c.engine import hook",
    "magics": "",
}


@pytest.mark.parametrize(
    ("module", "text", "found"),
    [
        ("data.names", "", []),
        ("data.names", "from .. import _native", ["data.names imports _native"]),
        ("data.names", "def f():\n    from ..render import text", ["data.names imports render.text", "circle: "]),
        ("data.names", "if TYPE_CHECKING:\n    from .tables import Row", ["circle: "]),
        ("data.names", "def f():\n    import torch.cuda", ["data.names imports torch"]),
        ("render.text", "import pytorch_memlab_c.engine.hook", ["render.text imports engine.hook", "circle: "]),
        ("engine.hook", "from .. import __version__", ["engine.hook imports ", "circle: "]),
        ("magics", "from pytorch_memlab_c.cli import main", ["magics imports cli.main"]),
    ],
)
def test_what_is_out_of_order_is_found(module: str, text: str, found: list[str]) -> None:
    said = problems({**ORDERLY, module: text})
    assert len(said) == len(found) and all(map(str.startswith, said, found)), said
