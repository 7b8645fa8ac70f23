"""ShareAcknowledge on a whole node: acknowledgements that are invalid, and renewed locks."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.api.share_cluster import (
    ACCEPT,
    GROUP_RESOURCE,
    RENEW,
    Cluster,
    Member,
    outcome,
)


@pytest.mark.parametrize(
    ("batches", "fields"),
    [
        ([(5, 4, [ACCEPT])], {}),
        ([(0, 4, [])], {}),
        ([(0, 4, [ACCEPT, ACCEPT])], {}),
        ([(0, 4, [9])], {}),
        ([(0, 4, [-1])], {}),
        ([(5, 9, [ACCEPT]), (0, 4, [ACCEPT])], {}),
        ([(0, 4, [RENEW])], {"is_renew_ack": False}),
    ],
)
def test_invalid_acknowledgements_are_rejected(
    cluster: Cluster, batches: list[tuple[int, int, list[int]]], fields: dict[str, Any]
) -> None:
    cluster.produce(*[b"x"] * 10)
    member = Member(cluster).join()
    member.fetch()
    assert outcome(member.acknowledge(*batches, **fields)) == [(0, ErrorCode.INVALID_REQUEST)]


def test_a_lock_is_renewed(cluster: Cluster) -> None:
    cluster.produce(*[b"x"] * 3)
    member = Member(cluster).join()
    member.fetch()
    assert outcome(member.acknowledge((0, 2, [RENEW]), is_renew_ack=True)) == [(0, 0)]
    none: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    answer = member.fetch((0, 2, [RENEW]), is_renew_ack=True, **none)
    assert answer.error_code == 0
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    refused = member.fetch((0, 2, [RENEW]), is_renew_ack=True)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message is None, "Kafka gives a code and no words"
    cluster.configure(GROUP_RESOURCE, "g", share_renew_acknowledge_enable="false")
    assert outcome(member.acknowledge((0, 2, [RENEW]), is_renew_ack=True)) == [(0, ErrorCode.INVALID_RECORD_STATE)]
