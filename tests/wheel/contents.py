"""Checks what the sdist and the wheel contain. Usage: contents.py SDIST WHEEL

The wheel's libraries must be those that were built: two of them bear the names of NVIDIA's, and nothing may be added to
the wheel in their place. The sdist must hold what is needed to build and to test, and nothing else.
"""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from email.parser import Parser

from elftools.elf.elffile import ELFFile
from trove_classifiers import classifiers

PACKAGE = "pytorch_memlab_c"
#: File in the package: the name that it bears in its dynamic section.
LIBRARIES = {
    "libpml_simcudart.so": "libpml_simcudart.so",
    "simulated_driver/libcuda.so.1": "libcuda.so.1",
    "simulated_driver/libnvidia-ml.so.1": "libnvidia-ml.so.1",
    "pml_starter": None,
}
SYSTEM = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
TOP_OF_SDIST = {
    *("native", PACKAGE, "magics", "tests", "examples", "docs", "demo.ipynb", "CMakeLists.txt", "Makefile"),
    *("pyproject.toml", "PKG-INFO", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"),
}


def dynamic(wheel: zipfile.ZipFile, name: str) -> tuple[str | None, set[str], list[str]]:
    """The name that an ELF file bears, the libraries it needs, and where it looks for them."""
    section = ELFFile(io.BytesIO(wheel.read(name))).get_section_by_name(".dynamic")
    tags = [(tag.entry.d_tag, tag) for tag in section.iter_tags()]
    (soname,) = [tag.soname for kind, tag in tags if kind == "DT_SONAME"] or [None]
    needed = {tag.needed for kind, tag in tags if kind == "DT_NEEDED"}
    return soname, needed, [tag.runpath for kind, tag in tags if kind == "DT_RUNPATH"]


def check_libraries(wheel: zipfile.ZipFile) -> None:
    files = {name.partition("/")[2]: name for name in wheel.namelist() if name.startswith(f"{PACKAGE}/")}
    extension = [name for name in files if name.startswith("_native.") and name.endswith(".so")]
    binaries = {name for name in wheel.namelist() if wheel.read(name)[:4] == b"\x7fELF"}
    assert binaries == {f"{PACKAGE}/{name}" for name in [*LIBRARIES, *extension]}, binaries
    assert len(extension) == 1, extension
    for name, expected in LIBRARIES.items():
        soname, needed, runpath = dynamic(wheel, files[name])
        assert soname == expected, (name, soname)
        assert needed <= SYSTEM | {"libpml_simcudart.so"}, (name, needed)
        assert runpath == ["$ORIGIN/.." if "/" in name else "$ORIGIN"] or "libpml_simcudart.so" not in needed, (
            name,
            runpath,
        )
    assert dynamic(wheel, files[extension[0]])[1] <= SYSTEM
    assert wheel.getinfo(files["pml_starter"]).external_attr >> 16 & 0o111, "the starter cannot be executed"


def check_wheel(path: str) -> None:
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        (information,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        assert "manylinux" in path and not any(".libs/" in name for name in names), path
        assert {f"{PACKAGE}/py.typed", f"{PACKAGE}_simulate.pth", f"_{PACKAGE}_startup.py"} <= names
        tops = {name.partition("/")[0] for name in names}
        assert tops == {PACKAGE, information, f"{PACKAGE}_simulate.pth", f"_{PACKAGE}_startup.py"}, tops
        assert b"MIT License" in wheel.read(f"{information}/licenses/LICENSE")
        metadata = Parser().parsestr(wheel.read(f"{information}/METADATA").decode())
        check_libraries(wheel)
    unknown = set(metadata.get_all("Classifier")) - classifiers
    assert not unknown, unknown


def check_sdist(path: str) -> None:
    with tarfile.open(path) as sdist:
        files = {member.name.partition("/")[2] for member in sdist if member.isfile()}
    assert {name.partition("/")[0] for name in files} == TOP_OF_SDIST, files
    left_over = [name for name in files if "__pycache__" in name or name.endswith((".so", ".pyc", ".o"))]
    assert not left_over, left_over
    assert {"tests/conftest.py", "tests/support/run_program.py", "tests/c/run.sh", "native/CMakeLists.txt"} <= files


if __name__ == "__main__":
    check_sdist(sys.argv[1])
    check_wheel(sys.argv[2])
    print("The contents of sdist and wheel are right")
