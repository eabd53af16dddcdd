"""HTML reports in a real browser: Chromium, by playwright. Skipped with the reason where one of them is missing.

CHROMIUM names another browser of its kind than the one on the path.
"""

from __future__ import annotations

import re

import pytest
from report_samples import HOSTILE, hostile, large, mixed, whole

from pytorch_memlab_c.line_profiler.display import RecordsDisplay
from pytorch_memlab_c.render.text import clean_code


def column(page, table, position):
    """The texts of one column, in the order shown."""
    script = "([t, i]) => Array.from(document.querySelectorAll(`${t} tbody tr`), row => row.cells[i].textContent)"
    return page.evaluate(script, [table, position])


def shown_code(page, selector):
    return page.evaluate(f"Array.from(document.querySelectorAll('{selector}'), cell => cell.textContent)")


#: The contrast of an element's text with what is behind it, colours painted over each other as the browser does.
CONTRAST = """element => {
  const rgba = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const over = ([r, g, b, a = 1], under) => [r, g, b].map((c, i) => c * a + under[i] * (1 - a));
  const chain = [];
  for (let e = element; e; e = e.parentElement) chain.unshift(getComputedStyle(e));
  let back = [255, 255, 255];
  for (const style of chain) {
    back = over(rgba(style.backgroundColor), back);
    const bar = style.backgroundImage.match(/rgba?\\([^)]*\\)/);
    if (bar) back = over(rgba(bar[0]), back);
  }
  const linear = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = color => color.map(linear).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light(rgba(getComputedStyle(element).color)), light(back)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


def contrasts(page, selector):
    """The contrasts of all elements that have text of their own."""
    return page.evaluate(
        f"""selector => Array.from(document.querySelectorAll(selector))
        .filter(e => Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim()))
        .map({CONTRAST})""",
        selector,
    )


def background(page, selector="body"):
    return page.evaluate("s => getComputedStyle(document.querySelector(s)).backgroundColor", selector)


def test_hostile_source_shows_as_its_text(open_page):
    for scheme in ("light", "dark"):
        page = open_page(hostile().to_html(), scheme)
        assert shown_code(page, "td.code") == [clean_code(text) for text in HOSTILE]
        assert page.title() == "Memory by line"
        assert page.locator("img, svg, b, iframe").count() == 0
        assert page.locator(".note").all_inner_texts() == ["note: <b onclick='x()'>a note</b>"]
        box = page.locator("td.code").nth(7).bounding_box()
        assert box["width"] < 1200 and box["height"] < 400  # 20,000 characters are a cell that scrolls
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200


def test_a_large_report_lists_sorts_and_finds(open_page):
    page = open_page(large().to_html())
    assert page.locator("section.function").count() == 200
    assert page.locator("section.function tbody tr").count() == 5000
    assert page.locator("tr.highest").count() == 200
    names = column(page, ".list", 3)
    assert names[0].startswith("Layer27.forward") and names[-1].startswith("Layer0.forward") and len(names) == 200
    peaks = [float(text[:-1]) for text in column(page, ".list", 0)]
    assert peaks == sorted(peaks, reverse=True) == [float(i) for i in range(200, 0, -1)]
    heads = page.locator(".list thead button")
    heads.nth(0).click()
    assert [float(text[:-1]) for text in column(page, ".list", 0)] == sorted(peaks)
    heads.nth(3).click()
    assert column(page, ".list", 3) == sorted(names, key=str.lower)
    page.locator("#find").fill("layer19")
    assert page.locator("section.function:not([hidden])").count() == 11
    assert page.locator(".list tbody tr:not([hidden])").count() == 11
    assert page.locator("#found").inner_text() == "11 of 200"
    page.locator("#find").fill("")
    page.locator(".list tbody a[href='#f42']").click()
    assert page.evaluate("location.hash") == "#f42"
    assert page.locator("#f42 h2").bounding_box()["y"] < 200


def test_lines_sort_by_every_column_and_back(open_page):
    page = open_page(large(2).to_html())
    table = "#f1 table"
    before = column(page, table, 4)

    def press(name):
        page.locator(f"{table} thead button", has_text=re.compile(f"^{name}")).click()
        state = page.locator(f"{table} thead th[aria-sort]")
        assert state.count() == 1 and name in state.inner_text()
        return state.get_attribute("aria-sort")

    assert press("net") == "descending"
    nets = page.evaluate(f"Array.from(document.querySelectorAll('{table} tbody tr'), r => r.cells[2].dataset.v)")
    numbers = [int(net) for net in nets if net]
    assert numbers == sorted(numbers, reverse=True) and numbers[-1] < 0 < numbers[0]
    assert nets[len(numbers) :] == ["", "", ""]  # lines never run are last
    assert press("net") == "ascending"
    nets = page.evaluate(f"Array.from(document.querySelectorAll('{table} tbody tr'), r => r.cells[2].dataset.v)")
    assert [int(net) for net in nets if net] == sorted(numbers) and nets[len(numbers) :] == ["", "", ""]
    assert press("reserved") == "descending"
    assert press("peak") == "descending"
    assert column(page, table, 4)[0].split() == ["peak", "9"]
    assert press("runs") == "descending"
    assert column(page, table, 4)[-4:] == ["1", "7", "14", "21"]  # equal values stay in the order of the source
    assert press("line") == "ascending"
    assert column(page, table, 4) == before
    assert column(page, "#f0 table", 4) == before  # each table by itself


def test_in_a_narrow_window_everything_can_be_scrolled_to(open_page):
    columns = ["active_bytes.all.peak", "reserved_bytes.all.peak", "net", "net.first", "net.max", "allocated", "hits"]
    page = open_page(large(3).to_html(columns=columns))
    page.set_viewport_size({"width": 500, "height": 600})
    right = page.evaluate(
        "Math.max(...Array.from(document.querySelectorAll('td.code'), c => c.getBoundingClientRect().right))"
    )
    assert 500 < right <= page.evaluate("document.documentElement.scrollWidth")
    fits = "Array.from(document.querySelectorAll('section.function')).every(s => s.scrollWidth <= s.clientWidth)"
    page.wait_for_function(fits)  # nothing is cut off, once the page is laid out anew
    scroll = page.locator(".scroll")
    assert scroll.evaluate("s => s.scrollWidth > s.clientWidth && getComputedStyle(s).overflowX") == "auto"


def test_the_keyboard_does_all_of_it(open_page):
    page = open_page(large(3).to_html())
    page.keyboard.press("Tab")
    page.keyboard.type("layer2")
    assert page.locator("section.function:not([hidden])").count() == 1
    assert page.locator("section.function:visible").count() == 1
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    for _ in range(3):  # the legend, the list, its first heading
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "peak"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator(".list th[aria-sort]").get_attribute("aria-sort") == "ascending"


def test_light_and_dark_by_the_system_and_by_the_switch(open_page):
    html = mixed().to_html()
    light, dark = (background(open_page(html, scheme)) for scheme in ("light", "dark"))
    assert light == "rgb(255, 255, 255)" and dark == "rgb(22, 24, 29)"
    page = open_page(html, "dark")
    for choice, color in (("light", light), ("dark", dark), ("light", light), ("auto", dark)):
        page.get_by_label("Theme").select_option(choice)
        assert background(page) == color
    page.get_by_label("Theme").select_option("light")
    for _ in range(5):  # the browser writes down what a page stores a little later
        page.wait_for_timeout(100)
        page.reload()
        if background(page) == light:
            break
    assert background(page) == light and page.get_by_label("Theme").input_value() == "light"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_what_is_behind_it(open_page, scheme):
    """At least 4.5 to 1, as WCAG 2 asks for at level AA; also on bars."""
    columns = ["active_bytes.all.peak", "reserved_bytes.all.peak", "net", "net.first", "net.max", "allocated"]
    columns += ["allocated_bytes.all.peak", "active_bytes.all.current", "hits"]
    for records, most in ((large(2, 10), columns), (whole(), None)):
        page = open_page(records.to_html(columns=most), scheme)
        page.locator("summary").click()
        found = contrasts(page, "body *:not(option):not(script)")
        assert len(found) > 100 and min(found) >= 4.5


#: What stands beside the tables of functions, in the order of the page.
BESIDE = [
    "Peak of cuda:0: 169.00M, at work.py:2 in work",
    "Out of memory 3 times; the last one in full below",
    "Out of memory on cuda:0 at work.py:2 in work",
    "CUDA memory (active bytes), cuda:0",
    "Lines that keep more memory on every run",
    "Who keeps it, when memory ran out",
    "Saved for backward, cuda:0: 44.00M of activations",
    "work",
]


def test_who_holds_the_peak_and_all_else_beside_the_tables(open_page):
    for scheme in ("light", "dark"):
        page = open_page(whole().to_html(), scheme)
        assert page.locator("h2").all_inner_texts() == BESIDE
        held = page.locator(".pml-holders table").first
        assert held.locator("tbody td:last-child").nth(0).inner_text() == clean_code(HOSTILE[1]).strip()
        assert page.locator(".pml-holders p.note").all_inner_texts() == [
            "Out of memory 3 more times",
            "note: blocks of <b> are not known",
        ]
        assert (
            "<b>.py" in page.locator("body").inner_text()
            and page.locator("b, img, iframe, script + script").count() == 0
        )
        frames = page.locator(".scroll")
        looks = frames.evaluate_all(
            """frames => frames.map(frame => [frame, frame.querySelector('thead th'), frame.querySelector('tbody td')]
            .map(e => getComputedStyle(e)).map(s => [s.fontFamily, s.fontSize, s.backgroundColor,
                s.borderTopWidth]).join())"""
        )
        assert len(looks) == len(BESIDE) - 1 and len(set(looks)) == 1  # as the list of functions
        plot = page.locator("svg[role=img]")
        assert plot.count() == 1 and plot.bounding_box()["width"] > 1000
        assert (
            plot.get_attribute("aria-label")
            == "from 0 to 169.00M, over the run; a point for each 16 allocations and frees"
        )
        assert page.locator(".pml-holders table").count() == 3  # the peak, all failures, and the last one
        held.locator("a", has_text="work.py:3 in work").click()
        assert page.evaluate("location.hash") == "#f0-3"


@pytest.mark.parametrize("width", [1200, 500])
def test_what_stands_beside_the_tables_scrolls_inside_its_frame(open_page, width):
    page = open_page(whole().to_html())
    page.set_viewport_size({"width": width, "height": 600})
    rights = page.locator(".pml-holders > *, .pml-section > *").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().right)"
    )
    assert len(rights) > 10 and max(rights) <= page.evaluate("document.documentElement.scrollWidth")
    for frame in page.locator(".scroll").all():
        assert frame.evaluate(
            "s => s.getBoundingClientRect().width >= 0.8 * s.parentElement.getBoundingClientRect().width"
        )
        assert frame.evaluate("s => getComputedStyle(s).overflowX") == "auto"
    if width == 1200:
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200


@pytest.mark.parametrize("records", [mixed, whole])
def test_tables_tell_assistive_technology_what_they_are(open_page, records):
    page = open_page(records().to_html())
    tables = page.locator("table")
    for i in range(tables.count()):
        table = tables.nth(i)
        assert table.locator("thead th:not([scope=col])").count() == 0
        assert table.locator("tbody tr").count() == table.locator("tbody th[scope=row]").count() > 0
    if records is mixed:
        assert page.get_by_role("table", name="second").count() == 1
        assert page.get_by_role("region", name="CPU memory (tensor bytes), cpu").count() == 1
    else:
        assert page.get_by_role("region", name=BESIDE[0]).count() == 1
    assert page.locator("h1").count() == 1 and page.locator("html").get_attribute("lang") == "en"
    assert (
        page.evaluate(
            "Array.from(document.querySelectorAll('[id]'), e => e.id).sort().filter((x, i, a) => x === a[i + 1])"
        )
        == []
    )


def test_the_page_is_whole_without_scripts(open_page):
    page = open_page(mixed().to_html(), java_script_enabled=False)
    assert page.locator(".controls:visible").count() == 0
    assert page.locator("table:visible").count() == 6


def test_injected_elements_could_not_run_or_load_anything(open_page):
    """The page's own policy, should escaping ever fail: an image is not asked for and a handler does not run."""
    html = (
        mixed().to_html().replace("</main>", "<img src='http://127.0.0.1:9/x.png' onerror='document.title=1'></main>")
    )
    page = open_page(html)
    page.wait_for_load_state("load")
    assert page.title() == "Memory by line"
    assert len(open_page.complaints) == 2  # the image and the handler
    assert all("Content Security Policy" in complaint for complaint in open_page.complaints)
    open_page.complaints.clear()


