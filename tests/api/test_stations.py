"""The path of a request is short, and as the page of the architecture says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.message import Struct
from barnabas.protocol.messages import FetchRequest, ProduceRequest
from tests.api import test_fetch, test_produce
from tests.api.served_node import Serving
from tests.api.stations import climbs, stations
from tests.replication.hosting import batch

ROOT = Path(__file__).parents[2]
BATCH_MS = 1_767_225_600_000
"""When the records of `batch` were made; a later clock would open them."""

MOST = {"Produce": (10, 2), "Fetch": (6, 2)}
"""Stations and climbs."""


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    made = Serving(tmp_path)
    made.create_topic("t")
    made.now_ms = BATCH_MS
    yield made
    made.close()


def path_of(serving: Serving, make: str) -> list[str]:
    """Return the stations of one request, from its handler on."""
    requests: dict[str, Struct] = {
        "Produce": test_produce.request(("t", 0, batch(b"a")), acks=-1),
        "Fetch": test_fetch.request(test_fetch.part(0), session=(0, -1)),
    }
    request = requests[make]
    version = {ProduceRequest: 9, FetchRequest: 12}[type(request)]  # type: ignore[index]
    serving.ask(request, version)  # The first request imports, compiles and opens.
    request = {
        "Produce": test_produce.request(("t", 0, batch(b"a")), acks=-1),
        "Fetch": test_fetch.request(test_fetch.part(0), session=(0, -1)),
    }[make]
    visited = stations(lambda: serving.ask(request, version), type(request))
    return visited[visited.index(f"api/{make.lower()}") :]


def rooms() -> list[str]:
    """Return the rooms from the highest to the lowest."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [room for layer in contracts[0]["layers"] for room in layer.split(" | ")]


@pytest.mark.parametrize("make", MOST)
def test_a_request_takes_the_path_that_the_page_shows(serving: Serving, make: str) -> None:
    row = re.search(rf"^\| {make} \| (.*) \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert row is not None
    shown = re.findall(r"`([^`]+)`", row[1])
    assert path_of(serving, make) == shown
    assert (len(shown), climbs(shown, rooms())) <= MOST[make]
    assert climbs(shown, rooms()) <= MOST[make][1]
