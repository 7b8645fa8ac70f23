"""A visitor with Chromium: goes to pages, and notes what the browser complains about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, Playwright, Response

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE_MS = 15_000
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
"""axe-core's tags of WCAG 2.2, levels A and AA."""


class Looks(NamedTuple):
    """How a visitor's browser is set up."""

    name: str
    width: int = 1200
    scheme: Literal["light", "dark"] = "light"
    script: bool = True


LIGHT = Looks("light")
DARK = Looks("dark", scheme="dark")
NARROW = Looks("320 px", width=320)
WITHOUT_SCRIPT = Looks("without JavaScript", script=False)


def started(playwright: Playwright) -> Browser:
    """Start Chromium.

    Raises:
        RuntimeError: it is not installed.
    """
    if CHROMIUM is None:
        raise RuntimeError("Chromium is not installed (Debian: apt-get install chromium)")
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])


class Visitor:
    """Goes from page to page.

    Attributes:
        page: the browser's, for clicks and keys.
        complaints: errors of scripts and of the policy, and requests that failed, since `judged` was last called.
    """

    def __init__(self, page: Page, home: str, looks: Looks) -> None:
        self.page = page
        self.home = home
        self.looks = looks
        self.complaints: list[str] = []
        self._axe = Axe()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: self._complain(f"{said.type}: {said.text}", said.type in ("error", "warning")))
        page.on("pageerror", lambda error: self._complain(f"script: {error}"))
        page.on("requestfailed", lambda request: self._complain(f"failed: {request.url}: {request.failure}"))
        page.on("dialog", self._dismiss)

    def _complain(self, what: str, is_one: bool = True) -> None:
        # A stream of events ends with its page, and Chromium calls that a failed request.
        if is_one and not ("events" in what and "ERR_ABORTED" in what):
            self.complaints.append(what)

    def _dismiss(self, dialog: Dialog) -> None:
        self._complain(f"dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, address: str, status: int = 200) -> Page:
        """Go to an address under the console's own, and return the page."""
        answer = self.page.goto(self.home + address, wait_until="load")
        assert isinstance(answer, Response), address
        assert answer.status == status, f"{address}: {answer.status}"
        return self.page

    def judged(self) -> list[str]:
        """Return what is wrong with the page that the browser shows: complaints, width, and what axe-core finds."""
        found = [*self.complaints]
        self.complaints.clear()
        page = self.page
        sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        needed, there = page.evaluate(sizes)
        if needed > there:
            wide = page.evaluate(
                "width => [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, .skip') &&"
                " e.getBoundingClientRect().right > width).map(e => e.outerHTML.slice(0, 120)).slice(0, 3)",
                there,
            )
            found.append(f"needs {needed} px of {there}: {wide}")
        if self.looks.script:
            answer = self._axe.run(page, options={"runOnly": {"type": "tag", "values": WCAG}}).response
            for violation in answer["violations"]:
                where = [f"{node['html'][:160]} ({node['failureSummary'][:300]})" for node in violation["nodes"][:2]]
                found.append(f"axe: {violation['id']}, {len(violation['nodes'])} times: {where}")
        if page.title() == "hostile":
            found.append("a hostile value has run")
        at = urlsplit(page.url)
        return [f"{self.looks.name}, {at.path}?{at.query[:200]}: {each}" for each in found]


@contextmanager
def visitor(browser: Browser, home: str, looks: Looks = LIGHT) -> Iterator[Visitor]:
    """Open a fresh browser, without cookies, on a console at `home`."""
    context = browser.new_context(
        viewport={"width": looks.width, "height": 800},
        color_scheme=looks.scheme,
        java_script_enabled=looks.script,
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    try:
        yield Visitor(context.new_page(), home, looks)
    finally:
        context.close()
