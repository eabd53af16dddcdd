"""docs/architecture.md names each folder of the sources and tests once; the decisions are numbered and listed."""

from __future__ import annotations

import re

import pytest
from document_pages import ROOT, page

ARCHITECTURE = page("docs/architecture.md")
SOURCES = {"native": (".c", ".h", ".py", ".pth"), "pytorch_memlab_c": (".py",), "tests": (".py", ".c", ".sh")}


def listed(section: str) -> list[str]:
    """The folders in the table of a section, without the slash at their ends."""
    text = ARCHITECTURE.text.partition(f"\n## {section}/\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w/]+)/` \|", text, flags=re.MULTILINE)


@pytest.mark.parametrize("section", SOURCES)
def test_each_folder_with_sources_has_one_row(section: str) -> None:
    files = [path for suffix in SOURCES[section] for path in (ROOT / section).rglob(f"*{suffix}")]
    there = {path.parent.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}
    assert there and sorted(set(listed(section)) - {"magics"}) == sorted(there)
    assert len(listed(section)) == len(set(listed(section)))


def test_decisions_are_numbered_and_listed() -> None:
    files = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(name[:2]) for name in files] == list(range(1, len(files) + 1))
    links = re.findall(r"^\d+\. \[(.*)\]\((.*)\)$", page("docs/decisions/index.md").text, flags=re.MULTILINE)
    assert [file for _, file in links] == files
    for number, (title, file) in enumerate(links, start=1):
        text = page(f"docs/decisions/{file}").text
        assert text.startswith(f"# {number}. {title}\n"), file
        assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE) == ["Context", "Decision", "Consequence"], file
