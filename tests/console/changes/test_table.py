"""The form of every change, as a browser and as a program gets it."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from barnabas.console.changes.change import Change
from barnabas.console.changes.table import CHANGES
from barnabas.console.pages import PAGES
from tests.console.forms import JSON, address
from tests.console.reading import html, tags

EACH = pytest.mark.parametrize("change", CHANGES, ids=[each.path for each in CHANGES])


def test_each_has_an_address_of_its_own_and_a_page_that_leads_to_it() -> None:
    assert len({each.path for each in CHANGES}) == len(CHANGES)
    assert {page for each in CHANGES for page in (each.page, *each.also)} <= {each.path for each in PAGES}
    for each in CHANGES:
        names = [field.name for field in each.fields]
        assert len(names) == len(set(names))
        assert not {"token", "preview", "typed"} & set(names)
        assert each.subject is None or each.subject[1] in names


@EACH
def test_the_form(writer: TestClient, change: Change) -> None:
    """It works without JavaScript, and what the address has is filled in, and is text."""
    hostile = '"><script>alert(1)</script>'
    query = {each.name: hostile for each in change.fields}
    answer = writer.get(address(change.path), params=query)
    found = tags(answer.text)
    assert answer.status_code == 200
    assert [(each["method"], each["action"]) for tag, each in found if tag == "form"] == [
        ("post", address(change.path))
    ]
    named = [attributes["name"] for tag, attributes in found if tag in ("input", "select", "textarea")]
    shown = [each.name for each in change.fields if each.kind != "hidden"]
    assert named == ["token", *shown]
    assert [tag for tag, _ in found].count("label") == len(shown)
    assert "<script>" not in answer.text
    assert not any(name.startswith("on") or name == "style" for _, attributes in found for name in attributes)


@EACH
def test_an_empty_form_is_a_sentence(writer: TestClient, change: Change) -> None:
    token = writer.get(address(change.path), headers=JSON).json()["token"]
    answer = writer.post(address(change.path), data={"token": token})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert "<button>Preview</button>" in answer.text


@EACH
def test_a_console_that_is_read_only_has_no_form(browser: TestClient, change: Change) -> None:
    for answer in (browser.get(address(change.path)), browser.post(address(change.path), data={"token": "x"})):
        assert answer.status_code == 403
        assert "This console is read-only" in answer.text
        assert "<form" not in answer.text
    assert "/change/" not in html(browser, change.page)


@EACH
def test_a_broker_that_is_down_is_a_sentence(nowhere_to_write: TestClient, change: Change) -> None:
    """Whatever the form has: the cluster cannot be asked, or the form is not right."""
    token = nowhere_to_write.get(address(change.path), headers=JSON).json()["token"]
    texts = {
        each.name: "7" if each.choices == () else next((value for value, _ in each.choices if value), "")
        for each in change.fields
    }
    answer = nowhere_to_write.post(address(change.path), data={**texts, "token": token}, headers=JSON)
    assert answer.status_code in (400, 503)
    assert answer.json()["error"].endswith(".")
    assert answer.json()["fields"]
