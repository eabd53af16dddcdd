"""The samples of README.md and of docs/ run word for word and print what the pages show; their links lead somewhere."""

from __future__ import annotations

import ast
import pickle
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import document_pages as pages
import made_up_traces
import pytest
from cli_support import write
from document_pages import PAGES, ROOT, Page, page, run

from pytorch_memlab_c.data import columns

README = page("README.md")
BESIDE = [Page(ROOT / "CHANGELOG.md"), Page(ROOT / "CONTRIBUTING.md")]
WITH_SAMPLES = [page for page in PAGES if page.of("python")]
FROM_COMMANDS = [(page.name, block.command) for page in PAGES for block in page.blocks if block.command]


def torch_version() -> str:
    return metadata.version("torch")


@pytest.fixture(scope="module")
def gpu() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    import gpu_device

    if reason := gpu_device._reason_to_skip():
        pytest.skip(reason)


@pytest.mark.simcuda
@pytest.mark.parametrize("page", WITH_SAMPLES, ids=lambda page: page.name)
def test_samples_run_in_their_order_and_print_what_is_shown(gpu: None, tmp_path: Path, page: Page) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed")
    text = pages.run_files(page, tmp_path)
    if page.cells:
        session = pages.run_cells(page, tmp_path)
        assert "exit code 0" in session, session
        text += session
    for output in page.outputs:
        assert output in text, f"not printed:\n{output}\n\nbut\n{text}"


def test_there_are_samples_and_outputs_to_check() -> None:
    assert len(WITH_SAMPLES) >= 12
    assert len([output for page in WITH_SAMPLES for output in page.outputs]) >= 14
    assert not [page.name for page in PAGES if page.outputs and page not in WITH_SAMPLES]
    assert not [page.name for page in PAGES if page.of("")], "each block names its language: text for what is printed"


def test_sample_of_a_limit_fails_as_shown(tmp_path: Path) -> None:
    """Without a GPU."""
    pytest.importorskip("torch", reason="torch is not installed")
    sample = page("docs/pytest.md")
    write(tmp_path, sample.files)
    text = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sample.files)
    assert "1 failed" in text
    if not torch_version().startswith("2.14."):
        pytest.skip("the figures in docs/ are those of PyTorch 2.14")
    (shown,) = sample.outputs
    assert shown in text


@pytest.mark.simcuda
@pytest.mark.parametrize(("name", "command"), FROM_COMMANDS, ids=[command for _, command in FROM_COMMANDS])
def test_command_prints_what_is_shown(gpu: None, name: str, command: str) -> None:
    if "llama" in command:
        pytest.importorskip("transformers", reason="transformers is not installed")
        if not metadata.version("transformers").startswith("5.24."):
            pytest.skip("the lines in docs/ are those of transformers 5.24")
    text = pages.run_command(command)
    assert "exit code 0" in text, text
    for block in page(name).blocks:
        assert block.command != command or block.text in text


TRAIN = """\
from package import data, models

class Net:
    def forward(self):
        kept = data.collate()
        return models.layer()

Net().forward()
"""
MADE_UP = "from program_support import Block\n\ndef {}():\n    return Block(100)\n"
PROGRAM = {
    "train.py": TRAIN,
    "package/__init__.py": "",
    "package/train.py": TRAIN,
    "package/data.py": MADE_UP.format("collate"),
    "package/models.py": MADE_UP.format("layer"),
}


def own_commands() -> list[list[str]]:
    """The words behind `pytorch-memlab` in all pages."""
    commands = [command.split() for page in PAGES for command in page.commands]
    return [words[1:] for words in commands if words and words[0] == "pytorch-memlab"]


