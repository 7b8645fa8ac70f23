"""ShareFetch on a whole node: records, waiting, sessions, quotas, and a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    DeleteTopicsRequest,
    FindCoordinatorRequest,
    ShareFetchRequest,
)
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.steps import start
from tests.api.share_cluster import (
    ACCEPT,
    BROKER_RESOURCE,
    REJECT,
    RELEASE,
    Cluster,
    Member,
    acquired,
    outcome,
)


def test_released_records_are_acquired_again_and_accepted_ones_are_not(cluster: Cluster) -> None:
    cluster.produce(*[b"%d" % number for number in range(10)])
    member = Member(cluster).join()
    answer = member.fetch()
    assert acquired(answer) == [(0, 0, 9, 1)]
    assert answer.acquisition_lock_timeout_ms == 30_000
    partition = answer.responses[0].partitions[0]
    values = [
        record.value for at, h in iter_batches(partition.records) for record in iter_records(partition.records, at)
    ]
    assert values == [b"%d" % number for number in range(10)]
    answer = member.fetch((0, 9, [ACCEPT] * 3 + [RELEASE] * 2 + [REJECT] + [ACCEPT] * 4))
    assert acquired(answer) == [(0, 3, 4, 2)], "what is released may come with the same answer"
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    assert outcome(member.acknowledge((3, 4, [ACCEPT]))) == [(0, 0)]
    assert cluster.offsets()[0] == (3, 0)
    assert acquired(member.fetch()) == []


def test_two_members_never_hold_one_record(cluster: Cluster) -> None:
    cluster.produce(*[b"x"] * 10)
    one, two = Member(cluster, "one").join(), Member(cluster, "two").join()
    assert acquired(one.fetch(max_records=4, share_acquire_mode=1)) == [(0, 0, 3, 1)]
    assert acquired(two.fetch()) == [(0, 4, 9, 1)]
    assert outcome(two.acknowledge((0, 3, [ACCEPT]))) == [(0, ErrorCode.INVALID_RECORD_STATE)]
    assert outcome(one.acknowledge((0, 3, [ACCEPT]))) == [(0, 0)]


def test_a_waiting_fetch_is_woken_by_a_release_and_by_new_records(cluster: Cluster) -> None:
    cluster.produce(b"x")
    one, two = Member(cluster, "one").join(), Member(cluster, "two").join()
    one.fetch()
    two.fetch()
    loop, node = cluster.node.loop, cluster.node
    for wake in (lambda: one.acknowledge((0, 0, [RELEASE])), lambda: cluster.produce(b"y")):
        request = ShareFetchRequest(
            group_id="g",
            member_id="two",
            share_session_epoch=two.session_epoch,
            max_wait_ms=60_000,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
        )
        two.session_epoch += 1
        route = node.dispatcher.route(78)
        waiting = start(route.handle(RequestContext(node.server.services, node.connection, 78, 2), request), loop)
        assert not waiting.done()
        wake()
        answer = loop.run_until_complete(asyncio.wait_for(waiting, 5))
        assert len(acquired(answer)) == 1
        two.acknowledge((0, 0, [ACCEPT])) if acquired(answer)[0][1] == 0 else None


def test_an_expired_lock_lets_another_member_acquire(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.configure(BROKER_RESOURCE, "")
        node = cluster.node
        settings = node.server.services.share.partitions.settings
        settings.lock_duration_ms = lambda group_id: 20  # type: ignore[method-assign]
        cluster.produce(b"x")
        one, two = Member(cluster, "one").join(), Member(cluster, "two").join()
        assert acquired(one.fetch()) == [(0, 0, 0, 1)]
        assert acquired(two.fetch(wait_ms=5_000)) == [(0, 0, 0, 2)]
        assert outcome(one.acknowledge((0, 0, [ACCEPT]))) == [(0, ErrorCode.INVALID_RECORD_STATE)]
    finally:
        cluster.node.close()


def test_an_unknown_partition_and_an_unknown_topic_id_are_rejected(cluster: Cluster) -> None:
    member = Member(cluster).join()
    answer = member.fetch(partitions=(0, 7))
    assert [(p.partition_index, p.error_code) for t in answer.responses for p in t.partitions if p.error_code] == [
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]
    answer = Member(cluster, "n").fetch(topic_id=b"\7" * 16, partitions=(0,))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_that_was_never_assigned_cannot_be_read(cluster: Cluster) -> None:
    """A member that reads what it was never assigned is told that something is wrong, not given records."""
    cluster.node.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=["unheard-of:x:0"]), 6)
    answer = Member(cluster, group="unheard-of").fetch(wait_ms=200)
    assert {p.error_code for t in answer.responses for p in t.partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_a_wrong_session_epoch_is_rejected(cluster: Cluster) -> None:
    member = Member(cluster).join()
    assert member.acknowledge(epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch((0, 0, [ACCEPT])).error_code == ErrorCode.INVALID_REQUEST, "not in the first request"
    assert member.fetch().error_code == 0
    assert member.fetch(epoch=5).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge(epoch=5).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch().error_code == 0
    assert member.fetch(epoch=0).error_code == 0, "a new session replaces the old one"


def test_the_end_of_a_session_releases_its_records(cluster: Cluster) -> None:
    cluster.produce(b"x", b"y")
    one, two = Member(cluster, "one").join(), Member(cluster, "two").join()
    one.fetch()
    two.fetch()
    assert outcome(one.acknowledge((0, 0, [ACCEPT]), epoch=-1)) == [(0, 0)]
    assert acquired(two.fetch()) == [(0, 1, 1, 2)]
    assert one.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_closed_connection_releases_its_records(cluster: Cluster) -> None:
    cluster.produce(b"x")
    one, two = Member(cluster, "one").join(), Member(cluster, "two").join()
    one.fetch()
    connection = cluster.node.connection
    cluster.node.connection = type(connection)("other", "PLAINTEXT", "10.0.0.8", 1, connection.local_host, 1)
    assert acquired(two.fetch()) == []
    connection.closed()
    assert acquired(two.fetch()) == [(0, 0, 0, 2)]
    assert one.fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    cluster.node.connection.closed()
    assert len(cluster.node.server.services.share.partitions) == 0, "nobody of the group is left"


def test_a_session_beyond_the_limit_is_rejected(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.node.server.services.share.partitions.sessions._slots = 1
    try:
        one, two = Member(cluster, "one").join(), Member(cluster, "two").join()
        assert one.fetch().error_code == 0
        assert two.fetch().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert one.fetch(epoch=0).error_code == 0, "its own slot"
    finally:
        cluster.node.close()


def test_a_later_answer_of_a_session_has_only_news(cluster: Cluster) -> None:
    cluster.produce(b"x")
    member = Member(cluster).join()
    first = member.fetch()
    assert [p.partition_index for t in first.responses for p in t.partitions] == [0], "the first whose state has come"
    other = Member(cluster, "other").join().fetch()
    assert sorted(p.partition_index for t in other.responses for p in t.partitions) == [0, 1], (
        "a new session is told all"
    )
    again = member.fetch((0, 0, [ACCEPT]), partitions=(0,))
    assert [p.partition_index for t in again.responses for p in t.partitions] == [0]
    assert member.fetch(partitions=()).responses == []
    cluster.produce(b"z", index=1)
    assert acquired(member.fetch(partitions=(), forget=(1,))) == []


def test_after_a_crash_acknowledged_records_stay_so_and_the_others_are_delivered_again(cluster: Cluster) -> None:
    cluster.produce(*[b"x"] * 10)
    member = Member(cluster).join()
    member.fetch()
    assert outcome(member.acknowledge((0, 1, [ACCEPT]), (4, 5, [ACCEPT]), (6, 6, [RELEASE]), (7, 7, [REJECT]))) == [
        (0, 0)
    ]
    cluster.crash()
    member.session_epoch = 0
    member.heartbeat()
    assert acquired(member.fetch(batch_size=1)) == [(0, 2, 3, 1), (0, 6, 6, 2), (0, 8, 9, 1)]
    assert outcome(member.acknowledge((2, 9, [ACCEPT]))) == [(0, ErrorCode.INVALID_RECORD_STATE)], "4, 5 are finished"
    assert outcome(member.acknowledge((2, 3, [ACCEPT]), (6, 6, [ACCEPT]), (8, 9, [ACCEPT]))) == [(0, 0)]
    assert cluster.offsets()[0][1] == 0


def test_a_new_group_starts_at_the_end_by_default(cluster: Cluster) -> None:
    cluster.produce(b"old")
    cluster.node.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["late"]), 6)
    member = Member(cluster, group="late").join()
    assert acquired(member.fetch()) == []
    cluster.produce(b"new")
    assert acquired(member.fetch()) == [(0, 1, 1, 1)]


def test_acquired_records_count_against_the_fetch_quota(cluster: Cluster) -> None:
    entity = AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name="test")
    limit = AlterClientQuotasRequest.OpData(key="consumer_byte_rate", value=1_000.0)
    entry = AlterClientQuotasRequest.EntryData(entity=[entity], ops=[limit])
    assert cluster.node.ask(AlterClientQuotasRequest(entries=[entry])).entries[0].error_code == 0
    member = Member(cluster).join()
    assert member.fetch().throttle_time_ms == 0
    cluster.produce(b"x" * 50_000)
    answer = member.fetch()
    assert acquired(answer) == [(0, 0, 0, 1)]
    assert answer.throttle_time_ms > 0


def test_the_share_partitions_of_a_deleted_topic_are_forgotten(cluster: Cluster) -> None:
    member = Member(cluster).join()
    member.fetch()
    cluster.node.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="q")], timeout_ms=1_000))
    assert cluster.offsets() == {}
    assert len(cluster.node.server.services.share.partitions) == 0
