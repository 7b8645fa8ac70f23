"""Golden scripts of the group coordinator (see `tests.golden`).

    > join a                       `a` is a client, and remembers the member id and generation it was given
    a: join MEMBER_ID_REQUIRED id=a.1

Lines of a trace: answers (`client: api outcome`), records as they are appended (`log key -> value`), and after each command the
group's state if it has changed (`group g Stable 1 leader=a.1 a.1 b.1`). Member ids are written `name.N`, N counting up from 1.

Commands: see the methods `do_...` of `ScriptRunner`.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from barnabas.coordinator.coordinator_log import RecordSerde, UnknownRecordType
from barnabas.group import requests
from barnabas.group.classic import requests as classic_requests
from barnabas.group.group_config import GroupCoordinatorConfig
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import shard_factory
from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header
from barnabas.steps import start
from tests.coordinator.internal_topic import InternalTopic
from tests.coordinator.shards import context_of
from tests.coordinator.virtual_loop import VirtualLoop
from tests.golden import Script, milliseconds, options

SENDER = Sender("c", "/127.0.0.1", 0)
_MEMBER_ID = re.compile(r"(\w+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.instance_id: str | None = None
        self.generation_id = -1


class ScriptRunner(Script):
    """Runs one script against a coordinator on an in-memory log, in virtual time.

    Attributes:
        requests, classic: what sends the requests of all groups and of classic ones; `WireRunner` has others.
    """

    requests: Any = requests
    classic: Any = classic_requests

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.log = InternalTopic(self.loop)
        self.config: dict[str, Any] = {"offsets_topic_num_partitions": 1}
        self.rng = random.Random(1)
        self.clients: dict[str, Client] = {}
        self.aliases: dict[str, str] = {}
        self.alias_counts: Counter[str] = Counter()
        self.seen_batches = 0
        self.serde = RecordSerde("group")
        self._coordinator: GroupCoordinator | None = None
        self.epoch = 0

    @property
    def coordinator(self) -> GroupCoordinator:
        if self._coordinator is None:
            self._coordinator = self._new_coordinator()
            self._coordinator.on_elected(0, self.epoch)
            self.loop.run_ready()
        return self._coordinator

    def _new_coordinator(self) -> GroupCoordinator:
        config = GroupCoordinatorConfig(**self.config)
        new_shard = shard_factory(config, now_ms=lambda: self.loop.now_ms, rng=self.rng)
        return GroupCoordinator(config, self.log, new_shard, loop=self.loop, now_ms=lambda: self.loop.now_ms)

    def settle(self) -> None:
        self.loop.run_ready()

    def trace_states(self) -> None:
        self._trace_log()
        super().trace_states()

    # -- commands ----------------------------------------------------------------------------------------------------

    def do_config(self, *settings: str) -> None:
        """config NAME=VALUE: before anything else."""
        for setting in settings:
            name, value = setting.split("=")
            self.config[name] = int(value) if value.isdigit() else milliseconds(value)

    def do_join(self, name: str, *words: str) -> None:
        """join CLIENT [instance=I] [version=N] [protocols=p,q] [topics=t,u] [session=T] [rebalance=T] [type=T] [id=M] [group=G]"""
        client = self.clients.setdefault(name, Client(name))
        given = options(words)
        client.instance_id = given.get("instance", client.instance_id)
        version = int(given.get("version", 9))
        metadata = given.get("metadata", "").encode() or self._subscription(given)
        request = JoinGroupRequest(
            group_id=given.get("group", "g"),
            session_timeout_ms=milliseconds(given.get("session", "10s")),
            rebalance_timeout_ms=milliseconds(given.get("rebalance", "60s")),
            member_id=self._given_id(client, given),
            group_instance_id=client.instance_id,
            protocol_type=given.get("type", "consumer"),
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=protocol, metadata=metadata)
                for protocol in given.get("protocols", "range").split(",")
                if protocol
            ],
        )

        sender = Sender(name, "/127.0.0.1", version)

        def show(response: Any) -> str:
            client.member_id = response.member_id
            if response.error_code:
                return f"id={self._alias(response.member_id)}"
            client.generation_id = response.generation_id
            members = ",".join(self._alias(member.member_id) for member in response.members)
            skip = " skip_assignment" if response.skip_assignment else ""
            return (
                f"generation={response.generation_id} protocol={response.protocol_name} "
                f"id={self._alias(response.member_id)} leader={self._alias(response.leader)} members=[{members}]{skip}"
            )

        self._expect(f"{name}: join", self.classic.join_group(self.coordinator, request, sender), show)

    def _subscription(self, given: dict[str, str]) -> bytes:
        topics = given.get("topics", "t").split(",")
        return b"\0\0" + ConsumerProtocolSubscription(topics=topics).encode(0)

    def _given_assignment(self, text: str) -> bytes:
        return text.encode()

    def _show_assignment(self, assignment: bytes) -> str:
        return assignment.decode()

    def do_sync(self, name: str, *words: str) -> None:
        """sync CLIENT [MEMBER=ASSIGNMENT ...] [generation=N] [type=T] [protocol=P]"""
        client = self.clients[name]
        given = options(words)
        request = SyncGroupRequest(
            group_id=given.pop("group", "g"),
            generation_id=int(given.pop("generation", client.generation_id)),
            member_id=self._given_id(client, given),
            group_instance_id=client.instance_id,
            protocol_type=given.pop("type", "consumer"),
            protocol_name=given.pop("protocol", None),
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=self._member_id(member), assignment=self._given_assignment(assignment)
                )
                for member, assignment in given.items()
                if member != "id"
            ],
        )
        self._expect(
            f"{name}: sync",
            self.classic.sync_group(self.coordinator, request, SENDER),
            lambda r: f"assignment={self._show_assignment(r.assignment)}",
        )

    def do_heartbeat(self, name: str, *words: str) -> None:
        """heartbeat CLIENT [generation=N] [id=M]"""
        client = self.clients[name]
        given = options(words)
        request = HeartbeatRequest(
            group_id=given.get("group", "g"),
            generation_id=int(given.get("generation", client.generation_id)),
            member_id=self._given_id(client, given),
            group_instance_id=client.instance_id,
        )
        self._expect(f"{name}: heartbeat", self.classic.heartbeat(self.coordinator, request, SENDER))

    def do_leave(self, *who: str) -> None:
        """leave CLIENT|instance=I|id=M ..."""
        members = []
        for one in who:
            identity = LeaveGroupRequest.MemberIdentity(member_id="", group_instance_id=None)
            if one.startswith("instance="):
                identity.group_instance_id = one.removeprefix("instance=")
            elif one.startswith("id="):
                identity.member_id = self._member_id(one.removeprefix("id="))
            else:
                identity.member_id = self.clients[one].member_id
                identity.group_instance_id = self.clients[one].instance_id
            members.append(identity)

        def show(response: Any) -> str:
            return " ".join(
                f"{self._alias(m.member_id) or m.group_instance_id}={ErrorCode(m.error_code).name}"
                for m in response.members
            )

        request = LeaveGroupRequest(group_id="g", members=members)
        self._expect("leave", self.classic.leave_group(self.coordinator, request, SENDER), show)

    def do_commit(self, name: str, *what: str) -> None:
        """commit CLIENT|- TOPIC:PARTITION=OFFSET ... [generation=N] [id=M] [metadata=M] [retention=T] [version=N]"""
        client = self.clients.get(name, Client("-"))
        given = options(what)
        retention = given.pop("retention", None)
        request = OffsetCommitRequest(
            group_id=given.pop("group", "g"),
            generation_id_or_member_epoch=int(given.pop("generation", client.generation_id)),
            member_id=self._given_id(client, given),
            group_instance_id=client.instance_id,
            retention_time_ms=-1 if retention is None else milliseconds(retention),
        )
        given.pop("id", None)
        version = int(given.pop("version", 9))
        metadata = given.pop("metadata", None)
        for partition, offset in given.items():
            topic, index = partition.split(":")
            request.topics.append(
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=self.topic_id(topic),
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=int(index), committed_offset=int(offset), committed_metadata=metadata
                        )
                    ],
                )
            )

        def show(response: Any) -> str:
            return " ".join(
                f"{topic.name}:{partition.partition_index}={ErrorCode(partition.error_code).name}"
                for topic in response.topics
                for partition in topic.partitions
            )

        self._expect(f"{name}: commit", self.requests.offset_commit(self.coordinator, request, version), show)

    def topic_id(self, topic: str) -> bytes:
        """The id that the API finds for a name."""
        return bytes(16)

    def do_fetch(self, *partitions: str) -> None:
        """fetch all|TOPIC:PARTITION ... [group=G] [stable]"""
        given = options([p for p in partitions if "=" in p])
        topics: list[Any] | None = []
        for partition in partitions:
            if partition == "all":
                topics = None
            elif ":" in partition:
                topic, index = partition.split(":")
                assert topics is not None
                topics.append(OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[int(index)]))
        request = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=given.get("group", "g"), topics=topics)

        def show(response: Any) -> str:
            return " ".join(
                f"{topic.name}:{p.partition_index}={p.committed_offset}"
                + (f"({p.metadata})" if p.metadata else "")
                + (f" {ErrorCode(p.error_code).name}" if p.error_code else "")
                for topic in response.topics
                for p in topic.partitions
            )

        self._expect("fetch", self.requests.offset_fetch(self.coordinator, request, "stable" in partitions), show)

    def do_offset_delete(self, *partitions: str) -> None:
        """offset-delete TOPIC:PARTITION ..."""
        request = OffsetDeleteRequest(group_id="g")
        for partition in partitions:
            topic, index = partition.split(":")
            request.topics.append(
                OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=int(index))],
                )
            )

        def show(response: Any) -> str:
            return " ".join(
                f"{topic.name}:{p.partition_index}={ErrorCode(p.error_code).name}"
                for topic in response.topics
                for p in topic.partitions
            )

        self._expect("offset-delete", self.requests.offset_delete(self.coordinator, request), show)

    def do_delete(self, *groups: str) -> None:
        """delete GROUP ..."""

        def show(results: Any) -> str:
            return " ".join(f"{result.group_id}={ErrorCode(result.error_code).name}" for result in results)

        self._expect("delete", self.requests.delete_groups(self.coordinator, groups), show)

    def do_describe(self, group: str, *words: str) -> None:
        """describe GROUP [version=N]"""

        def show(described: Any) -> str:
            one = described[0]
            error = f" {ErrorCode(one.error_code).name} {one.error_message!r}" if one.error_code else ""
            members = "".join(
                f"\n  {self._alias(m.member_id)} instance={m.group_instance_id} client={m.client_id} host={m.client_host} "
                f"metadata={len(m.member_metadata)}B assignment={self._show_assignment(m.member_assignment)}"
                for m in one.members
            )
            return f"{one.group_state} type={one.protocol_type} protocol={one.protocol_data}{error}{members}"

        version = int(options(words).get("version", 6))
        self._expect("describe", self.classic.describe(self.coordinator, [group], version), show)

    def do_list(self, *words: str) -> None:
        """list [states=S,T] [types=T,U]"""
        given = options(words)
        request = ListGroupsRequest(
            states_filter=[state for state in given.get("states", "").split(",") if state],
            types_filter=[kind for kind in given.get("types", "").split(",") if kind],
        )

        def show(response: Any) -> str:
            return " ".join(f"{g.group_id}:{g.protocol_type}:{g.group_state}:{g.group_type}" for g in response.groups)

        self._expect("list", self.requests.list_groups(self.coordinator, request), show)

    def do_topic_deleted(self, topic: str) -> None:
        """topic-deleted TOPIC"""
        self.coordinator.on_topics_deleted({topic: bytes(16)})

    def do_advance(self, time: str) -> None:
        """advance TIME: let time pass"""
        self.coordinator  # noqa: B018 - it must be there
        self.loop.advance(milliseconds(time))

    def do_failover(self) -> None:
        """failover: resign, and be elected again"""
        self.epoch += 1
        self.coordinator.on_resigned(0)
        self.coordinator.on_elected(0, self.epoch)

    def do_restart(self) -> None:
        """restart: another coordinator, with the settings as they are now, reads the log"""
        self._coordinator = None

    def do_resign(self) -> None:
        """resign: lose the partition"""
        self.coordinator.on_resigned(0)

    def do_elect(self) -> None:
        """elect: lead the partition again"""
        self.epoch += 1
        self.coordinator.on_elected(0, self.epoch)

    def do_elect_and_do(self, *words: str) -> None:
        """elect-and-do COMMAND: lead the partition again, and run the command before it is loaded"""
        self.clients.setdefault(words[1] if len(words) > 1 else "", Client("nobody"))
        self.do_resign()
        self.do_elect()
        getattr(self, "do_" + words[0].replace("-", "_"))(*words[1:])

    def do_hold_commits(self) -> None:
        """hold-commits: what is appended from here is not committed until `release`"""
        self.coordinator  # noqa: B018
        self.log.hold_commits = True

    def do_release(self) -> None:
        self.log.release()

    def do_lose(self) -> None:
        """lose: what was held back is gone from the log"""
        self._trace_log()
        self.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.seen_batches = len(self.log.batches[0])

    def do_refuse(self, error: str = "") -> None:
        """refuse [ERROR]: the log refuses appends (without an error: takes them again)"""
        self.coordinator  # noqa: B018
        self.log.refuse = ErrorCode[error] if error else None

    # -- the trace ---------------------------------------------------------------------------------------------------

    def _expect(self, what: str, answer: Any, show: Callable[[Any], str] = lambda r: "") -> None:
        """Trace an answer, a coroutine or a future, when it comes."""
        future = self._started(answer)

        def done(done: asyncio.Future[Any]) -> None:
            response = done.result()
            self._trace_log()
            error = getattr(response, "error_code", 0)
            text = show(response) if not error or what.endswith("join") else ""
            words = (
                [what] + ([ErrorCode(error).name] if hasattr(response, "error_code") else []) + ([text] if text else [])
            )
            self.trace.append(" ".join(words))

        if future.done():
            done(future)
        else:
            future.add_done_callback(done)

    def _started(self, answer: Any) -> asyncio.Future[Any]:
        return start(answer, self.loop) if asyncio.iscoroutine(answer) else answer

    def _trace_log(self) -> None:
        batches = self.log.batches.get(0, [])
        for batch in batches[self.seen_batches :]:
            for record in () if read_header(batch, 0).is_control else iter_records(batch):
                assert record.key is not None
                try:
                    shown = self._show_record(self.serde.decode(record.key, record.value))
                except UnknownRecordType:
                    shown = f"type {int.from_bytes(record.key[:2], 'big')}"
                self.trace.append(f"log {shown}")
        self.seen_batches = len(batches)

    def _show_record(self, record: Any) -> str:
        key, value = record.key, record.value
        if record.type_id not in (1, 2):
            return f"type {record.type_id}"
        if record.type_id == 1:
            what = f"offset {key.group} {key.topic}:{key.partition}"
            if value is None:
                return f"{what} -> gone"
            metadata = f" ({value.metadata})" if value.metadata else ""
            return f"{what} -> {value.offset}{metadata} v{record.value_version}"
        if value is None:
            return f"group {key.group} -> gone"
        members = " ".join(f"{self._alias(m.member_id)}={self._show_assignment(m.assignment)}" for m in value.members)
        return (
            f"group {key.group} -> generation={value.generation} {value.protocol_type}/{value.protocol} "
            f"leader={self._alias(value.leader)} [{members}]"
        )

    def states(self) -> dict[str, str]:
        shard = self.shard()
        groups = () if shard is None else shard.groups.values()
        return {f"group {group.group_id}": self._show_group(group) for group in groups}

    def _show_group(self, group: Any) -> str:
        members = " ".join(
            self._alias(m.member_id)
            + ("?join" if m.awaiting_join is not None else "")
            + ("?sync" if m.awaiting_sync is not None else "")
            for m in group.members.values()
        )
        pending = (
            " pending=" + ",".join(map(self._alias, group.pending_join_members)) if group.pending_join_members else ""
        )
        return f"group {group.group_id} {group.state.value} {group.generation_id} [{members}]{pending}"

    def shard(self) -> Any:
        if self._coordinator is None:
            return None
        context = context_of(self._coordinator)
        return None if context is None else context.shard

    def _alias(self, member_id: str | None) -> str:
        if not member_id:
            return "" if member_id == "" else "None"
        if member_id not in self.aliases:
            match = _MEMBER_ID.fullmatch(member_id)
            if match is None:
                return member_id
            self.alias_counts[match[1]] += 1
            self.aliases[member_id] = f"{match[1]}.{self.alias_counts[match[1]]}"
        return self.aliases[member_id]

    def _member_id(self, alias: str) -> str:
        for member_id, known in self.aliases.items():
            if known == alias:
                return member_id
        return self.clients[alias].member_id if alias in self.clients else alias

    def _given_id(self, client: Client, given: dict[str, str]) -> str:
        if "id" not in given:
            return client.member_id
        return "" if given["id"] in ("", "none") else self._member_id(given["id"])
