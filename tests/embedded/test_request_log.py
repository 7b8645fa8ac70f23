"""The requests that a node remembers."""

from __future__ import annotations

import json

import pytest

from barnabas.embedded import request_log
from barnabas.embedded.fault_plan import ANY_REQUEST, EVERY_API, Where
from barnabas.embedded.request_log import ObservedRequest, RequestLog
from barnabas.embedded.request_subject import RequestSubject

ORDERS = RequestSubject({"orders": {1, 0}}, {"shop"}, None)


def test_requests_are_found_in_their_order() -> None:
    log = RequestLog(2)
    log.add(0, 9, "app", ORDERS, 100).append(7)
    log.add(1, 12, None, RequestSubject({}, set(), "till"), 101)
    first, second = log.found(EVERY_API, ANY_REQUEST)
    assert first == ObservedRequest("Produce", 9, "app", {"orders": [0, 1]}, ["shop"], None, 2, 100, [7])
    assert second == ObservedRequest("Fetch", 12, None, {}, [], "till", 2, 101, [])
    assert log.found(1, ANY_REQUEST) == [second]
    assert log.found(EVERY_API, Where(topic="orders", client_id="app")) == [first]
    assert ObservedRequest(*json.loads(json.dumps(first))) == first
    assert repr(log) == "<RequestLog of=2 requests=2>"
    log.clear()
    assert log.found(EVERY_API, ANY_REQUEST) == []


def test_only_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log, "REQUESTS_MAX", 3)
    log = RequestLog(1)
    for time_ms in range(5):
        log.add(0, 9, "app", ORDERS, time_ms)
    assert [found.time_ms for found in log.found(EVERY_API, ANY_REQUEST)] == [2, 3, 4]