# --- in a notebook -------------------------------------------------------------------------------

#: A notebook's page as JupyterLab styles it: its text colour, its own tables, striped rows.
NOTEBOOK = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>notebook</title><style>
body {{ color: {text}; background: {page}; font-family: sans-serif; }}
.output table {{ border: none; font-size: 12px; table-layout: fixed; }}
.output td, .output th {{ text-align: right; vertical-align: middle; padding: 0.5em;
    white-space: normal; max-width: none; }}
.output tbody tr:nth-child(odd) {{ background: {page}; }} .output tbody tr:nth-child(even) {{ background: {stripe}; }}
</style><div class="output" id="before">{host}</div><div class="output">{fragment}</div>
<div class="output" id="after">{host}</div>"""
HOST = (
    "<h3>a heading</h3><p>text</p><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"
)
THEMES = {
    "light": {"text": "rgb(0, 0, 0)", "page": "rgb(255, 255, 255)", "stripe": "#f5f5f5"},
    "dark": {"text": "rgb(255, 255, 255)", "page": "rgb(17, 17, 17)", "stripe": "#212121"},
}
STYLES = """() => ['#before', '#after'].map(where => ['h3', 'p', 'table', 'th', 'td'].map(tag => {
    const style = getComputedStyle(document.querySelector(`${where} ${tag}`));
    return Array.from(style, name => `${name}: ${style.getPropertyValue(name)}`).join('; ');
}))"""


@pytest.mark.parametrize("records", [hostile, whole])
@pytest.mark.parametrize("theme", THEMES)
def test_in_a_notebook_it_takes_the_theme_and_leaves_other_cells_alone(open_page, theme, records):
    fragment = RecordsDisplay(records())._repr_html_()
    page = open_page(NOTEBOOK.format(fragment=fragment, host=HOST, **THEMES[theme]), theme)
    assert shown_code(page, ".pml-records td:last-child")[: len(HOSTILE)] == [clean_code(text) for text in HOSTILE]
    headings = page.locator(".pml-holders h3, .pml-section h3").all_inner_texts()
    assert headings == ([name for name in BESIDE[:-1] if "active" not in name] if records is whole else [])
    assert page.locator(".pml-records").inner_text().count("CUDA figures are simulated") == (records is whole)
    assert page.locator(".pml-records td").first.evaluate("e => getComputedStyle(e).color") == THEMES[theme]["text"]
    assert min(contrasts(page, ".pml-records *:not(style)")) >= 4.5
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200  # long lines scroll inside the output
    assert page.locator(".pml-records [id], .pml-records script").count() == 0
    with_report = page.evaluate(STYLES)
    alone = open_page(NOTEBOOK.format(fragment="", host=HOST, **THEMES[theme]), theme).evaluate(STYLES)
    assert with_report == alone


def test_in_a_notebook_viewer_that_drops_styles_bars_and_white_space_stay(open_page):
    head, _, rest = RecordsDisplay(hostile())._repr_html_().partition("<style>")
    page = open_page(NOTEBOOK.format(fragment=head + rest.partition("</style>")[2], host=HOST, **THEMES["light"]))
    cell = page.locator(".pml-records td:last-child").last
    assert cell.evaluate("e => getComputedStyle(e).whiteSpace") == "pre"
    assert cell.inner_text() == clean_code(HOSTILE[-1])
    bar = page.locator(".pml-records td").first.evaluate("e => getComputedStyle(e).backgroundImage")
    assert bar.startswith("linear-gradient")
