"""Members of consumer groups (KIP-848) with no client in the way: what joining, settling and heartbeats cost the broker.

Each member has a connection of its own. It owns what it was assigned, says so in its next heartbeat, and gives up at once what is taken
away, as a consumer with nothing to commit would.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest

VERSION = 1
_Owned = ConsumerGroupHeartbeatRequest.TopicPartitions
_UNSETTLED = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


class Member:
    """One member of one group."""

    def __init__(self, connection: BlockingConnection, group: str, name: str, topic: str) -> None:
        self.connection = connection
        self.group, self.name, self.topic = group, name, topic
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}
        self._news = False

    @property
    def partitions(self) -> int:
        return sum(map(len, self.owned.values()))

    def send(self) -> None:
        """Joins, tells what it owns now, or only that it lives."""
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.name, member_epoch=self.epoch)
        if not self.epoch:
            request.rebalance_timeout_ms = 60_000
            request.subscribed_topic_names = [self.topic]
            request.topic_partitions = []
        elif self._news:
            request.topic_partitions = [_Owned(topic_id=t, partitions=p) for t, p in self.owned.items() if p]
        self.connection.send(request, VERSION)

    def receive(self) -> None:
        answer: Any = self.connection.receive()
        if answer.error_code in _UNSETTLED:
            return
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
        self.epoch = answer.member_epoch
        self._news = answer.assignment is not None
        if self._news:
            self.owned = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}


@contextmanager
def members(port: int, topic: str, groups: list[str]) -> Iterator[list[Member]]:
    """One member for each name in `groups`, connected but not joined."""
    with ExitStack() as stack:
        found = []
        for number, group in enumerate(groups):
            connection = stack.enter_context(BlockingConnection("127.0.0.1", port))
            found.append(Member(connection, group, f"member-{number}", topic))
        yield found


def beat(who: list[Member]) -> list[float]:
    """A heartbeat of each at once; microseconds until each answer was read, in the order of the members."""
    sent = []
    for member in who:
        sent.append(time.perf_counter())
        member.send()
    took = []
    for member, at in zip(who, sent, strict=True):
        member.receive()
        took.append((time.perf_counter() - at) * 1e6)
    return took


def settle(who: list[Member], each: int, timeout: float = 300) -> None:
    """Heartbeats until every member owns `each` partitions."""
    deadline = time.perf_counter() + timeout
    while any(member.partitions != each for member in who):
        if time.perf_counter() > deadline:
            raise TimeoutError(f"{sum(m.partitions != each for m in who)} of {len(who)} members are not settled")
        beat(who)
