"""Share groups over the wire, on a whole node: members, records, sessions, offsets, dead letters, and a crash in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.group.share.group import ShareGroup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    AlterShareGroupOffsetsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitializeShareGroupStateRequest,
    ListGroupsRequest,
    ProduceRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    UpdateFeaturesRequest,
    WriteShareGroupStateRequest,
)
from barnabas.protocol.primitives import uuid_to_str
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.api.quiet_clock import QuietClock
from tests.api.serving import Serving

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE = 32, 4, 2
HEARTBEAT_MS = 5_000
SETTINGS = {"offsets_topic_num_partitions": "1", "share_coordinator_state_topic_num_partitions": "1"}


class Cluster:
    """A node with a topic `q`, and the share groups of one client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = Serving(folder, loop=QuietClock(), **SETTINGS)
        self.node.create_topic("q", 2)
        self.configure(GROUP_RESOURCE, "g", share_auto_offset_reset="earliest")
        self.node.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)

    @property
    def topic_id(self) -> bytes:
        return bytes(self.node.server.services.image().topics.by_name["q"].topic_id)

    def crash(self) -> None:
        """The node dies and another comes up over its files."""
        node = self.node
        for listener in node.server.listeners:
            node.loop.run_until_complete(listener.stop())
        node.server.log_manager.close(clean=False)
        node.loop.run_until_complete(node.loop.shutdown_default_executor())
        node.loop.close()
        now_ms = node.now_ms
        self.node = Serving(self.folder, loop=QuietClock(), **SETTINGS)
        self.node.now_ms = now_ms + 1_000
        self.until(lambda: self.node.server.coordinators.group._runtime.active_partitions())

    def until(self, condition: Callable[[], Any]) -> None:
        """Let the loop turn, and its clock go on, until something is so."""
        deadline = self.node.loop.time() + 10
        while not condition():
            assert self.node.loop.time() < deadline
            self.node.loop.run_until_complete(asyncio.sleep(0.001))

    def begun(self, group: str = "g") -> Any:
        """What the group has state for."""
        shard = self.node.server.coordinators.group._runtime._contexts[0].shard
        known = shard.groups.get(group)
        return known.state_partitions.initialized if isinstance(known, ShareGroup) else None

    def configure(self, kind: int, name: str, **values: str) -> None:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(name=key.replace("_", "."), value=value)
                for key, value in values.items()
            ],
        )
        answer = self.node.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        assert answer.responses[0].error_code == 0, answer

    def produce(self, *values: bytes, index: int = 0) -> None:
        partition = ProduceRequest.PartitionProduceData(
            index=index, records=build_batch([(1, None, value, []) for value in values])
        )
        topic = ProduceRequest.TopicProduceData(topic_id=self.topic_id, partition_data=[partition])
        answer = self.node.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic]))
        assert answer.responses[0].partition_responses[0].error_code == 0

    def offsets(self, group: str = "g") -> dict[int, tuple[int, int]]:
        """Start offset and lag of each partition that has state."""
        asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        (answer,) = self.node.ask(DescribeShareGroupOffsetsRequest(groups=[asked])).groups
        assert answer.error_code == 0
        return {p.partition_index: (p.start_offset, p.lag) for topic in answer.topics for p in topic.partitions}


