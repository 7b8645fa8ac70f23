"""The golden scripts of consumer groups over sockets: the same commands sent to a running broker, in real time.

Groups, topics and expressions get a prefix, so that scripts do not meet; the traces are without it. The broker's topic ids stand in
the local picture of the cluster.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from tests.group.consumer_script import ConsumerScriptRunner
from tests.group.wire_coordinator import SocketLoop, WireCoordinator

_GROUP = 32
ANSWERED_SECONDS = 4.0
"""How long a broker on a busy machine may take for an answer."""


class ConsumerWire(WireCoordinator):
    """Asks a broker, with topics prefixed too."""

    def topic(self, name: str) -> str:
        return self._prefix + name

    def bare(self, name: str) -> str:
        return name.removeprefix(self._prefix)

    def beat(self, request: ConsumerGroupHeartbeatRequest, client_id: str) -> asyncio.Future[Any]:
        self._prefixed(request)
        if request.subscribed_topic_names is not None:
            request.subscribed_topic_names = [self.topic(name) for name in request.subscribed_topic_names]
        if request.subscribed_topic_regex:
            request.subscribed_topic_regex = f"{self._prefix}(?:{request.subscribed_topic_regex})"
        return self._or_error(self._ask(68, request, 1, client_id), lambda response: response)

    def describe_consumers(self, group: str) -> asyncio.Future[Any]:
        def bare(response: Any) -> Any:
            described = response.groups[0]
            if described.error_code:
                return described
            for member in described.members:
                member.subscribed_topic_names = sorted(map(self.bare, member.subscribed_topic_names))
                regex = member.subscribed_topic_regex or ""
                member.subscribed_topic_regex = regex.removeprefix(self._prefix + "(?:").removesuffix(")")
                for assignment in (member.assignment, member.target_assignment):
                    for part in assignment.topic_partitions:
                        part.topic_name = self.bare(part.topic_name)
                        part.partitions.sort()
                    assignment.topic_partitions.sort(key=lambda part: part.topic_name)
            described.members.sort(key=lambda member: str(member.member_id))
            return described

        request = ConsumerGroupDescribeRequest(group_ids=[self._prefix + group])
        return self._or_error(self._ask(69, request, 1), bare)

    def _or_error(self, future: asyncio.Future[Any], part: Any) -> asyncio.Future[Any]:
        result: asyncio.Future[Any] = self._loop.create_future()

        def done(done: asyncio.Future[Any]) -> None:
            found = part(done.result())
            if found.error_code:
                result.set_exception(KafkaError(found.error_code, found.error_message))
            else:
                result.set_result(found)

        future.add_done_callback(done)
        return result

    def ask_now(self, api_key: int, request: Any, version: int) -> Any:
        """Ask, and wait for the answer."""
        future = self._ask(api_key, request, version)
        deadline = time.monotonic() + 240
        while not future.done() and time.monotonic() < deadline:
            self._loop.listen(0.05)
        return future.result()

    def offset_commit(self, wire: Any, request: Any, version: int) -> asyncio.Future[Any]:
        return self._bare_topics(super().offset_commit(wire, self._with_topics(request), version))

    def offset_delete(self, wire: Any, request: Any) -> asyncio.Future[Any]:
        return self._bare_topics(super().offset_delete(wire, self._with_topics(request)))

    def offset_fetch(self, wire: Any, request: Any, require_stable: bool) -> asyncio.Future[Any]:
        return self._bare_topics(super().offset_fetch(wire, self._with_topics(request), require_stable))

    def _with_topics(self, request: Any) -> Any:
        for topic in request.topics or ():
            topic.name = self.topic(topic.name)
        return request

    def _bare_topics(self, future: asyncio.Future[Any]) -> asyncio.Future[Any]:
        def bare(response: Any) -> Any:
            for topic in response.topics:
                topic.name = self.bare(topic.name)
            return response

        return self._part(future, bare)


class ConsumerWireRunner(ConsumerScriptRunner):
    """Plays a script of consumer groups against a broker; the trace has the answers only."""

    def __init__(self, address: tuple[str, int], prefix: str) -> None:
        super().__init__()
        self.loop: SocketLoop = SocketLoop()
        self._wire = self.requests = self.classic = ConsumerWire(self.loop, address, prefix)
        for group in "gh":
            self.do_group_config(group, "consumer.assignment.interval.ms=0")
        self.loop.run_ready()

    @property
    def coordinator(self) -> Any:
        return self._wire

    def settle(self) -> None:
        """Wait for the answers, except of who waits for others, and then until it is quiet."""
        deadline = time.monotonic() + ANSWERED_SECONDS
        while self.loop.selector.get_map() and time.monotonic() < deadline:
            self.loop.listen(0.02)
        self.loop.run_ready()

    def _beat(self, request: ConsumerGroupHeartbeatRequest, client_id: str) -> Any:
        return self._wire.beat(request, client_id)

    def _describe_consumers(self, group: str) -> Any:
        return self._wire.describe_consumers(group)

    def do_setting(self, *settings: str) -> None:
        """The group's own setting of the same meaning."""
        for setting in settings:
            self.do_group_config("g", setting.removeprefix("group."))

    def do_group_config(self, group: str, setting: str) -> None:
        name, value = setting.split("=")
        Request = IncrementalAlterConfigsRequest
        change = Request.AlterableConfig(name=name, value=value)
        resource = Request.AlterConfigsResource(
            resource_type=_GROUP, resource_name=self._wire.topic(group), configs=[change]
        )
        (answer,) = self._wire.ask_now(44, Request(resources=[resource]), 1).responses
        assert not answer.error_code, answer

    def do_topic(self, name: str, partitions: str) -> None:
        prefixed, count = self._wire.topic(name), int(partitions)
        if name not in self.cluster.image.topics.by_name:
            topic = CreateTopicsRequest.CreatableTopic(name=prefixed, num_partitions=count, replication_factor=1)
            (answer,) = self._wire.ask_now(19, CreateTopicsRequest(topics=[topic], timeout_ms=9000), 7).topics
        else:
            more = CreatePartitionsRequest.CreatePartitionsTopic(name=prefixed, count=count, assignments=None)
            (answer,) = self._wire.ask_now(37, CreatePartitionsRequest(topics=[more], timeout_ms=9000), 3).results
        assert not answer.error_code, answer
        wanted = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=prefixed)])
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            (found,) = self._wire.ask_now(3, wanted, 12).topics
            if not found.error_code and len(found.partitions) == count:
                break
        self.cluster.set_topic(name, count, found.topic_id)

    def do_delete_topic(self, name: str) -> None:
        state = DeleteTopicsRequest.DeleteTopicState(name=self._wire.topic(name), topic_id=bytes(16))
        (answer,) = self._wire.ask_now(20, DeleteTopicsRequest(topics=[state], timeout_ms=9000), 6).responses
        assert not answer.error_code, answer
        self.cluster.delete_topic(name)

    def do_failover(self) -> None:
        """A running broker goes on: what it knows is the same."""

    def do_why(self, group: str) -> None:
        """Only our own coordinator remembers."""

    def _subscription(self, given: dict[str, str]) -> bytes:
        subscription, _ = ConsumerProtocolSubscription.read(memoryview(super()._subscription(given)), 2, 1)
        subscription.topics = [self._wire.topic(name) for name in subscription.topics]
        for owned in subscription.owned_partitions:
            owned.topic = self._wire.topic(owned.topic)
        return b"\0\1" + bytes(subscription.encode(1))

    def _given_assignment(self, text: str) -> bytes:
        written = super()._given_assignment(text)
        if text[:1] not in ("@", "+"):
            return written
        assignment, _ = ConsumerProtocolAssignment.read(memoryview(written), 2, 1)
        for part in assignment.assigned_partitions:
            part.topic = self._wire.topic(part.topic)
        return b"\0\1" + bytes(assignment.encode(1))

    def _show_assignment(self, assignment: bytes) -> str:
        return super()._show_assignment(assignment).replace(self._wire.topic(""), "")

    def _trace_log(self) -> None:
        pass

    def trace_states(self) -> None:
        pass
