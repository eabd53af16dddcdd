"""What a package index is told about the package is true, and a build that cannot be done says why."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED = metadata.distribution("pytorch-memlab-c")
CLASSIFIERS = INSTALLED.metadata.get_all("Classifier")
#: Of Markdown, in the text or apart from it, and of HTML.
LINK = r'\]\(([^)\s]+)|^\[[^\]]+\]:\s*(\S+)|(?:src|href)="([^"]+)"'
TOOLS = Path(sys.executable).parent


def classified(kind: str) -> set[str]:
    return {name.removeprefix(f"{kind} :: ") for name in CLASSIFIERS if name.startswith(f"{kind} :: ")}


def test_licence_is_named_and_comes_with_the_package() -> None:
    assert INSTALLED.metadata["License-Expression"] == "MIT"
    (file,) = [path for path in INSTALLED.files or () if str(path).endswith("licenses/LICENSE")]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text and text.startswith("MIT License")


def test_classifiers_name_only_what_works() -> None:
    assert classified("Operating System") == {"POSIX :: Linux"}
    versions = {name for name in classified("Programming Language") if re.fullmatch(r"Python :: 3\.\d+", name)}
    needed = INSTALLED.metadata["Requires-Python"]
    assert min(versions, key=lambda name: int(name.rpartition(".")[2])) == f"Python :: {needed.removeprefix('>=')}"
    assert f"Python :: 3.{sys.version_info.minor}" in versions
    assert ("Typing :: Typed" in CLASSIFIERS) == (ROOT / "pytorch_memlab_c" / "py.typed").exists()


def test_every_address_is_in_one_repository() -> None:
    addresses = dict(entry.split(", ") for entry in INSTALLED.metadata.get_all("Project-URL"))
    assert {"Source", "Issues", "Changelog"} <= addresses.keys()
    assert all(address.startswith(addresses["Source"]) for address in addresses.values())
    assert INSTALLED.metadata["Author"] or INSTALLED.metadata["Author-email"]
    assert INSTALLED.metadata["Keywords"]


def test_links_of_the_readme_work_away_from_the_repository() -> None:
    """On a package index there is no file beside it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for forms in re.findall(LINK, text, flags=re.MULTILINE) for link in forms if link]
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


@pytest.mark.skipif(not (TOOLS / "ninja").exists(), reason="ninja is not installed")
@pytest.mark.parametrize("compiler", [None, "/nowhere/cc"])
def test_a_missing_compiler_is_reported_in_one_sentence(tmp_path, compiler) -> None:
    command = [TOOLS / "cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={TOOLS / 'ninja'}"]
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "PATH")}
    environment |= {"PATH": str(tmp_path), **({"CC": compiler} if compiler else {})}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode != 0
    errors = re.findall(r"CMake Error.*?\n(.*?)\n\n", result.stderr, flags=re.DOTALL)
    assert [" ".join(error.split()) for error in errors] == [
        "No C compiler was found. Install one, such as gcc or clang, or name it in the variable CC."
    ]
