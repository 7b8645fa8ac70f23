"""A whole node with a topic `q`, and members of share groups as clients of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.group.share.group import ShareGroup
from barnabas.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from barnabas.records.builder import build_batch
from tests.api.quiet_clock import QuietClock
from tests.api.served_node import Serving
from tests.at_once import at_once
from tests.coordinator.shards import runtime_of, shard_of

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE = 32, 4, 2
HEARTBEAT_MS = 5_000
SETTINGS: dict[str, Any] = {"offsets_topic_num_partitions": "1", "share_coordinator_state_topic_num_partitions": "1"}


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
        at_once(node.server.log_manager.close(clean=False))
        node.loop.run_until_complete(node.loop.shutdown_default_executor())
        node.loop.close()
        now_ms = node.now_ms
        self.node = Serving(self.folder, loop=QuietClock(), **SETTINGS)
        self.node.now_ms = now_ms + 1_000
        self.until(lambda: runtime_of(self.node.server.coordinators.group).active_partitions())

    def until(self, condition: Callable[[], Any]) -> None:
        """Let the loop turn, and its clock go on, until something is so."""
        deadline = self.node.loop.time() + 10
        while not condition():
            assert self.node.loop.time() < deadline
            self.node.loop.run_until_complete(asyncio.sleep(0.001))

    def begun(self, group: str = "g") -> Any:
        """What the group has state for."""
        shard = shard_of(self.node.server.coordinators.group)
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


def alter(cluster: Cluster, offset: int, topic: str = "q", index: int = 0, group: str = "g") -> Any:
    partition = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
        partition_index=index, start_offset=offset
    )
    asked = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[partition])
    return cluster.node.ask(AlterShareGroupOffsetsRequest(group_id=group, topics=[asked]))
