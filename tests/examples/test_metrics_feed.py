"""A broker stands still and dies while measurements are sent: what acks=0 loses, acks=1 keeps."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import barnabas
from tests.examples.stage import EXAMPLES, PATIENCE_SECONDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.conform,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.timeout(3 * PATIENCE_SECONDS),
]


@pytest.fixture
def metrics_feed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("metrics_feed")


def test_what_is_sent_during_an_outage_is_lost_with_acks_0_alone(metrics_feed: Any) -> None:
    each = metrics_feed.MEASUREMENTS
    with barnabas.Cluster(1) as cluster:
        lossy = metrics_feed.outage(cluster, "measured-0", "0")
        safe = metrics_feed.outage(cluster, "measured-1", "1")
    assert lossy == (3 * each, 2 * each, each, 0)
    assert safe == (3 * each, 3 * each, 0, safe.twice)
