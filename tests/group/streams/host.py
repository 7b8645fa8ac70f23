"""A group coordinator with streams groups, on an in-memory log, in virtual time, with topics as a test wants them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.config.config_table import config_schema
from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.group import Group
from barnabas.group.group_config import GroupConfigs, GroupCoordinatorConfig
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import shard_factory
from barnabas.group.sender import Sender
from barnabas.group.streams import requests
from barnabas.group.streams.group import StreamsGroup
from barnabas.group.streams.heartbeat import StreamsHeartbeatResult
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import messages
from barnabas.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from barnabas.records.record import iter_records
from barnabas.steps import start
from tests.coordinator.internal_topic import InternalTopic
from tests.coordinator.virtual_loop import VirtualLoop

Request = StreamsGroupHeartbeatRequest
GROUP = "app"


def info(name: str, partitions: int = 0, **configs: str) -> Request.TopicInfo:
    entries = [Request.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return Request.TopicInfo(name=name, partitions=partitions, topic_configs=entries)


def word_count(epoch: int = 0) -> Request.Topology:
    """Two subtopologies: `lines` to the repartition topic `r`, and from there into a store with the changelog `c`."""
    return Request.Topology(
        epoch=epoch,
        subtopologies=[
            Request.Subtopology(subtopology_id="0", source_topics=["lines"], repartition_sink_topics=["r"]),
            Request.Subtopology(
                subtopology_id="1",
                repartition_source_topics=[info("r")],
                state_changelog_topics=[info("c", cleanup_policy="compact")],
            ),
        ],
    )


class StreamsHost:
    """One broker's streams groups."""

    def __init__(self, topics: Mapping[str, int] | None = None, **settings: Any) -> None:
        self.loop = VirtualLoop()
        self.log = InternalTopic(self.loop)
        self.settings = {"streams.initial.rebalance.delay.ms": "0", "streams.assignment.interval.ms": "0"}
        self.config = GroupCoordinatorConfig(offsets_topic_num_partitions=1, **settings)
        self.image = MetadataImage()
        self._next_id = 0
        self.epoch = 0
        self.coordinator: GroupCoordinator = None  # type: ignore[assignment]
        self.fail_over()
        self.create_topics(topics if topics is not None else {"lines": 2, "r": 2, "c": 2})

    def fail_over(self) -> None:
        """A new coordinator reads the log."""
        self.epoch += 1
        if self.coordinator is not None:
            self.coordinator.close()
        resolver = ConfigResolver(config_schema(), 1, {}, {})
        new_shard = shard_factory(
            self.config,
            now_ms=lambda: self.loop.now_ms,
            rng=random.Random(1),
            image=lambda: self.image,
            group_configs=GroupConfigs(resolver, self._configs),
        )
        self.coordinator = GroupCoordinator(
            self.config, self.log, new_shard, loop=self.loop, now_ms=lambda: self.loop.now_ms
        )
        self.coordinator.on_elected(0, self.epoch)
        self.loop.run_ready()

    def _configs(self) -> ConfigurationsImage:
        # A new image each time, so that a test may change a setting at any moment.
        return ConfigurationsImage({(int(ConfigResourceType.GROUP), GROUP): dict(self.settings)})

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Topics appear, or get more partitions."""
        records: list[Any] = []
        for name, partitions in topics.items():
            known = self.image.topics.by_name.get(name)
            self._next_id += known is None
            topic_id = known.topic_id if known else self._next_id.to_bytes(16, "big")
            if known is None:
                records.append(messages.TopicRecord(name=name, topic_id=topic_id))
            first = len(known.partitions) if known else 0
            records += [
                messages.PartitionRecord(
                    partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1, directories=[bytes(16)]
                )
                for index in range(first, partitions)
            ]
        self._change(records)

    def delete_topic(self, name: str) -> None:
        """A topic goes."""
        self._change([messages.RemoveTopicRecord(topic_id=self.image.topics.by_name[name].topic_id)])

    def _change(self, records: list[Any]) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        provenance = self.image.provenance
        self.image = delta.apply(provenance._replace(offset=provenance.offset + len(records)))
        if delta.topics is not None:
            self.coordinator.on_topics_changed(delta.topics)

    def send(self, request: Request, version: int = 1) -> StreamsHeartbeatResult:
        sender = Sender(f"client-{request.member_id}", "/127.0.0.1", version)
        found: StreamsHeartbeatResult = self.done(requests.heartbeat(self.coordinator, request, sender))
        return found

    def done(self, answer: Any) -> Any:
        future = start(answer, self.loop) if asyncio.iscoroutine(answer) else answer
        self.loop.run_ready()
        assert future.done(), "an answer is waiting"
        return future.result()

    def write(self, operation: Callable[[Any], CoordinatorResult[Any]]) -> Any:
        return self.done(self.coordinator.write(GROUP, operation))

    def describe(self, *group_ids: str) -> list[Any]:
        found: list[Any] = self.done(requests.describe(self.coordinator, group_ids or (GROUP,)))
        return found

    @property
    def group(self) -> StreamsGroup:
        group = shard_of(self).groups[GROUP]
        assert isinstance(group, StreamsGroup)
        return group

    @property
    def groups(self) -> dict[str, Group]:
        found: dict[str, Group] = shard_of(self).groups
        return found

    def records(self) -> list[CoordinatorRecord]:
        """All records of the log."""
        serde = RecordSerde("group")
        found = []
        for batch in self.log.batches.get(0, []):
            for record in iter_records(batch):
                assert record.key is not None
                found.append(serde.decode(record.key, record.value))
        return found


def shard_of(host: StreamsHost) -> Any:
    return host.done(host.coordinator.read(GROUP, lambda shard: shard))


class Member:
    """A member as a client plays it: it remembers its epoch and says that it has what it was given."""

    def __init__(self, host: StreamsHost, member_id: str, process_id: str | None = None, **fields: Any) -> None:
        self.host = host
        self.member_id = member_id
        self.process_id = process_id or f"process-{member_id}"
        self.epoch = 0
        self.fields = fields
        self.tasks: dict[str, list[Request.TaskIds]] = {"active": [], "standby": [], "warmup": []}
        self.last: StreamsGroupHeartbeatResponse | None = None
        self.to_create: list[str] = []

    def join(self, topology: Request.Topology | None = None, **more: Any) -> StreamsGroupHeartbeatResponse:
        fields: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "topology": topology or word_count(),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "process_id": self.process_id,
            **self.fields,
            **more,
        }
        self.tasks = {"active": [], "standby": [], "warmup": []}
        return self._send(0, fields)

    def beat(self, *, own: bool = True, **more: Any) -> StreamsGroupHeartbeatResponse:
        """A heartbeat that says what the member has (or, not `own`, nothing about it)."""
        fields = {f"{role}_tasks": tasks for role, tasks in self.tasks.items()} if own else {}
        if self.fields.get("instance_id"):
            fields["instance_id"] = self.fields["instance_id"]
        return self._send(self.epoch, {**fields, **more})

    def settle(self, *others: Member) -> None:
        """Heartbeats of all until nothing changes any more."""
        for _ in range(10):
            before = [member.held for member in (self, *others)]
            for member in (self, *others):
                member.beat()
            if before == [member.held for member in (self, *others)]:
                return
        raise AssertionError("the group does not settle")

    def leave(self, epoch: int = -1) -> StreamsGroupHeartbeatResponse:
        fields = {"instance_id": self.fields["instance_id"]} if "instance_id" in self.fields else {}
        return self._send(epoch, fields)

    def _send(self, epoch: int, fields: Mapping[str, Any]) -> StreamsGroupHeartbeatResponse:
        request = Request(group_id=GROUP, member_id=self.member_id, member_epoch=epoch, **fields)
        result = self.host.send(request)
        self.last = result.response
        self.to_create = sorted(result.to_create)
        if not self.last.error_code:
            self.epoch = self.last.member_epoch
            if self.last.active_tasks is not None:
                self.tasks = {
                    "active": _owned(self.last.active_tasks),
                    "standby": _owned(self.last.standby_tasks),
                    "warmup": _owned(self.last.warmup_tasks),
                }
        return self.last

    @property
    def held(self) -> str:
        """What the member has: `0_0 0_1 | 1_1` with standbys after the bar."""
        active, standby = (_names(self.tasks[role]) for role in ("active", "standby"))
        return f"{active} | {standby}" if standby else active

    @property
    def statuses(self) -> list[int]:
        assert self.last is not None
        return [status.status_code for status in self.last.status or ()]


def _owned(tasks: Any) -> list[Request.TaskIds]:
    return [Request.TaskIds(subtopology_id=t.subtopology_id, partitions=list(t.partitions)) for t in tasks or ()]


def _names(tasks: list[Request.TaskIds]) -> str:
    return " ".join(f"{task.subtopology_id}_{index}" for task in tasks for index in task.partitions)