class Member:
    """One member of a share group."""

    def __init__(self, cluster: Cluster, member_id: str = "m", group: str = "g") -> None:
        self.cluster = cluster
        self.member_id = member_id
        self.group = group
        self.epoch = 0
        self.session_epoch = 0
        self.assigned: dict[bytes, list[int]] = {}

    def heartbeat(self, epoch: int | None = None, topics: list[str] | None = None) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            subscribed_topic_names=topics,
        )
        answer = self.cluster.node.ask(request)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {bytes(t.topic_id): t.partitions for t in answer.assignment.topic_partitions}
        return answer

    def join(self, *topics: str) -> Member:
        self.heartbeat(0, list(topics or ("q",)))
        self.cluster.until(lambda: self.cluster.begun(self.group))
        for _ in range(3):
            if self.assigned:
                break
            self.cluster.node.now_ms += HEARTBEAT_MS
            self.heartbeat()
        assert self.assigned
        return self

    def fetch(
        self,
        *acknowledgements: tuple[int, int, list[int]],
        version: int = 2,
        epoch: int | None = None,
        partitions: tuple[int, ...] = (0, 1),
        forget: tuple[int, ...] = (),
        topic_id: bytes | None = None,
        wait_ms: int = 10,
        **fields: Any,
    ) -> Any:
        """A ShareFetch of the session, with acknowledgements for partition 0."""
        topic_id = self.cluster.topic_id if topic_id is None else topic_id
        batches = [
            ShareFetchRequest.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in acknowledgements
        ]
        limits = {"max_wait_ms": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch if epoch is None else epoch,
            topics=[
                ShareFetchRequest.FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        ShareFetchRequest.FetchPartition(
                            partition_index=index, acknowledgement_batches=batches if index == 0 else []
                        )
                        for index in partitions
                    ],
                )
            ],
            forgotten_topics_data=[ShareFetchRequest.ForgottenTopic(topic_id=topic_id, partitions=list(forget))],
            **(limits | fields),
        )
        answer = self.cluster.node.ask(request, version)
        if answer.error_code == 0 and epoch is None:
            self.session_epoch += 1
        return answer

    def acknowledge(self, *batches: tuple[int, int, list[int]], epoch: int | None = None, **fields: Any) -> Any:
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch if epoch is None else epoch,
            topics=[
                ShareAcknowledgeRequest.AcknowledgeTopic(
                    topic_id=self.cluster.topic_id,
                    partitions=[
                        ShareAcknowledgeRequest.AcknowledgePartition(
                            partition_index=0,
                            acknowledgement_batches=[
                                ShareAcknowledgeRequest.AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=types
                                )
                                for first, last, types in batches
                            ],
                        )
                    ],
                )
            ],
            **fields,
        )
        answer = self.cluster.node.ask(request)
        if answer.error_code == 0 and epoch is None:
            self.session_epoch += 1
        return answer


def acquired(answer: Any) -> list[tuple[int, int, int, int]]:
    """Partition, first offset, last offset and delivery count of all that a ShareFetch gave."""
    assert answer.error_code == 0, answer
    return [
        (partition.partition_index, part.first_offset, part.last_offset, part.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for part in partition.acquired_records
    ]


def outcome(answer: Any) -> list[tuple[int, int]]:
    """Partition and error code of a ShareAcknowledge."""
    assert answer.error_code == 0, answer
    return [(p.partition_index, p.error_code) for topic in answer.responses for p in topic.partitions]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.node.close()


# -- members -------------------------------------------------------------------------------------------------------------


def test_a_member_gets_partitions_with_the_heartbeat_after_their_state_is_begun(cluster: Cluster) -> None:
    member = Member(cluster)
    first = member.heartbeat(0, ["q"])
    assert (first.error_code, first.heartbeat_interval_ms, first.assignment.topic_partitions) == (0, HEARTBEAT_MS, [])
    cluster.until(cluster.begun)
    cluster.node.now_ms += HEARTBEAT_MS
    assert member.heartbeat().assignment.topic_partitions[0].partitions == [0, 1]
    cluster.node.now_ms += HEARTBEAT_MS
    assert member.heartbeat().assignment is None, "nothing has changed"
    assert member.heartbeat(topics=["q"]).assignment is not None, "a full request gets a full answer"


def test_members_share_partitions_when_there_are_more_of_them(cluster: Cluster) -> None:
    members = [Member(cluster, f"m{number}").join() for number in range(4)]
    for _ in range(3):
        cluster.node.now_ms += HEARTBEAT_MS
        for member in members:
            member.heartbeat()
    given = sorted(index for member in members for index in member.assigned[cluster.topic_id])
    assert given == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "x" * 37}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 7}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_heartbeats_that_are_refused(cluster: Cluster, fields: dict[str, Any], code: ErrorCode) -> None:
    good: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["q"]}
    assert cluster.node.ask(ShareGroupHeartbeatRequest(**(good | fields))).error_code == code


