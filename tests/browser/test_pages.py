"""Every page and every form, as a visitor sees it: in light and dark, at 320 px, without JavaScript; axe-core finds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser

from barnabas.console.changes.table import CHANGES
from barnabas.console.pages import PAGES
from tests.browser.furnished import HOSTILE, LONG_TOPIC
from tests.browser.visitor import DARK, LIGHT, NARROW, WITHOUT_SCRIPT, Looks, Visitor, visitor

HERE = "/clusters/local/"
NAMES = {"name": "orders", "topic": "orders", "id": HOSTILE, "partition": "0", "offset": "0", "principal": "User:alice"}
"""What a page may be about; each page takes what it knows, so a new page is judged from its first day."""
MORE = {
    "messages": [
        {"topic": "orders", "isolation_level": "read_uncommitted", "details": "1", "control": "1"},
        {"topic": "orders", "live": "1"},
        {"topic": "orders", "filter": "value.amount >"},
        {"topic": LONG_TOPIC},
    ],
    "record": [{"topic": "orders", "partition": "0", "offset": each} for each in ("40", "41", "42", "43", "99999")],
    "topic": [{"name": LONG_TOPIC}, {"name": "absent"}],
    "group": [{"id": "absent"}],
    "topics": [{"page": "2"}, {"q": "none has this name"}],
}
ADDRESSES = [
    *(f"{HERE}{each.path}" for each in PAGES if each.menu is not None),
    *(f"{HERE}{each.path}?{urlencode(NAMES)}" for each in PAGES),
    *(f"{HERE}{path}?{urlencode(query)}" for path, queries in MORE.items() for query in queries),
    *(f"/clusters/down/{each.path}" for each in PAGES if each.menu is not None),
    "/",
]
MISSING = ("/no/such/page", "/clusters/absent/")
FORMS = [f"{HERE}change/{each.path}?{urlencode(NAMES)}" for each in CHANGES]


@pytest.fixture(params=[LIGHT, DARK, NARROW], ids=lambda looks: looks.name)
def looks(request: pytest.FixtureRequest) -> Looks:
    found: Looks = request.param
    return found


@pytest.fixture
def reader(chromium: Browser, reading: str, looks: Looks) -> Iterator[Visitor]:
    with visitor(chromium, reading, looks) as found:
        yield found


@pytest.fixture
def writer(chromium: Browser, writing: str, looks: Looks) -> Iterator[Visitor]:
    with visitor(chromium, writing, looks) as found:
        yield found


def is_absent(address: str) -> bool:
    return "absent" in address or "offset=99999" in address or address.startswith("/no/")


def test_every_page(reader: Visitor) -> None:
    wrong = []
    for address in [*ADDRESSES, *MISSING]:
        reader.go(address, 404 if is_absent(address) else 200)
        found = reader.judged()
        # Chromium says on its console that the page itself is missing.
        wrong += [each for each in found if not (is_absent(address) and "404 (Not Found)" in each)]
    assert wrong == []


def test_every_form(writer: Visitor) -> None:
    wrong = []
    for address in [*FORMS, *(f"{HERE}{each.path}?{urlencode(NAMES)}" for each in PAGES)]:
        writer.go(address)
        wrong += writer.judged()
    assert wrong == []


def test_a_preview_and_what_is_wrong_with_a_form(writer: Visitor) -> None:
    page = writer.go(f"{HERE}change/topic-delete?name=many-59")
    page.get_by_role("button").click()
    assert page.get_by_role("button").inner_text().startswith("Delete topic many-59")
    wrong = writer.judged()
    page = writer.go(f"{HERE}change/topic-create")
    page.locator("[name=name]").fill("<script>")
    page.get_by_role("button").click()
    page.get_by_role("alert").wait_for()
    wrong += [each for each in writer.judged() if "409 (Conflict)" not in each and "400 (Bad Request)" not in each]
    assert wrong == []


HEADINGS = "h1, h2, h3, dt, th:not(.points th)"
"""A chart has its points, with their own headings, from the second look on: the pages are of two moments."""


def test_without_javascript(chromium: Browser, reading: str) -> None:
    """All that a page shows is there, and it needs no more room."""
    with visitor(chromium, reading) as full, visitor(chromium, reading, WITHOUT_SCRIPT) as plain:
        wrong = []
        for address in ADDRESSES:
            status = 404 if is_absent(address) else 200
            headings = [each.go(address, status).locator(HEADINGS).all_inner_texts() for each in (full, plain)]
            if headings[0] != headings[1]:
                wrong.append(f"{address}: {headings}")
            wrong += [each for each in plain.complaints if "404 (Not Found)" not in each]
        assert wrong == []
        page = plain.go(HERE)
        assert page.locator("meta[http-equiv=refresh]").count() == 1
