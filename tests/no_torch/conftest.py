"""Fixtures for pages in a real browser, Chromium by playwright. Skipped with the reason where one of them is missing.

CHROMIUM names another browser of its kind than the one on the path.
"""

from __future__ import annotations

import os
import shutil

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def _browser_path():
    if "CHROMIUM" in os.environ:
        return os.environ["CHROMIUM"]
    return next(filter(None, map(shutil.which, _NAMES)), None)


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = _browser_path()
    if path is None:
        pytest.skip(f"none of {', '.join(_NAMES)} is on the path (apt-get install chromium), nor is CHROMIUM set")
    with sync_api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        except sync_api.Error as error:
            pytest.skip(f"{path} does not start here: {str(error).splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens HTML as a local file; at the end there must have been no error and no other request."""
    requests, complaints, contexts = [], [], []

    def record(route):
        requests.append(route.request.url)
        route.continue_() if route.request.url == (tmp_path / "page.html").as_uri() else route.abort()

    def open_page(html, scheme="light", **options):
        (tmp_path / "page.html").write_text(html, "utf-8")
        context = browser.new_context(color_scheme=scheme, viewport={"width": 1200, "height": 900}, **options)
        contexts.append(context)
        context.route("**/*", record)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto((tmp_path / "page.html").as_uri())
        return page

    open_page.complaints = complaints
    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert set(requests) <= {(tmp_path / "page.html").as_uri()}