def test_a_member_with_a_wrong_epoch_is_fenced(cluster: Cluster) -> None:
    member = Member(cluster).join()
    for epoch in (member.epoch + 1, member.epoch - 2):
        assert member.heartbeat(epoch).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert Member(cluster, "stranger").heartbeat(3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.heartbeat(0, ["q"]).error_code == 0, "joining again is always allowed"


def test_groups_of_other_types_keep_their_ids_apart(cluster: Cluster) -> None:
    Member(cluster).join()
    listed = cluster.node.ask(ListGroupsRequest()).groups
    assert [(g.group_id, g.group_type, g.group_state, g.protocol_type) for g in listed] == [
        ("g", "share", "Stable", "share")
    ]
    described = cluster.node.ask(ShareGroupDescribeRequest(group_ids=["g", "none"])).groups
    assert (described[0].group_state, described[0].assignor_name, len(described[0].members)) == ("Stable", "simple", 1)
    assert described[0].members[0].assignment.topic_partitions[0].topic_name == "q"
    assert (described[1].error_code, described[1].error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group none not found.",
    )


def test_a_member_that_leaves_empties_the_group(cluster: Cluster) -> None:
    member = Member(cluster).join()
    answer = member.heartbeat(-1)
    assert (answer.error_code, answer.member_epoch) == (0, -1)
    assert cluster.node.ask(ListGroupsRequest()).groups[0].group_state == "Empty"


def test_a_group_outlives_its_coordinator(cluster: Cluster) -> None:
    member = Member(cluster).join()
    cluster.crash()
    assert member.heartbeat().error_code == 0
    assert cluster.node.ask(ListGroupsRequest()).groups[0].group_state == "Stable"


def test_a_group_is_full(tmp_path: Path) -> None:
    node = Serving(tmp_path, group_share_max_size="1", **SETTINGS)
    try:
        node.create_topic("q")
        node.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
        request: dict[str, Any] = {"group_id": "g", "member_epoch": 0, "subscribed_topic_names": ["q"]}
        assert node.ask(ShareGroupHeartbeatRequest(member_id="a", **request)).error_code == 0
        second = node.ask(ShareGroupHeartbeatRequest(member_id="b", **request))
        assert second.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert node.ask(ShareGroupHeartbeatRequest(member_id="a", **request)).error_code == 0
    finally:
        node.close()


def test_without_the_feature_nothing_is_served(cluster: Cluster) -> None:
    Member(cluster, "before").join().fetch()
    partitions = cluster.node.server.services.share.partitions
    assert len(partitions) == 2
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    assert cluster.node.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code == 0
    assert len(partitions) == 0
    member = Member(cluster)
    assert member.heartbeat(0, ["q"]).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert member.fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert member.acknowledge().error_code == ErrorCode.UNSUPPORTED_VERSION


# -- fetching and acknowledging ------------------------------------------------------------------------------------------


def test_records_are_given_acknowledged_and_given_again(cluster: Cluster) -> None:
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
        from barnabas.api.context import RequestContext

        waiting = route.handle(RequestContext(node.server.services, node.connection, 78, 2), request)
        assert not waiting.done()
        wake()
        answer = loop.run_until_complete(asyncio.wait_for(waiting, 5))
        assert len(acquired(answer)) == 1
        two.acknowledge((0, 0, [ACCEPT])) if acquired(answer)[0][1] == 0 else None


def test_a_lock_runs_out(tmp_path: Path) -> None:
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
def test_acknowledgements_that_make_no_sense(
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


def test_unknown_partitions(cluster: Cluster) -> None:
    member = Member(cluster).join()
    answer = member.fetch(partitions=(0, 7))
    assert [(p.partition_index, p.error_code) for t in answer.responses for p in t.partitions if p.error_code] == [
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]
    answer = Member(cluster, "n").fetch(topic_id=b"\7" * 16, partitions=(0,))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_only_what_is_assigned_has_state(cluster: Cluster) -> None:
    """A member that reads what it was never assigned is told that something is wrong, not given records."""
    cluster.node.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=["unheard-of:x:0"]), 6)
    answer = Member(cluster, group="unheard-of").fetch(wait_ms=200)
    assert {p.error_code for t in answer.responses for p in t.partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}


