"""A full collection waits for a second without a middle collection."""

from __future__ import annotations

from typing import Any, cast

import pytest

from barnabas.node import full_collections
from barnabas.node.full_collections import AT_LATEST, MIDDLE_COLLECTIONS, FullCollections
from tests.coordinator.virtual_loop import VirtualLoop


class FakeGc:
    """Python's collector: counts, and what it is asked to do."""

    def __init__(self) -> None:
        self.middle = self.since_full = 0
        self.calls: list[Any] = []

    def run_middle(self, times: int) -> None:
        self.middle += times
        self.since_full += times

    def collect(self) -> None:
        self.since_full = 0
        self.calls.append("collect")

    def freeze(self) -> None:
        self.calls.append("freeze")

    def set_threshold(self, *thresholds: int) -> None:
        self.calls.append(thresholds)

    def get_count(self) -> tuple[int, int, int]:
        return 0, 0, self.since_full

    def get_stats(self) -> list[dict[str, int]]:
        return [{"collections": 0}, {"collections": self.middle}, {"collections": 0}]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeGc:
    fake = FakeGc()
    monkeypatch.setattr(full_collections, "gc", fake)
    return fake


def begun(fake: FakeGc) -> VirtualLoop:
    loop = VirtualLoop()
    FullCollections(cast("Any", loop)).begin()
    assert fake.calls == ["collect", "freeze", (20_000, 3, AT_LATEST)]
    fake.calls.clear()
    return loop


def test_none_begins_while_a_long_request_makes_objects(fake: FakeGc) -> None:
    loop = begun(fake)
    for _ in range(10):
        fake.run_middle(MIDDLE_COLLECTIONS)
        loop.advance(1_000)
    assert fake.calls == []
    loop.advance(1_000)
    assert fake.calls == ["collect"]


def test_none_begins_before_it_is_due(fake: FakeGc) -> None:
    loop = begun(fake)
    fake.run_middle(MIDDLE_COLLECTIONS - 1)
    loop.advance(10_000)
    assert fake.calls == []
    fake.run_middle(1)
    loop.advance(2_000)
    assert fake.calls == ["collect"]
    loop.advance(10_000)
    assert fake.calls == ["collect"], "the next one is due after as many again"
