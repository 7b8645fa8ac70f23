"""The records of streams groups, byte for byte as Apache Kafka 4.3.1 wrote them for the same heartbeats."""

from __future__ import annotations

import pytest

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.streams import records
from barnabas.group.streams.member import MemberState, StreamsGroupMember, state_of
from barnabas.group.streams.tasks import TasksTuple, TasksTupleWithEpochs
from barnabas.group.streams.topology import topology_value
from barnabas.protocol.messages import StreamsGroupCurrentMemberAssignmentValue
from tests.group.streams.host import Request, info

G = "app"
BOTH = frozenset({0, 1})
MEMBER = StreamsGroupMember(
    "a",
    member_epoch=2,
    previous_member_epoch=0,
    client_id="barnabas",
    client_host="/127.0.0.1",
    rebalance_timeout_ms=60_000,
    topology_epoch=0,
    process_id="p1",
    user_endpoint=("h1", 1),
    assigned=TasksTupleWithEpochs({"0": {1: 2, 0: 2}, "1": {0: 2, 1: 2}}),
)
TOPOLOGY = Request.Topology(
    epoch=0,
    subtopologies=[
        Request.Subtopology(
            subtopology_id="0", source_topics=["in1795269338"], repartition_sink_topics=["rep1795269338"]
        ),
        Request.Subtopology(
            subtopology_id="1",
            repartition_source_topics=[info("rep1795269338")],
            state_changelog_topics=[info("chg1795269338")],
        ),
    ],
)
WRITTEN = {
    "member": (
        records.member_metadata_record(G, MEMBER),
        "0000 00 00 096261726e61626173 0b2f3132372e302e302e31 0000ea60 00000000 037031 01 036831 0001 00 01 00",
    ),
    "topology": (
        records.topology_record(G, topology_value(TOPOLOGY)),
        "0000 00000000 03"
        "0230 020d696e31373935323639333338 01 01 020e72657031373935323639333338 01 01 00"
        "0231 01 01 020e63686731373935323639333338 00000000 0000 01 00 01"
        "020e72657031373935323639333338 00000000 0000 01 00 01 00 00",
    ),
    "group": (
        records.group_metadata_record(
            G,
            2,
            metadata_hash=-0x605F55875D3D088D,
            validated_topology_epoch=0,
            assignment_configs={"num.standby.replicas": "1"},
        ),
        "0000 00000002 9fa0aa78a2c2f773 02 00 04 00000000 01 19 02 156e756d2e7374616e6462792e7265706c69636173 0231 00",
    ),
    "target": (
        records.target_assignment_record(G, "a", TasksTuple({"1": BOTH, "0": BOTH})),
        "0000 03 0230 03 00000000 00000001 00 0231 03 00000000 00000001 00 01 01 00",
    ),
    "target epoch": (
        records.target_assignment_metadata_record(G, 2, 0x1A1FE64336C),
        "0000 00000002 01 00 08 000001a1fe64336c",
    ),
    "current": (
        records.current_assignment_record(G, MEMBER),
        "0000 00000002 00000000 01 03"
        "0230 03 00000000 00000001 01 00 09 03 00000002 00000002"
        "0231 03 00000000 00000001 01 00 09 03 00000002 00000002 01 01 01 01 01 00",
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_as_kafka_writes_them(name: str) -> None:
    record, expected = WRITTEN[name]
    key, value = RecordSerde("group").encode(record)
    assert value is not None
    assert value.hex() == expected.replace(" ", "")
    assert RecordSerde("group").decode(key, value) == record


def test_tombstones_of_a_member_are_in_the_order_of_its_end() -> None:
    tombstones: list[CoordinatorRecord] = records.removed_member_tombstones(G, "a")
    assert [(record.type_id, record.value) for record in tombstones] == [(22, None), (21, None), (19, None)]


def test_a_member_comes_back_from_its_records() -> None:
    again = StreamsGroupMember("a").with_metadata(records.member_metadata_record(G, MEMBER).value)
    assert again.with_assignment(records.current_assignment_record(G, MEMBER).value) == MEMBER


def test_tasks_without_assignment_epochs_are_as_old_as_the_member() -> None:
    Value = StreamsGroupCurrentMemberAssignmentValue
    value = Value(member_epoch=7, state=1, active_tasks=[Value.TaskIds(subtopology_id="0", partitions=[0, 1])])
    assert StreamsGroupMember("a").with_assignment(value).assigned.active == {"0": {0: 7, 1: 7}}


def test_a_state_of_a_newer_broker_is_unknown() -> None:
    assert [state_of(value) for value in (1, 2, 3, 9)] == [*list(MemberState)[:3], MemberState.UNKNOWN]