def test_commands_run(tmp_path: Path) -> None:
    """On made-up memory; `simulate` needs PyTorch, and has a test of its own. torchrun gives ranks by RANK."""
    assert {words[0] for words in own_commands()} == {"run", "simulate", "report", "diff", "merge", "snapshot", "rss"}
    write(tmp_path, PROGRAM)
    (tmp_path / "memory.pickle").write_bytes(pickle.dumps(made_up_traces.snapshot(made_up_traces.leak())))
    made = [("before.json", ""), ("after.json", ""), ("report.json", "0"), ("report.json", "1")]
    for name, rank in made:
        run(tmp_path, "-m", "pytorch_memlab_c", "run", "-o", name, "train.py", **{"RANK": rank} if rank else {})
    for words in [words for words in own_commands() if words[0] != "simulate"]:
        files = {word: [path.name for path in sorted(tmp_path.glob(word))] for word in words if "*" in word}
        shell = [sys.executable if word == "python" else word for item in words for word in files.get(item, [item])]
        text = run(tmp_path, "-m", "pytorch_memlab_c", *shell)
        assert "exit code 0" in text and "never called" not in text, f"{words}\n{text}"


@pytest.mark.simcuda
def test_commands_on_a_simulated_gpu_run(gpu: None, tmp_path: Path) -> None:
    write(tmp_path, README.files)
    ours = [words for words in own_commands() if words[0] == "simulate"]
    assert ours
    for words in {tuple(words) for words in ours}:
        text = run(tmp_path, "-m", "pytorch_memlab_c", *words)
        assert "exit code 0" in text and "note: CUDA figures are simulated" in text, f"{words}\n{text}"


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for one in [*PAGES, *BESIDE]:
        code = "\n".join([*one.commands, *re.findall("`[^`]*`", one.prose)])
        assert set(re.findall(r"\bmake ([a-z][\w-]*)", code)) <= targets, one.name
    assert {"make demo", "make test"} <= set(README.commands)


def test_every_column_of_the_profiler_is_explained() -> None:
    explained = set(re.findall(r"`([\w.]+)`", page("docs/columns.md").text))
    own = {"hits", *columns.OWN_FIELDS, *columns.SAVED_FIELDS, *columns.CPU_FIELDS}
    assert own <= explained, own - explained


def test_readme_is_short() -> None:
    assert 900 <= len(README.text.split()) <= 1200


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.prose):
        assert not target.startswith("http"), f"{target}: an address that no test can check"
        file, _, heading = target.partition("#")
        found = Page(page.path.parent / file if file else page.path)
        assert found.path.exists(), target
        assert not heading or f"#{heading}" in anchors(found.prose), target
    assert len(anchors(page.prose)) == len(re.findall(r"^#+ ", page.prose, re.MULTILINE)), "two headings are alike"


def test_links_of_the_readme_work_away_from_the_repository() -> None:
    """They are addresses below the repository's, which pyproject.toml names, of files that are there."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    repository = re.search(r'^Source = "(https://[^"]+)"$', project, flags=re.MULTILINE)
    assert repository is not None
    links = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", README.text, flags=re.MULTILINE))
    assert set(re.findall(r"\]\[([\w-]+)\]", README.prose)) == set(links) and "](" not in README.prose
    for address in links.values():
        file = address.removeprefix(f"{repository[1]}/blob/main/")
        assert file != address and (ROOT / file).is_file(), address


def test_pages_are_built_without_a_warning(tmp_path: Path) -> None:
    """The strict build also checks the links between pages, and that each page is in a table of contents."""
    for needed in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: see docs/requirements.txt")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    built = [path for path in (tmp_path / "site").rglob("*.html")]
    assert len(built) > len(PAGES) - 1
    loaded = [
        address
        for path in built
        for address in re.findall(
            r"<(?:script|link|img)\b[^>]*(?:src|href)=\"(https?://[^\"]+)", path.read_text("utf-8")
        )
    ]
    assert not loaded, "a page loads something from outside"


def imported() -> set[str]:
    """The top-level modules that the package's files import, but its own and Python's."""
    found = set()
    for path in [*(ROOT / "pytorch_memlab_c").rglob("*.py"), *(ROOT / "magics").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module or "")
    return {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"pytorch_memlab_c"}


def test_what_is_imported_is_declared() -> None:
    """PyTorch and others of a user's own choice as extras."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.findall(r'"(\w+)>', project.partition("\ndependencies")[2].partition("\n")[0])
    optional = re.findall(r'"(\w+)>', project.partition("[project.optional-dependencies]")[2].partition("\n\n")[0])
    assert set(needed) | set(optional) == {name.lower() for name in imported()}
