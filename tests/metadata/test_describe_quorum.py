"""DescribeQuorum over a quorum whose voters have listeners (KIP-595, KIP-836, KIP-853)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from tests.metadata.controller_harness import DIRECTORY, ControllerHarness

Request = messages.DescribeQuorumRequest


def describe(*topics: tuple[str, int], version: int = 2) -> Any:
    harness = ControllerHarness()
    voters = VoterSet.of([Voter(1, DIRECTORY, (VoterEndpoint("C", "h", 7),))])
    harness.driver.node.log.history = VoterSetHistory(VotersFrom(0, voters))
    request = Request(
        topics=[
            Request.TopicData(topic_name=name, partitions=[Request.PartitionData(partition_index=index)])
            for name, index in topics
        ]
    )
    return harness.send(ApiKey.DESCRIBE_QUORUM, request, version=version)


def test_the_leader_its_progress_and_its_listeners() -> None:
    answer = describe(("__cluster_metadata", 0))
    assert (answer.error_code, answer.topics[0].topic_name) == (0, "__cluster_metadata")
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.partition_index) == (0, 0)
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 1, 8)
    assert partition.observers == []
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.replica_directory_id, voter.log_end_offset) == (1, DIRECTORY, 8)
    assert (voter.last_fetch_timestamp, voter.last_caught_up_timestamp) == (1_000_000, 1_000_000)
    (node,) = answer.nodes
    assert node.node_id == 1
    assert [(each.name, each.host, each.port) for each in node.listeners] == [("C", "h", 7)]


@pytest.mark.parametrize("version", [0, 1])
def test_directories_and_listeners_exist_from_version_2_on(version: int) -> None:
    answer = describe(("__cluster_metadata", 0), version=version)
    assert answer.nodes == []
    assert answer.topics[0].partitions[0].current_voters[0].replica_directory_id == bytes(16)
    answer.encode(version)


@pytest.mark.parametrize("asked", [("__cluster_metadata", 1), ("a", 0)])
def test_no_other_partition_has_a_quorum(asked: tuple[str, int]) -> None:
    answer = describe(asked)
    (partition,) = answer.topics[0].partitions
    assert (partition.partition_index, partition.error_code) == (asked[1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert partition.error_message == "This server does not host this topic-partition."
    assert answer.nodes == []
    # The nodes are there as soon as one partition is.
    assert len(describe(asked, ("__cluster_metadata", 0)).nodes) == 1
