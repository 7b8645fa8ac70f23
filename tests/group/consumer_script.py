"""Golden scripts of consumer groups: the language of `script`, and heartbeats, topics and settings.

A client's member id is its own name, as clients choose it. Assignments read `t:0,1@5`: partitions 0 and 1 of t since epoch 5.
"""

from __future__ import annotations

from typing import Any

from barnabas.config.config_table import config_schema
from barnabas.group.classic.consumer_protocol import read_assignment, write_assignment
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.group.group_config import GroupConfigs, GroupCoordinatorConfig
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import shard_factory
from barnabas.group.sender import Sender
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.protocol import ordered_growth
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OffsetFetchRequest,
)
from tests.golden import options
from tests.group.cluster_metadata import ClusterMetadata
from tests.group.script import Client, ScriptRunner


class ConsumerScriptRunner(ScriptRunner):
    """Runs one script with consumer groups."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = ClusterMetadata()
        self.broker_settings: dict[str, str] = {"group.consumer.assignment.interval.ms": "0"}
        self.owned: dict[str, dict[bytes, list[int]]] = {}

    def _new_coordinator(self) -> GroupCoordinator:
        resolver = ConfigResolver(config_schema(), 1, self.broker_settings, {})
        config = GroupCoordinatorConfig(**self.config)
        new_shard = shard_factory(
            config,
            now_ms=lambda: self.loop.now_ms,
            rng=self.rng,
            image=lambda: self.cluster.image,
            group_configs=GroupConfigs(resolver, lambda: self.cluster.image.configs),
        )
        return GroupCoordinator(config, self.log, new_shard, loop=self.loop, now_ms=lambda: self.loop.now_ms)

    def settle(self) -> None:
        """Also what was put off by no time at all."""
        self.loop.advance(0)

    # -- commands ----------------------------------------------------------------------------------------------------

    def do_policy(self, policy: str) -> None:
        """policy POLICY: group.consumer.migration.policy, before anything else."""
        self.config["group_consumer_migration_policy"] = policy

    def do_setting(self, *settings: str) -> None:
        """setting NAME=VALUE: of the broker, before anything else."""
        self.broker_settings.update(options(settings))

    def do_group_config(self, group: str, setting: str) -> None:
        """group-config GROUP NAME=VALUE"""
        name, value = setting.split("=")
        self.cluster.set_group_config(group, name, value)

    def do_topic(self, name: str, partitions: str) -> None:
        """topic NAME PARTITIONS: create it, or give it more"""
        self.coordinator.on_topics_changed(self.cluster.set_topic(name, int(partitions)))

    def do_growth(self, topic: str, text: str) -> None:
        """growth TOPIC TEXT: set the topic's barnabas.ordered.growth"""
        self.cluster.set_topic_config(topic, ordered_growth.SETTING, text)

    def do_delete_topic(self, name: str) -> None:
        """delete-topic NAME"""
        self.coordinator.on_topics_changed(self.cluster.delete_topic(name))

    def do_beat(self, name: str, *words: str) -> None:
        """beat CLIENT [topics=t,u] [regex=R] [epoch=N] [owned=t:0,1/u:0|none|all] [instance=I] [rebalance=T] [assignor=A] [id=M]

        The first beat joins. Later ones say what the client has when it is given, and carry the epoch of the last answer.
        """
        client = self.clients.setdefault(name, Client(name))
        given = options(words)
        client.instance_id = given.get("instance", client.instance_id)
        client.member_id = given.get("id", client.member_id or name)
        epoch = int(given.get("epoch", 0 if client.generation_id < 0 else client.generation_id))
        joins = epoch == 0
        topics = given.get("topics", "t" if joins and "regex" not in given else None)
        owned = given.get("owned", "none" if joins else None)
        request = ConsumerGroupHeartbeatRequest(
            group_id=given.get("group", "g"),
            member_id=client.member_id,
            member_epoch=epoch,
            instance_id=client.instance_id,
            rebalance_timeout_ms=int(given.get("rebalance", "60000" if joins else "-1")),
            subscribed_topic_names=None if topics is None else [topic for topic in topics.split(",") if topic],
            subscribed_topic_regex=given.get("regex"),
            server_assignor=given.get("assignor"),
            topic_partitions=self._owned(name, owned),
        )

        def show(response: Any) -> str:
            client.generation_id = response.member_epoch
            if response.assignment is None:
                return f"epoch={response.member_epoch}"
            assigned = {part.topic_id: part.partitions for part in response.assignment.topic_partitions}
            self.owned[name] = assigned
            return f"epoch={response.member_epoch} assigned=[{self._topics(assigned)}]"

        self._expect_or_error(f"{name}: beat", self._beat(request, name), show)

    def _beat(self, request: ConsumerGroupHeartbeatRequest, client_id: str) -> Any:
        sender = Sender(client_id, "/127.0.0.1", 1)
        return self.coordinator.write(request.group_id, lambda shard: shard.consumer.heartbeat(request, sender))

    def _owned(self, name: str, owned: str | None) -> Any:
        if owned is None:
            return None
        Part = ConsumerGroupHeartbeatRequest.TopicPartitions
        if owned == "none":
            return []
        if owned == "all":
            return [Part(topic_id=i, partitions=list(p)) for i, p in self.owned.get(name, {}).items()]
        parts = []
        for one in owned.split("/"):
            topic, indexes = one.split(":")
            found = self.cluster.image.topics.by_name[topic].topic_id
            parts.append(Part(topic_id=found, partitions=[int(index) for index in indexes.split(",")]))
        return parts

    def do_fetch_as(self, name: str, epoch: str, partition: str) -> None:
        """fetch-as CLIENT EPOCH TOPIC:PARTITION: an OffsetFetch that names its member"""
        topic, index = partition.split(":")
        request = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id="g",
            member_id=self.clients[name].member_id,
            member_epoch=int(epoch),
            topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[int(index)])],
        )

        def show(response: Any) -> str:
            return " ".join(str(p.committed_offset) for t in response.topics for p in t.partitions)

        self._expect(f"{name}: fetch", self.requests.offset_fetch(self.coordinator, request, False), show)

    def do_describe_consumers(self, group: str) -> None:
        """describe-consumers GROUP"""

        def show(described: Any) -> str:
            members = "".join(
                f"\n  {self._alias(m.member_id)} instance={m.instance_id} epoch={m.member_epoch} "
                f"type={m.member_type} topics={','.join(m.subscribed_topic_names)} regex={m.subscribed_topic_regex} "
                f"has=[{self._described(m.assignment)}] target=[{self._described(m.target_assignment)}]"
                for m in described.members
            )
            return (
                f"{described.group_state} epoch={described.group_epoch} assignment={described.assignment_epoch} "
                f"by={described.assignor_name}{members}"
            )

        self._expect_or_error("describe", self._describe_consumers(group), show)

    def _describe_consumers(self, group: str) -> Any:
        return self.coordinator.read(group, lambda shard: shard.consumer.describe(group))

    def do_why(self, group: str) -> None:
        """why GROUP: the history of its rebalances"""
        for r in self.shard().environment.history.of(group):
            moved = " ".join(f"{t}:{i} {self._alias(a) or '-'}>{self._alias(b) or '-'}" for t, i, a, b in r.moved)
            end = "goes on" if r.ended_ms is None else f"{r.ended_ms - r.started_ms}ms"
            self.trace.append(
                f"  epoch {r.epoch} {end}{' superseded' if r.superseded else ''} members={r.members} "
                f"by {self._alias(r.member_id) or '-'}: {r.cause} [{moved}]"
            )

    # -- the trace ---------------------------------------------------------------------------------------------------

    def _expect_or_error(self, what: str, future: Any, show: Any) -> None:
        def done(done: Any) -> None:
            self._trace_log()
            error = done.exception()
            if error is None:
                self.trace.append(f"{what} NONE {show(done.result())}")
            else:
                assert isinstance(error, KafkaError), error
                self.trace.append(f"{what} {error.code.name}")

        if future.done():
            done(future)
        else:
            future.add_done_callback(done)

    def _subscription(self, given: dict[str, str]) -> bytes:
        owned = []
        for one in given.get("owned", "").split("/"):
            if one:
                topic, indexes = one.split(":")
                partitions = [int(index) for index in indexes.split(",")]
                owned.append(ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions))
        subscription = ConsumerProtocolSubscription(topics=given.get("topics", "t").split(","), owned_partitions=owned)
        return b"\0\1" + subscription.encode(1)

    def topic_id(self, topic: str) -> bytes:
        known = self.cluster.image.topics.by_name.get(topic)
        return bytes(16) if known is None else known.topic_id

    def _given_assignment(self, text: str) -> bytes:
        """`@t:0,1` is an assignment in the consumers' own message, `+t:0,1` one with user data; else the text itself."""
        if text[:1] not in ("@", "+"):
            return text.encode()
        topic, indexes = text[1:].split(":")
        part = ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=[int(i) for i in indexes.split(",")])
        user_data = b"mine" if text[0] == "+" else None
        return write_assignment(ConsumerProtocolAssignment(assigned_partitions=[part], user_data=user_data), 1)

    def _show_assignment(self, assignment: bytes) -> str:
        if assignment[:1] != b"\0":
            return assignment.decode()
        parts = read_assignment(assignment).assigned_partitions
        return "[" + "/".join(f"{p.topic}:{','.join(map(str, p.partitions))}" for p in parts) + "]"

    def _topics(self, assigned: Any) -> str:
        """Topic id to partitions, with epochs or without."""
        names = self.cluster.image.topics
        shown = []
        for topic_id, partitions in assigned.items():
            name = names.name_of(topic_id) or f"#{int.from_bytes(topic_id, 'big')}"
            if isinstance(partitions, dict):
                by_epoch: dict[int, list[int]] = {}
                for index, epoch in sorted(partitions.items()):
                    by_epoch.setdefault(epoch, []).append(index)
                shown += [f"{name}:{','.join(map(str, some))}@{epoch}" for epoch, some in by_epoch.items()]
            else:
                shown.append(f"{name}:{','.join(map(str, sorted(partitions)))}")
        return "/".join(sorted(shown))

    def _described(self, assignment: Any) -> str:
        return "/".join(
            sorted(f"{p.topic_name}:{','.join(map(str, p.partitions))}" for p in assignment.topic_partitions)
        )

    def _with_epochs(self, parts: Any) -> str:
        return self._topics({p.topic_id: dict(zip(p.partitions, p.assignment_epochs, strict=True)) for p in parts})

    def _show_record(self, record: Any) -> str:
        key, value = record.key, record.value
        if record.type_id <= 2:
            return super()._show_record(record)
        what = {3: "epoch", 4: "partitions", 5: "member", 6: "target-epoch", 7: "target", 8: "current", 16: "regex"}[
            record.type_id
        ]
        who = [getattr(key, name, None) for name in ("group_id", "member_id", "regular_expression")]
        line = " ".join([what, *(self._alias(name) for name in who if name is not None)])
        if value is None:
            return f"{line} -> gone"
        if record.type_id == 3:
            return f"{line} -> {value.epoch}{'' if value.metadata_hash else ' without topics'}"
        if record.type_id == 5:
            classic = value.classic_member_metadata
            protocols = "" if classic is None else " classic=" + ",".join(p.name for p in classic.supported_protocols)
            regex = f" regex={value.subscribed_topic_regex}" if value.subscribed_topic_regex else ""
            instance = f" instance={value.instance_id}" if value.instance_id else ""
            assignor = f" assignor={value.server_assignor}" if value.server_assignor else ""
            return f"{line} -> topics={','.join(value.subscribed_topic_names)}{regex}{instance}{assignor}{protocols}"
        if record.type_id == 6:
            return f"{line} -> {value.assignment_epoch}"
        if record.type_id == 7:
            return f"{line} -> [{self._topics({p.topic_id: p.partitions for p in value.topic_partitions})}]"
        if record.type_id == 8:
            state = {0: "STABLE", 1: "UNREVOKED", 2: "UNRELEASED"}[value.state]
            revoke = self._with_epochs(value.partitions_pending_revocation)
            return (
                f"{line} -> {value.previous_member_epoch}>{value.member_epoch} {state} "
                f"[{self._with_epochs(value.assigned_partitions)}]{f' revoke=[{revoke}]' if revoke else ''}"
            )
        return f"{line} -> [{','.join(value.topics)}] v{value.version}"

    def _show_group(self, group: Any) -> str:
        if not isinstance(group, ConsumerGroup):
            return super()._show_group(group)
        members = " ".join(f"{self._alias(m.member_id)}@{m.member_epoch}" for m in group.members.values())
        return f"group {group.group_id} {group.state.value} {group.group_epoch}/{group.assignment_epoch} [{members}]"
