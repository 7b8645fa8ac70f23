"""Forms that change clusters, filled in by a program: what a browser sends, and the JSON that comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from starlette.testclient import TestClient

JSON = {"accept": "application/json"}


class Reply(NamedTuple):
    """The answer to a form."""

    status: int
    data: dict[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of a preview or a result."""
        found: list[dict[str, Any]] = self.data["result"] if "result" in self.data else self.data["preview"]
        return found

    @property
    def error(self) -> str:
        return str(self.data.get("error", ""))


def address(change: str, cluster: str = "local") -> str:
    return f"/clusters/{cluster}/change/{change}"


def send(browser: TestClient, change: str, fields: Mapping[str, str]) -> Reply:
    answer = browser.post(address(change), data=dict(fields), headers=JSON)
    return Reply(answer.status_code, answer.json())


def preview(browser: TestClient, change: str, **fields: str) -> Reply:
    """Send the form of a change; `_` in the name of a field is as it is."""
    token = browser.get(address(change), headers=JSON).json()["token"]
    return send(browser, change, {**fields, "token": token})


def upload(browser: TestClient, change: str, data: bytes, name: str = "records.jsonl", **fields: str) -> Reply:
    """Send the form of a change with a file."""
    token = browser.get(address(change), headers=JSON).json()["token"]
    files = {"file": (name, data)}
    answer = browser.post(address(change), data={**fields, "token": token}, files=files, headers=JSON)
    return Reply(answer.status_code, answer.json())


def carry_out(browser: TestClient, shown: Reply, **asks: str) -> Reply:
    """Send the form of a preview; the name is typed if one is asked for."""
    assert shown.status == 200, shown
    typed = {} if shown.data["destroys"] is None else {"typed": shown.data["destroys"]}
    return send(browser, shown.data["change"], {**shown.data["send"], **typed, **asks})


def change(browser: TestClient, change: str, **fields: str) -> Reply:
    """Preview a change and carry it out."""
    return carry_out(browser, preview(browser, change, **fields))


def lines(audit: Path) -> list[dict[str, Any]]:
    """Return the lines of an audit log."""
    return [json.loads(line) for line in audit.read_text().splitlines()]