# -- sessions ------------------------------------------------------------------------------------------------------------


def test_session_epochs(cluster: Cluster) -> None:
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


def test_a_session_that_ends_gives_its_records_back(cluster: Cluster) -> None:
    cluster.produce(b"x", b"y")
    one, two = Member(cluster, "one").join(), Member(cluster, "two").join()
    one.fetch()
    two.fetch()
    assert outcome(one.acknowledge((0, 0, [ACCEPT]), epoch=-1)) == [(0, 0)]
    assert acquired(two.fetch()) == [(0, 1, 1, 2)]
    assert one.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_connection_that_closes_gives_its_records_back(cluster: Cluster) -> None:
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


def test_there_are_so_many_sessions(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.node.server.services.share.partitions.sessions._slots = 1
    try:
        one, two = Member(cluster, "one").join(), Member(cluster, "two").join()
        assert one.fetch().error_code == 0
        assert two.fetch().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert one.fetch(epoch=0).error_code == 0, "its own slot"
    finally:
        cluster.node.close()


def test_a_session_is_told_what_is_new_only(cluster: Cluster) -> None:
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


# -- what survives a crash -----------------------------------------------------------------------------------------------


def test_after_a_crash_what_was_acknowledged_stays_so_and_the_rest_comes_again(cluster: Cluster) -> None:
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


# -- isolation -----------------------------------------------------------------------------------------------------------


def test_a_new_group_begins_at_the_end(cluster: Cluster) -> None:
    cluster.produce(b"old")
    cluster.node.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["late"]), 6)
    member = Member(cluster, group="late").join()
    assert acquired(member.fetch()) == []
    cluster.produce(b"new")
    assert acquired(member.fetch()) == [(0, 1, 1, 1)]


# -- offsets -------------------------------------------------------------------------------------------------------------


def alter(cluster: Cluster, offset: int, topic: str = "q", index: int = 0, group: str = "g") -> Any:
    partition = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
        partition_index=index, start_offset=offset
    )
    asked = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[partition])
    return cluster.node.ask(AlterShareGroupOffsetsRequest(group_id=group, topics=[asked]))


def test_offsets_of_an_empty_group_are_altered(cluster: Cluster) -> None:
    cluster.produce(*[b"x"] * 10)
    member = Member(cluster).join()
    member.fetch()
    member.acknowledge((0, 9, [ACCEPT]), epoch=-1)
    assert alter(cluster, 5).error_code == ErrorCode.NON_EMPTY_GROUP
    member.heartbeat(-1)
    cluster.node.connection.closed()
    assert alter(cluster, 5).responses[0].partitions[0].error_code == 0
    assert cluster.offsets()[0] == (5, 5)
    again = Member(cluster, "again").join()
    assert acquired(again.fetch()) == [(0, 5, 9, 1)]


def test_altering_offsets_makes_a_group(cluster: Cluster) -> None:
    cluster.produce(*[b"x"] * 3)
    assert alter(cluster, 1, group="new").responses[0].partitions[0].error_code == 0
    assert cluster.offsets("new") == {0: (1, 2)}
    assert alter(cluster, 1, index=9).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(cluster, 1, topic="no").responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(cluster, 1, group="").error_code == ErrorCode.INVALID_GROUP_ID


