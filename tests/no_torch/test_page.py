"""The HTML page as text: escaping, order, offline. What only a browser can tell is in test_html_browser.py."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from made_up_snapshots import K, M, code_named, line, made_up_records, stats
from report_samples import CPU, CUDA0, HOSTILE, hostile, large, mixed, records_of

from pytorch_memlab_c import LineRecords
from pytorch_memlab_c.render import page as page_module
from pytorch_memlab_c.render.text import clean_code

_EMPTY = ("meta", "br", "link", "input")


class Page(HTMLParser):
    """Collects the elements, and the text of each by the id or class that it stands in."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.text, self.open, self.elements, self.code, self.headings = text, [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in _EMPTY:
            self.open.append((tag, dict(attrs)))
        if tag == "h2":
            self.headings.append("")
        if tag == "td" and dict(attrs).get("class") == "code":
            self.code.append("")

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if ("td", {"class": "code"}) in self.open:
            self.code[-1] += data
        if self.open and any(tag == "h2" for tag, _ in self.open):
            self.headings[-1] += data

    @property
    def tags(self):
        return [tag for tag, _ in self.elements]


def test_hostile_source_is_the_text_of_its_rows():
    page = Page(hostile().to_html())
    assert page.code == [clean_code(text) for text in HOSTILE]
    assert page.open == []
    assert page.tags.count("script") == 1 and not {"b", "img", "svg"} & set(page.tags)
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert "<li><code>never</code>" in page.text


def test_hostile_names_and_files_are_text():
    code = code_named("f", "/tmp/<img src=x>.py")
    name = "<img src=x>\"'{{7*7}}.f"
    for calls in (0, 1):
        snapshot = [(code, calls, [line(2, 1, CPU, stats(K))] * calls)]
        page = Page(made_up_records(snapshot, names={id(code): name}).to_html())
        assert "img" not in page.tags and "49" not in "".join(page.headings)
        assert page.text.count("&lt;img src=x&gt;") >= 2


def test_functions_are_in_the_order_of_their_peaks():
    page = Page(large(12, 11).to_html())
    by_peak = sorted(range(12), key=lambda i: -(i * 37 % 12))
    assert page.headings == ["CUDA memory (active bytes), cuda:0", *(f"Layer{i}.forward" for i in by_peak)]
    assert page.text.index("Layer11.forward</a>") < page.text.index("Layer10.forward</a>")


def test_memory_of_different_scopes_shares_no_list_and_no_bar():
    page = Page(mixed().to_html())
    assert page.headings == [
        "CUDA memory (active bytes)",
        "CPU memory (tensor bytes), cpu",
        *("second", "first", "both", "host"),
    ]
    cuda, cpu = re.findall(r"<tbody>(.*?)</tbody>", page.text, re.S)[:2]
    assert re.findall(r"(\S+)</a> <span", cuda) == ['href="#f1">second', 'href="#f0">first', 'href="#f2">both']
    assert re.findall(r"(\S+)</a> <span", cpu) == ['href="#f3">host']
    assert re.findall(r"--p:([\d.]+)%", cuda)[::2] == ["100.0", "60.0", "40.0"]
    assert re.findall(r"--p:([\d.]+)%", cpu) == ["100.0", "100.0"]


def test_of_lines_at_the_peak_the_one_that_allocated_most_is_marked():
    lines = [
        line(1, 0, CUDA0, stats(5 * K)),
        line(2, 2, CUDA0, stats(9 * K)),
        line(3, 2, CUDA0, stats(9 * K, 4 * K)),
        line(4, 1, CUDA0, stats(9 * K, K)),
    ]
    source = ["def f():", "    for x in range(2):", "        kept.append(make())", "    return make()"]
    page = Page(records_of({"f": (source, lines)}).to_html())
    assert [attrs.get("id") for _, attrs in page.elements if attrs.get("class") == "highest"] == ["f0-3"]
    assert '<a href="#f0-3">3</a>' in page.text and '<code class="one">kept.append(make())</code>' in page.text


def test_the_list_has_peaks_whatever_columns_are_shown():
    page = Page(large(3, 10).to_html(columns=["hits"]))
    assert "3.00M" in page.text.partition('class="function"')[0]
    assert "3.00M" not in page.text.partition('class="function"')[2]
    assert ">peak</span> 9</th>" in page.text


def test_all_devices_have_a_section_each():
    lines = [line(2, 1, CUDA0, stats(K, K), slot_0=stats(3 * M, 3 * M))]
    page = Page(records_of({"f": (["def f():", "    x = 1"], lines)}).to_html(device="all"))
    assert page.headings[-2:] == ["f  [cuda:0]", "f  [cpu]"]
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("records", [made_up_records([]), hostile(), large(5)])
def test_the_page_asks_for_nothing_and_lets_only_its_own_script_run(records, tmp_path):
    path = tmp_path / "report.html"
    text = records.to_html(path)
    assert path.read_text("utf-8") == text and text.startswith("<!DOCTYPE html>")
    page = Page(text)
    references = [attrs[name] for _, attrs in page.elements for name in ("src", "href") if name in attrs]
    assert all(reference == "data:," or reference.startswith("#") for reference in references)
    assert {r[1:] for r in references if r.startswith("#")} <= {a.get("id") for _, a in page.elements}
    assert "url(" not in text and "@import" not in text
    script = text.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policies = [attrs["content"] for _, attrs in page.elements if "http-equiv" in attrs]
    assert len(policies) == 1 and f"script-src 'sha256-{digest}'" in policies[0]
    assert policies[0].startswith("default-src 'none';")


def test_further_sections_have_their_places(monkeypatch):
    extended = page_module.template("page.html.j2").environment.from_string(
        """{% extends "page.html.j2" %}
        {% block report_sections %}<p>of {{ functions | length }}</p>{% endblock %}
        {% block function_sections %}<p>of {{ function.name }}</p>{% endblock %}"""
    )
    monkeypatch.setattr(page_module, "template", lambda name: extended)
    text = large(3).to_html()
    assert text.count("<p>of 3</p>") == 1
    assert re.findall(r"<p>of (Layer\d)", text) == ["Layer2", "Layer1", "Layer0"]


def test_a_loaded_report_gives_the_same_page():
    for records in (hostile(), mixed()):
        assert LineRecords.from_json(records.to_json()).to_html() == records.to_html()


def test_an_empty_report_says_why():
    assert "no function was added" in made_up_records([]).to_html()
    text = made_up_records([(code_named("f"), 0, [])], notes=["CUDA is not available"]).to_html()
    assert "never called while it was profiled" in text and "note: CUDA is not available" in text
    assert "<table" not in text
