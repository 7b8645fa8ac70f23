"""The consumer of a process: librdkafka's with read_committed, and with positions of our own.

After a failed operation the consumer goes back to where it began (`rewind`), as every program must that consumes in transactions. So
it remembers the position of each key before the operation.

In a group the library seeks only in assigned partitions; a partition that is assigned again begins at its committed offset.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaException,
)
from confluent_kafka import Consumer as LibraryConsumer
from confluent_kafka import TopicPartition as LibraryPartition

from barnabas.security.client_security import ClientSecurity
from barnabas.verify.librdkafka_settings import steady
from barnabas.verify.producers import TopicPartition

_ENDS_SECONDS = 5.0
_CLASSIC_TIMES = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}


class ConsumerFailed(Exception):
    """The consumer cannot continue."""


class Layout:
    """Maps keys to partitions of topics.

    Args:
        topics: names, in order.
        partitions: of each topic.
    """

    def __init__(self, topics: Iterable[str], partitions: int) -> None:
        self.topics = tuple(topics)
        self.partitions = partitions

    def place(self, key: int) -> TopicPartition:
        return self.topics[key // self.partitions], key % self.partitions

    def key(self, topic: str, partition: int) -> int:
        return self.topics.index(topic) * self.partitions + partition

    def keys(self, topic: str) -> tuple[int, ...]:
        first = self.topics.index(topic) * self.partitions
        return tuple(range(first, first + self.partitions))


class ReadCommittedConsumer:
    """One consumer.

    Args:
        bootstrap: the cluster.
        layout: of the run.
        group: the group it joins when it subscribes.
        group_protocol: `classic`, or `consumer` (KIP-848), where the broker decides about timeouts.
        settings: further settings of the library.
        security: TLS and the login.
    """

    def __init__(
        self,
        bootstrap: str,
        layout: Layout,
        group: str,
        group_protocol: str = "classic",
        settings: Mapping[str, Any] | None = None,
        security: ClientSecurity | None = None,
    ) -> None:
        self.layout = layout
        self.group = group
        self.rebalanced: set[int] = set()
        self.subscribed = False
        self._settings: dict[str, Any] = {
            **steady(bootstrap, security), "group.id": group, "isolation.level": "read_committed", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50, "fetch.error.backoff.ms": 50,
            "group.protocol": group_protocol, **(_CLASSIC_TIMES if group_protocol == "classic" else {}), **(settings or {}),
        }  # fmt: skip
        self.consumer = LibraryConsumer(self._settings)
        self._before: dict[int, int] = {}
        self._positions: dict[int, int] = {}

    def assign(self, keys: Iterable[int], tail: int | None) -> None:
        """Read these keys: old ones from their position, new ones from `tail` records before their end, or from the beginning.

        Raises:
            ConsumerFailed: the end of a key is unknown; nothing has changed.
        """
        kept = {} if self.subscribed else self._positions
        positions: dict[int, int] = {}
        for key in keys:
            if key in kept:
                positions[key] = kept[key]
            elif tail is None:
                positions[key] = OFFSET_BEGINNING
            else:
                low, high = self.ends(key)
                positions[key] = max(low, high - tail)
        if self.subscribed:
            # unsubscribe() takes effect in a later poll, and would then remove this assignment.
            self.consumer.close()
            self.consumer = LibraryConsumer(self._settings)
            self.subscribed = False
        self._positions = positions
        self.consumer.assign([LibraryPartition(*self.layout.place(key), at) for key, at in positions.items()])
        self.begin()

    def subscribe(self, topics: list[str]) -> None:
        """Join the group."""
        if not self.subscribed:
            self.consumer.unassign()
        self.subscribed = True
        self._positions.clear()
        self.consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        self.begin()

    def _assigned(self, consumer: LibraryConsumer, partitions: list[LibraryPartition]) -> None:
        self._moved(partitions)

    def _revoked(self, consumer: LibraryConsumer, partitions: list[LibraryPartition]) -> None:
        self._moved(partitions)

    def _moved(self, partitions: list[LibraryPartition]) -> None:
        for each in partitions:
            key = self.layout.key(each.topic, each.partition)
            self.rebalanced.add(key)
            self._positions.pop(key, None)
            self._before.pop(key, None)

    def begin(self) -> None:
        """Remember where an operation begins."""
        self.rebalanced.clear()
        self._before = dict(self._positions)

    def poll(self, timeout_s: float, most: int = 200) -> dict[int, list[tuple[int, int]]]:
        """Return the records that have arrived: (offset, value) by key.

        Raises:
            ConsumerFailed: the error is not retriable.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        # consume() for many records waits the whole time; so wait for the first one only.
        first = self.consumer.poll(timeout_s)
        for message in [] if first is None else [first, *self.consumer.consume(most - 1, 0)]:
            error = message.error()
            if error is not None:
                if error.retriable() or error.name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT"):
                    continue
                raise ConsumerFailed(str(error))
            key, offset, value = self.read(message)
            found.setdefault(key, []).append((offset, value))
            self._before.setdefault(key, offset)
            self._positions[key] = offset + 1
        return found

    def read(self, message: Any) -> tuple[int, int, int]:
        """Return a record's key, offset and value."""
        return self.layout.key(message.topic(), message.partition()), message.offset(), int(message.value())

    def rewind(self) -> None:
        """Go back to where the operation began.

        Raises:
            ConsumerFailed: a seek failed; the partition's position is unknown.
        """
        for key, position in self._before.items():
            if self._positions.get(key) == position:
                continue
            self._positions[key] = position
            try:
                self.consumer.seek(LibraryPartition(*self.layout.place(key), position))
            except KafkaException as error:
                if self.subscribed:
                    continue  # another member has it now
                raise ConsumerFailed(str(error)) from None

    def group_metadata(self) -> bytes:
        """Return the group metadata for the producer's `send_offsets`."""
        metadata: bytes = self.consumer.consumer_group_metadata()
        return metadata

    def ends(self, key: int) -> tuple[int, int]:
        """Return where a key's log begins, and its last stable offset.

        Raises:
            ConsumerFailed: no broker answers within some seconds.
        """
        deadline = time.monotonic() + _ENDS_SECONDS
        while True:
            try:
                low, high = self.consumer.get_watermark_offsets(LibraryPartition(*self.layout.place(key)), 2)
                return low, high
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise ConsumerFailed(str(error)) from None
                time.sleep(0.02)

    def close(self) -> None:
        """Leave the group and close."""
        self.consumer.close()
