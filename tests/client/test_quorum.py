"""The quorum of controllers."""

from __future__ import annotations

import pytest

from barnabas.client.admin import Admin, Quorum, QuorumReplica
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import ZERO_UUID, Uuid
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import every_version, only

R = messages.DescribeQuorumResponse


DIRECTORY = Uuid(bytes(range(16)))


def answer(version: int = 2, **fields: object) -> R:
    partition = R.PartitionData(
        leader_id=2,
        leader_epoch=5,
        high_watermark=90,
        current_voters=[
            R.ReplicaState(
                replica_id=2,
                log_end_offset=91,
                replica_directory_id=DIRECTORY if version >= 2 else ZERO_UUID,
                last_fetch_timestamp=50_000,
                last_caught_up_timestamp=50_000,
            ),
            R.ReplicaState(
                replica_id=1, log_end_offset=90, last_fetch_timestamp=49_500, last_caught_up_timestamp=48_000
            ),
        ],
        observers=[R.ReplicaState(replica_id=0, log_end_offset=80)],
    )
    for name, value in fields.items():
        setattr(partition, name, value)
    topic = R.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    listener = R.Listener(name="CONTROLLER", host="kafka-1", port=9093)
    nodes = [R.Node(node_id=1, listeners=[listener]), R.Node(node_id=2, listeners=[])]
    return R(topics=[topic], nodes=nodes if version >= 2 else [])


@pytest.mark.parametrize("version", every_version(messages.DescribeQuorumRequest))
def test_leader_voters_and_observers(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeQuorumRequest, version)
    memory.handlers["DescribeQuorumRequest"] = lambda *_: answer(version)
    found = admin.describe_quorum()
    assert found[:3] == (2, 5, 90)
    assert [(each.id, each.log_end_offset, each.is_voter) for each in found.replicas] == [
        (1, 90, True),
        (2, 91, True),
        (0, 80, False),
    ]
    times = [(each.last_fetch_ms, each.last_caught_up_ms) for each in found.replicas]
    assert times == ([(49_500, 48_000), (50_000, 50_000), (-1, -1)] if version >= 1 else [(-1, -1)] * 3)
    assert [each.directory_id for each in found.replicas] == [None, DIRECTORY if version >= 2 else None, None]
    assert found.addresses == ({1: "kafka-1:9093"} if version >= 2 else {})


@pytest.mark.parametrize(("longer_than_ms", "silent"), [(400, [1]), (500, [])])
def test_voters_that_have_not_read_for_long(
    memory: MemoryCluster, admin: Admin, longer_than_ms: int, silent: list[int]
) -> None:
    only(memory, messages.DescribeQuorumRequest, 2)
    memory.handlers["DescribeQuorumRequest"] = lambda *_: answer()
    assert [each.id for each in admin.describe_quorum().silent_voters(longer_than_ms)] == silent


def test_without_times_nobody_is_called_silent() -> None:
    assert Quorum(2, 5, 90, [QuorumReplica(1, 0, True), QuorumReplica(2, 91, True)]).silent_voters(1) == []


def test_errors_of_the_request_and_of_the_partition_are_raised(memory: MemoryCluster, admin: Admin) -> None:
    for response in (
        R(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, topics=[]),
        answer(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        memory.handlers["DescribeQuorumRequest"] = lambda *_, response=response: response
        with pytest.raises(KafkaError):
            admin.describe_quorum()


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER])
def test_a_voter_is_added(memory: MemoryCluster, admin: Admin, error: ErrorCode) -> None:
    only(memory, messages.DescribeQuorumRequest, 2)
    memory.handlers["AddRaftVoterRequest"] = lambda *_: messages.AddRaftVoterResponse(error_code=error)
    memory.handlers["DescribeQuorumRequest"] = lambda *_: answer()
    found = admin.add_voter(1, DIRECTORY, "CONTROLLER", "kafka-1", 9093)
    assert (None if found is None else found.code) == (error or None)
    (request,) = memory.asked("AddRaftVoterRequest")
    assert (request.voter_id, request.voter_directory_id, request.cluster_id) == (1, DIRECTORY, None)
    assert [(each.name, each.host, each.port) for each in request.listeners] == [("CONTROLLER", "kafka-1", 9093)]
    assert admin.describe_quorum().listener == "CONTROLLER"


def test_a_voter_that_lags_behind_is_added_when_it_has_read_the_log(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.DescribeQuorumRequest, 2)
    lagging = "Aborted add voter operation for ReplicaKey(id=1, directoryId=x) since it is lagging behind"
    late = messages.AddRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=lagging)
    answers = [messages.AddRaftVoterResponse(), late, late]
    memory.handlers["AddRaftVoterRequest"] = lambda *_: answers.pop()
    memory.handlers["DescribeQuorumRequest"] = lambda *_: answer()
    assert admin.add_voter(1, DIRECTORY, "CONTROLLER", "kafka-1", 9093) is None
    assert answers == []
    memory.handlers["AddRaftVoterRequest"] = lambda *_: late
    found = admin.add_voter(1, DIRECTORY, "CONTROLLER", "kafka-1", 9093)
    assert found is not None
    assert found.message == lagging


def test_a_voter_is_removed_and_a_lost_answer_is_not_asked_for_again(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.DescribeQuorumRequest, 2)
    late = messages.RemoveRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    memory.handlers["RemoveRaftVoterRequest"] = lambda *_: late
    memory.handlers["DescribeQuorumRequest"] = lambda *_: answer()
    found = admin.remove_voter(0, DIRECTORY)
    assert found is not None
    assert found.code is ErrorCode.REQUEST_TIMED_OUT
    assert [(each.voter_id, each.voter_directory_id) for each in memory.asked("RemoveRaftVoterRequest")] == [
        (0, DIRECTORY)
    ]
