"""A snapshot's page in a real browser: its timeline with the mouse and the keyboard, and no request to anywhere."""

from __future__ import annotations

import made_up_traces as made_up
import pytest

from pytorch_memlab_c.snapshot import Snapshot

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def page(open_page, tmp_path):
    trace = made_up.leak()
    trace.allocate(4 * made_up.M, f"/job/bad.py:9 {HOSTILE}")
    Snapshot.from_object(made_up.snapshot(trace)).to_html(tmp_path / "made.html")
    return open_page((tmp_path / "made.html").read_text("utf-8"))


def box_of(page):
    page.locator("canvas").scroll_into_view_if_needed()
    return page.locator("canvas").bounding_box()


def place(page, part):
    """Where on the screen a part of the drawn timeline is; beside it are the axis and a margin."""
    box = box_of(page)
    return box["x"] + 70 + part * (box["width"] - 80), box["y"] + 100


def shown(page):
    return page.evaluate("(t => [t.from, t.to, t.count])(document.querySelector('.timeline').timeline)")


def under(page):
    return page.locator("output.under").inner_text()


def test_the_values_under_the_pointer_are_those_of_the_moment(page):
    page.mouse.move(*place(page, 0))
    start = under(page)
    page.mouse.move(*place(page, 1))
    end = under(page)
    assert "active 164.00M, allocated 164.00M, reserved" in end and "; most by log.py:7 in remember: 128.00M" in end
    assert start != end and "event" in start
    page.mouse.move(5, 5)
    assert under(page).strip() == ""


def test_a_click_shows_the_holders_of_that_moment(page):
    assert page.locator(".chosen table").count() == 0
    page.mouse.click(*place(page, 1))
    rows = page.locator(".chosen tbody tr")
    assert "active 164.00M" in page.locator(".chosen h3").inner_text()
    assert [rows.nth(i).locator("td").first.inner_text() for i in range(3)] == ["128.00M", "32.00M", "4.00M"]
    assert "log.py:7 in remember" in rows.nth(0).inner_text()
    assert HOSTILE in rows.nth(2).inner_text() and page.locator("img").count() == 0
    page.mouse.click(*place(page, 0.25))
    early = page.evaluate("(t => [t.at, t.data.active[t.at]])(document.querySelector('.timeline').timeline)")
    titles = rows.evaluate_all("rows => rows.map(row => Number(row.cells[0].title.replace(/[^0-9]/g, '')))")
    assert sum(titles) == early[1] < 164 * made_up.M
    assert titles == sorted(titles, reverse=True)


def test_dragging_the_wheel_and_the_buttons_zoom(page):
    whole = shown(page)
    assert whole[:2] == [0, whole[2] - 1]
    page.mouse.move(*place(page, 0.25))
    page.mouse.down()
    page.mouse.move(*place(page, 0.5))
    page.mouse.up()
    dragged = shown(page)
    assert abs(dragged[0] - whole[1] * 0.25) < 5 and abs(dragged[1] - whole[1] * 0.5) < 5
    assert page.locator(".chosen table").count() == 0  # a drag is no click
    page.mouse.move(*place(page, 0.5))
    page.mouse.wheel(0, -100)
    page.wait_for_function("t => document.querySelector('.timeline').timeline.from > t", arg=dragged[0])
    wheeled = shown(page)
    assert dragged[0] < wheeled[0] < wheeled[1] < dragged[1]
    page.locator("[data-zoom=out]").click()
    assert shown(page)[1] - shown(page)[0] > wheeled[1] - wheeled[0]
    page.locator("[data-zoom=in]").click()
    page.locator("[data-zoom=all]").click()
    assert shown(page) == whole


def test_the_keyboard_moves_zooms_and_chooses(page):
    page.locator("canvas").focus()
    page.keyboard.press("End")
    assert "active 164.00M" in under(page)
    page.keyboard.press("Enter")
    assert "active 164.00M" in page.locator(".chosen h3").inner_text()
    page.keyboard.press("ArrowLeft")
    assert under(page) != ""
    before = shown(page)
    page.keyboard.press("+")
    zoomed = shown(page)
    assert zoomed[1] - zoomed[0] < before[1] - before[0]
    page.keyboard.press("-")
    page.keyboard.press("Home")
    assert page.evaluate("(t => t.at === t.from)(document.querySelector('.timeline').timeline)")


def test_the_picture_changes_with_the_zoom(page):
    picture = "document.querySelector('canvas').toDataURL()"
    before = page.evaluate(picture)
    page.locator("[data-zoom=in]").click()
    assert page.evaluate(picture) != before
