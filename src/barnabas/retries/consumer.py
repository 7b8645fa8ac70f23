"""A consumer whose failed records are tried again later, and end in a dead-letter topic.

    source topic ──┬── the function returns ──▶ its outputs            ┐
                   └── it raises ──▶ retry topic 1 … n, dead letters   ├─ one transaction
                                     the group's new positions         ┘

One consumer reads the source topics and the retry topics, as a member of one group. In each step it takes the records that are due, calls
the function for each, and then sends everything in one transaction: a record is either where it was, or where it goes, never both and
never nowhere. A step that dies before its commit leaves no trace in Kafka, but the function has run: its effects elsewhere may happen
twice.

Limits: the group is of the classic type and its assignment is eager (`range`), so that a rebalance takes all partitions away.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.retries.arrivals import Arrivals
from barnabas.retries.committed_records import READER_SETTINGS, Where, log_ends, read_committed
from barnabas.retries.forwarding import Forwarder, GroupWentOn
from barnabas.retries.held_keys import HeldKeys
from barnabas.retries.policy import RetryPolicy
from barnabas.retries.record import Later, Output, Record
from barnabas.retries.routing import Arrival, Router
from barnabas.retries.topics import ensure_topics

Function = Callable[[Record], Iterable[Output] | None]

_BATCH_RECORDS = 500
_STEP_SECONDS = 1.0
_PRODUCER_SETTINGS = {
    # A transaction is open only while it is sent; a dead consumer's holds the others back no longer than this.
    "transaction.timeout.ms": 15_000,
    # librdkafka (seen with 2.16) may wait for a coordinator whose node was stopped until another connection changes. It closes idle ones
    # itself; the first or one of the next closes ends the wait (docs/delivery-guarantees.md). Less would cut slow requests off.
    "connections.max.idle.ms": 5_000,
    "partitioner": "murmur2_random",
    # The broker knows the limit, the library does not.
    "message.max.bytes": 1_000_000_000,
}
_OURS = {"enable.auto.commit", "isolation.level", "partition.assignment.strategy", "group.protocol", "transactional.id"}
_CONSUMERS_ONLY = (
    "group.", "auto.", "session.", "heartbeat.", "max.poll.", "fetch.", "max.partition.", "queued.", "isolation.", "check.crcs",
    "enable.auto.", "enable.partition.eof", "offset.", "partition.assignment.",
)  # fmt: skip


class RetryingConsumer:
    """A consumer that tries failed records again after delays, and at last writes them to a dead-letter topic; exactly once.

    Args:
        settings: librdkafka's, with `bootstrap.servers` and `group.id`; the producer gets all but the settings of consumers.
        topics: the source topics, which must exist; the policy's topics are created if they do not exist.
        policy: delays, retries and dead-letter topic.
        hold_keys: hold the later records of a key back while one is in a retry topic.
        transactional_id: of this instance alone. A fixed id ends the open transaction of a killed predecessor immediately; the
            default is made of the group and `group.instance.id`, or new in each process.
        now_ms: the clock for delays.
        consumer, producer: make the library's clients; seams for tests.

    Raises:
        ValueError: a setting is missing or contradicts the promises of this class.
        MissingTopic: a source topic does not exist.
        KafkaException: the brokers cannot be reached, or reject a request.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        policy: RetryPolicy,
        *,
        hold_keys: bool = False,
        transactional_id: str | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        consumer: Callable[[dict[str, Any]], Consumer] = Consumer,
        producer: Callable[[dict[str, Any]], Producer] = Producer,
    ) -> None:
        _check_settings(settings, topics, policy)
        self._settings = {"auto.offset.reset": "earliest", **settings, "enable.auto.commit": False}
        self._settings |= {"isolation.level": "read_committed", "partition.assignment.strategy": "range"}
        self._topics = list(topics)
        self._policy = policy
        self._now_ms = now_ms
        self._make_consumer = consumer
        self._admin = AdminClient(_common(settings))
        self._partitions = ensure_topics(self._admin, self._topics, policy)
        self._held = HeldKeys() if hold_keys else None
        if hold_keys:
            _check_partitions(self._partitions)
        self._router = Router(policy, str(settings["group.id"]), self._partitions)
        self._arrivals = Arrivals(self._router)
        self._paused: set[Where] = set()
        self._failure: Exception | None = None
        self._is_stopping = False
        instance = settings.get("group.instance.id") or uuid.uuid4()
        own_id = {"transactional.id": transactional_id or f"{settings['group.id']}-{instance}"}
        self._forwarder = Forwarder(producer({**_PRODUCER_SETTINGS, **_common(settings), **own_id}))
        self._consumer = consumer(self._settings)
        self._subscribe()

    def __repr__(self) -> str:
        return f"<RetryingConsumer group={self._settings['group.id']} topics={','.join(self._topics)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, function: Function) -> None:
        """Call the function for every record, until `stop`.

        Args:
            function: gets a `Record`; the `Output`s that it returns are produced in the transaction that moves the group on. `Later`
                is no attempt, the record comes again; any other `Exception` is a failed one.

        Raises:
            KafkaException: the consumer or the producer cannot continue, for example after another process took over its transactional id.
        """
        while not self._is_stopping:
            self.step(function)

    def stop(self) -> None:
        """End `run` after the step that it is in; may be called in another thread, in a signal's handler, or in the function."""
        self._is_stopping = True

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def step(self, function: Function, timeout_s: float = 1.0) -> int:
        """Wait for records that are due, call the function for them and commit, once.

        Args:
            timeout_s: how long to wait if there are none.

        Returns:
            How many records were dealt with.
        """
        self._receive(timeout_s)
        outputs: list[Output] = []
        positions: dict[Where, int] = {}
        count = 0
        deadline = time.monotonic() + _STEP_SECONDS
        for where, offset, arrival in self._arrivals.take(self._now_ms()):
            outputs += self._results(arrival, function)
            positions[where] = offset + 1
            count += 1
            if count >= _BATCH_RECORDS or time.monotonic() > deadline:
                break
        if positions:
            self._commit(outputs, positions)
        return count

    def _commit(self, outputs: list[Output], positions: dict[Where, int]) -> None:
        wanted = [TopicPartition(*where, offset) for where, offset in positions.items()]
        try:
            self._forwarder.send(outputs, wanted, self._consumer.consumer_group_metadata())
        except GroupWentOn:
            self._forget()
            self._consumer.unsubscribe()
            self._subscribe()

    def _results(self, arrival: Arrival, function: Function) -> list[Output]:
        """Return the outputs of the function for a record, or the record itself for another topic."""
        if not arrival.is_ours:
            return []
        if self._held is not None and (retry := self._held.waits_for(arrival.record)):
            self._held.put(arrival.record, retry)
            return [self._router.held_back(arrival, retry)]
        try:
            outputs = list(function(arrival.record) or ())
            retry = 0
        except Later as later:
            waiting, retry = self._router.held_until(arrival, later.due_ms, self._now_ms())
            outputs = [waiting]
        except Exception as error:  # whatever the user's function raises
            outputs = [self._router.failed(arrival, error, self._now_ms())]
            retry = self._router.retry_after(arrival, error)
        if self._held is not None:
            self._held.put(arrival.record, retry)
        return outputs

    def _receive(self, timeout_s: float) -> None:
        """Wait for records, but not longer than until one is due that is already here."""
        now_ms = self._now_ms()
        not_due = self._arrivals.not_due(now_ms)
        self._pause(set(not_due))
        count = _BATCH_RECORDS
        if self._arrivals.has_due(now_ms):
            # The group's coordinator must hear of this consumer, and records that are here come first.
            count, timeout_s = 1, 0.0
        elif not_due:
            timeout_s = min(timeout_s, (min(not_due.values()) - now_ms) / 1000)
        for message in self._consumer.consume(count, timeout_s):
            error = message.error()
            if error is None:
                self._arrivals.add(message)
            elif not error.retriable() and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        if self._failure is not None:
            raise self._failure

    def _pause(self, wanted: set[Where]) -> None:
        """Pause the partitions that wait, and resume the others."""
        if more := wanted - self._paused:
            self._consumer.pause([TopicPartition(*where) for where in more])
        if fewer := self._paused - wanted:
            self._consumer.resume([TopicPartition(*where) for where in fewer])
        self._paused = wanted

    def _subscribe(self) -> None:
        topics = [*self._topics, *self._policy.retry_topics]
        self._consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # An exception in a callback of the library would be lost in it.
        try:
            consumer.assign(self._beginnings(consumer, partitions))
        except Exception as failure:
            self._failure = failure

    def _beginnings(self, consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
        self._forget()
        committed = consumer.committed(partitions, timeout=60.0) if partitions else []
        for each in committed:
            if each.error is not None:
                raise KafkaException(each.error)
            if each.offset < 0 and self._policy.retry_of(each.topic):
                # A record that is there was sent by this group: it must not be passed over, whatever `auto.offset.reset` is.
                each.offset = OFFSET_BEGINNING
        if self._held is not None:
            self._read_held({(each.topic, each.partition): each.offset for each in committed}, self._held)
        return committed

    def _read_held(self, positions: dict[Where, int], held: HeldKeys) -> None:
        retries = {where: offset for where, offset in positions.items() if self._policy.retry_of(where[0])}
        owned = {where for where in positions if where not in retries}
        if missing := {
            (topic, number)
            for _, number in owned
            for topic in self._policy.retry_topics
            if (topic, number) not in retries
        }:
            topic, number = min(missing)
            raise RuntimeError(
                f"hold_keys needs partition {number} of {topic} and of the source topic in one consumer: "
                "all members of the group must read the same topics"
            )
        reader = self._make_consumer({**self._settings, **READER_SETTINGS})
        try:
            # Only the partitions' owner writes there, and the group's earlier owner can no longer commit.
            for record in read_committed(reader, retries, log_ends(self._admin, retries)):
                arrival = self._router.arrival(record)
                if arrival.is_ours:
                    held.put(arrival.record, arrival.retry)
        finally:
            reader.close()

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._forget()

    def _forget(self) -> None:
        self._arrivals.clear()
        self._paused = set()
        if self._held is not None:
            self._held.clear()


def _check_settings(settings: Mapping[str, Any], topics: Sequence[str], policy: RetryPolicy) -> None:
    for name in ("bootstrap.servers", "group.id"):
        if not settings.get(name):
            raise ValueError(f"{name} is missing in the settings")
    for name in sorted(_OURS & settings.keys()):
        raise ValueError(f"{name} is set by RetryingConsumer: leave it out")
    if isinstance(topics, str) or not topics:
        raise ValueError('topics is a list of names: write ["orders"]')
    for topic in (*policy.retry_topics, policy.dead_letter):
        if topic in topics:
            raise ValueError(f"topic {topic} is one of the policy's: name only the source topics")


def _check_partitions(partitions: Mapping[str, int]) -> None:
    if len(set(partitions.values())) > 1:
        counts = ", ".join(f"{topic} has {count}" for topic, count in partitions.items())
        raise ValueError(f"hold_keys needs the same number of partitions in all topics: {counts}")


def _common(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not a consumer's alone."""
    return {name: value for name, value in settings.items() if not name.startswith(_CONSUMERS_ONLY)}
