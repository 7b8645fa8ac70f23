"""What tests read from pages."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

from click.testing import CliRunner
from starlette.testclient import TestClient

from barnabas.main import command_group


def twin(browser: TestClient, path: str, **query: str) -> dict[str, Any]:
    """Return the JSON of a page about the cluster `local`."""
    found: dict[str, Any] = browser.get(f"/clusters/local/{path}", params={**query, "format": "json"}).json()
    return found


def html(browser: TestClient, path: str, **query: str) -> str:
    """Return the HTML of a page about the cluster `local`."""
    return browser.get(f"/clusters/local/{path}", params=query).text


def printed(bootstrap: str, *words: str) -> Any:
    """Return what a command prints with `-o json`."""
    done = CliRunner().invoke(command_group(), [*words, "-b", bootstrap, "-o", "json"], prog_name="barnabas")
    return json.loads(done.stdout)


class _Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags(text: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the elements of a page with their attributes."""
    parser = _Outline()
    parser.feed(text)
    return parser.tags
