"""A broker whose groups and transactions begin at once."""

from __future__ import annotations

from collections.abc import Mapping

import pytest


@pytest.fixture(scope="module")
def barnabas_config() -> Mapping[str, object]:
    return {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 500,
        "transaction.state.log.num.partitions": 1,
        "offsets.topic.num.partitions": 1,
    }