def test_offsets_of_topics_are_deleted(cluster: Cluster) -> None:
    def delete(*topics: str) -> Any:
        asked = [DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
        return cluster.node.ask(DeleteShareGroupOffsetsRequest(group_id="g", topics=asked))

    assert delete("q").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    member = Member(cluster).join()
    assert delete("q").error_code == ErrorCode.NON_EMPTY_GROUP
    member.heartbeat(-1)
    cluster.node.create_topic("other")
    answer = delete("q", "other", "missing")
    assert [(t.topic_name, t.error_code) for t in answer.responses] == [
        ("q", 0),
        ("other", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert cluster.offsets() == {}


def test_a_deleted_group_leaves_nothing_behind(cluster: Cluster) -> None:
    cluster.produce(b"x")
    member = Member(cluster).join()
    assert cluster.node.ask(DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    member.fetch()
    member.acknowledge((0, 0, [ACCEPT]), epoch=-1)
    member.heartbeat(-1)
    cluster.node.connection.closed()
    assert cluster.node.ask(DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == 0
    assert cluster.node.ask(ListGroupsRequest()).groups == []
    again = Member(cluster, "again").join()
    assert acquired(again.fetch()) == [(0, 0, 0, 1)], "the group begins at its beginning"


def test_describing_what_is_not_there(cluster: Cluster) -> None:
    topic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    cluster.node.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{uuid_to_str(cluster.topic_id)}:0"]), 6)
    asked = group(group_id="g", topics=[topic(topic_name="q", partitions=[0]), topic(topic_name="no", partitions=[3])])
    (answer,) = cluster.node.ask(DescribeShareGroupOffsetsRequest(groups=[asked])).groups
    assert [(t.topic_name, p.start_offset, p.lag, p.error_code) for t in answer.topics for p in t.partitions] == [
        ("q", -1, -1, 0),
        ("no", -1, -1, 0),
    ]
    (nothing,) = cluster.node.ask(DescribeShareGroupOffsetsRequest(groups=[group(group_id="g", topics=[])])).groups
    assert (nothing.error_code, nothing.topics) == (0, [])


def test_a_deleted_topic_is_forgotten(cluster: Cluster) -> None:
    from barnabas.protocol.messages import DeleteTopicsRequest

    member = Member(cluster).join()
    member.fetch()
    cluster.node.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="q")], timeout_ms=1_000))
    assert cluster.offsets() == {}
    assert len(cluster.node.server.services.share.partitions) == 0


# -- dead letters --------------------------------------------------------------------------------------------------------


def letters(cluster: Cluster) -> list[tuple[bytes | None, dict[str, bytes | None]]]:
    cluster.until(lambda: cluster.offsets()[0][1] == 0)
    replicas = cluster.node.server.replica_manager
    if "dlq.q" not in replicas.topics:
        return []
    return [
        (record.value, dict(record.headers))
        for chunk in replicas.read_internal("dlq.q", 0, 0)
        for record in iter_records(chunk)
    ]


def dead_letter_cluster(cluster: Cluster, **settings: str) -> Member:
    cluster.node.create_topic("dlq.q", 1, errors_deadletterqueue_group_enable="true")
    cluster.configure(GROUP_RESOURCE, "g", errors_deadletterqueue_topic_name="dlq.q", **settings)
    cluster.produce(b"good", b"bad", b"ugly")
    member = Member(cluster).join()
    member.fetch()
    return member


def test_rejected_records_become_dead_letters(cluster: Cluster) -> None:
    member = dead_letter_cluster(cluster, errors_deadletterqueue_copy_record_enable="true")
    assert outcome(member.acknowledge((0, 2, [ACCEPT, REJECT, ACCEPT]))) == [(0, 0)]
    assert letters(cluster) == [
        (
            b"bad",
            {
                "__dlq.errors.topic": b"q",
                "__dlq.errors.partition": b"0",
                "__dlq.errors.offset": b"1",
                "__dlq.errors.group": b"g",
                "__dlq.errors.delivery.count": b"1",
                "__dlq.errors.message": b"Offset rejected by client.",
            },
        )
    ]
    assert cluster.offsets()[0][1] == 0


def test_without_copying_a_letter_has_headers_alone(cluster: Cluster) -> None:
    member = dead_letter_cluster(cluster)
    member.acknowledge((0, 2, [ACCEPT, REJECT, ACCEPT]))
    assert [value for value, _ in letters(cluster)] == [None]


def test_records_delivered_too_often_become_dead_letters(cluster: Cluster) -> None:
    member = dead_letter_cluster(cluster, share_delivery_count_limit="2")
    member.acknowledge((0, 0, [RELEASE]), (1, 2, [ACCEPT]))
    assert acquired(member.fetch()) == [(0, 0, 0, 2)]
    member.acknowledge((0, 0, [RELEASE]))
    ((_, headers),) = letters(cluster)
    assert headers["__dlq.errors.message"] == b"Offset delivery count exceeded the threshold."
    assert headers["__dlq.errors.delivery.count"] == b"2"


def test_a_topic_that_does_not_allow_letters_gets_none_and_the_group_goes_on(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    member = dead_letter_cluster(cluster)
    cluster.configure(TOPIC_RESOURCE, "dlq.q", errors_deadletterqueue_group_enable="false")
    member.acknowledge((0, 2, [REJECT]))
    assert letters(cluster) == []
    assert "does not allow dead letters" in caplog.text
    assert cluster.offsets()[0][1] == 0


def test_a_missing_topic_is_made_when_that_is_allowed(cluster: Cluster) -> None:
    cluster.configure(GROUP_RESOURCE, "g", errors_deadletterqueue_topic_name="dlq.q")
    cluster.configure(BROKER_RESOURCE, "", errors_deadletterqueue_auto_create_topics_enable="true")
    cluster.produce(b"x")
    member = Member(cluster).join()
    member.fetch()
    member.acknowledge((0, 0, [REJECT]))
    assert len(letters(cluster)) == 1


def test_a_letter_that_was_on_its_way_in_a_crash_is_written_after_it(cluster: Cluster) -> None:
    member = dead_letter_cluster(cluster)
    writer = cluster.node.server.services.share.partitions.settings.dead_letters
    assert writer is not None
    writer.write = lambda *a, **k: cluster.node.loop.create_future()  # type: ignore[method-assign]
    assert outcome(member.acknowledge((0, 0, [REJECT]), (1, 2, [ACCEPT]))) == [(0, 0)]
    cluster.crash()
    member.session_epoch = 0
    assert acquired(member.fetch()) == [], "a record on its way to the dead letters is not delivered"
    ((_, headers),) = letters(cluster)
    assert headers["__dlq.errors.offset"] == b"0"
    assert cluster.offsets()[0][1] == 0


# -- quotas --------------------------------------------------------------------------------------------------------------


def test_records_given_are_charged_to_the_fetch_quota(cluster: Cluster) -> None:
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


# -- the share coordinator's requests ------------------------------------------------------------------------------------


def test_a_share_partition_is_begun_written_read_and_deleted_over_the_wire(cluster: Cluster) -> None:
    node, topic_id = cluster.node, cluster.topic_id
    found = node.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{uuid_to_str(topic_id)}:0"]), 6)
    assert found.coordinators[0].error_code == 0
    cluster.until(lambda: node.server.coordinators.share.is_in_use)
    cluster.until(lambda: node.server.coordinators.share._runtime.active_partitions())  # type: ignore[union-attr]

    def ask(kind: Any, topic: Any, **fields: Any) -> Any:
        return (
            node.ask(
                kind(
                    group_id="g",
                    topics=[topic(topic_id=topic_id, partitions=[kind.PartitionData(partition=0, **fields)])],
                )
            )
            .results[0]
            .partitions[0]
        )

    Init, Read, Write = InitializeShareGroupStateRequest, ReadShareGroupStateRequest, WriteShareGroupStateRequest
    Summary, Delete = ReadShareGroupStateSummaryRequest, DeleteShareGroupStateRequest
    refused = ask(Read, Read.ReadStateData, leader_epoch=0)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    )
    assert ask(Init, Init.InitializeStateData, state_epoch=1, start_offset=-1).error_code == 0
    batch = Write.StateBatch(first_offset=0, last_offset=4, delivery_state=2, delivery_count=1)
    written = ask(
        Write,
        Write.WriteStateData,
        state_epoch=1,
        leader_epoch=0,
        start_offset=0,
        delivery_complete_count=5,
        state_batches=[batch],
    )
    assert written.error_code == 0
    read = ask(Read, Read.ReadStateData, leader_epoch=0)
    assert (read.start_offset, read.state_epoch, read.state_batches[0].last_offset) == (0, 1, 4)
    summary = ask(Summary, Summary.ReadStateSummaryData, leader_epoch=0)
    assert (summary.start_offset, summary.delivery_complete_count) == (0, 5)
    assert ask(Delete, Delete.DeleteStateData).error_code == 0
    assert ask(Summary, Summary.ReadStateSummaryData, leader_epoch=0).start_offset == -1
    assert node.ask(Delete(group_id="", topics=[])).results == []
