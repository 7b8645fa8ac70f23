from __future__ import annotations

import asyncio

import pytest

from barnabas.api import offset_for_leader_epoch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from barnabas.steps import step
from tests.replication.hosting import NODE, Hosting


def ask(
    hosting: Hosting, epoch: int, *, topic: str = "t", index: int = 0, current: int = -1, version: int = 4
) -> tuple[str, int, int]:
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=index, current_leader_epoch=current, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[asked])],
    )
    decoded = OffsetForLeaderEpochRequest.decode(request.encode(version), version)
    response = step(offset_for_leader_epoch.handle(hosting.context(23, version), decoded), hosting.loop)
    assert not isinstance(response, asyncio.Future)
    (answered,) = OffsetForLeaderEpochResponse.decode(response.encode(version), version).topics[0].partitions
    assert answered.partition == index
    return ErrorCode(answered.error_code).name, answered.leader_epoch, answered.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_epoch_ends_where_the_next_one_starts(hosting: Hosting, version: int) -> None:
    id_ = hosting.create_topic("t")
    assert ask(hosting, 0, version=version) == ("NONE", 0, 0), "an epoch without records ends where it begins"
    hosting.append("t", b"a", b"b")
    hosting.change(id_, leader=NODE)
    hosting.append("t", b"c")
    assert ask(hosting, 0, version=version) == ("NONE", 0, 2)
    assert ask(hosting, 1, version=version) == ("NONE", 1, 3)
    assert ask(hosting, 2, version=version) == ("NONE", -1, -1)
    assert ask(hosting, -1, version=version) == ("NONE", -1, -1)


def test_invalid_requests_are_rejected(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    hosting.change(id_, leader=NODE)
    assert ask(hosting, 0, current=0) == ("FENCED_LEADER_EPOCH", -1, -1)
    assert ask(hosting, 0, current=-2) == ("FENCED_LEADER_EPOCH", -1, -1)
    assert ask(hosting, 0, current=2) == ("UNKNOWN_LEADER_EPOCH", -1, -1)
    assert ask(hosting, 0, topic="nowhere") == ("UNKNOWN_TOPIC_OR_PARTITION", -1, -1)
    assert ask(hosting, 0, index=5) == ("UNKNOWN_TOPIC_OR_PARTITION", -1, -1)
    hosting.change(id_, leader=2)
    assert ask(hosting, 0) == ("NOT_LEADER_OR_FOLLOWER", -1, -1)
