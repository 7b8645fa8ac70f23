"""Where a record goes that failed, or that is held back behind another.

A record keeps its partition's number in all topics of a policy, modulo their number of partitions: records of one partition, and so of
one key, stay in one partition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.retries.headers import FailureHeaders, read_failure, without_failure, write_failure
from barnabas.retries.policy import RetryPolicy
from barnabas.retries.record import Output, Record


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record that a consumer got.

    Attributes:
        record: as the user's function gets it.
        failure: the reason, from its headers; empty for a record of the source topic.
        retry: which retry's topic it comes from; 0 is the source topic.
        is_ours: False if another group's member sent it to the retry topic.
    """

    record: Record
    failure: FailureHeaders
    retry: int
    is_ours: bool

    @property
    def due_ms(self) -> int:
        """When to try the record; 0 is immediately."""
        return (self.failure.due_ms or 0) if self.retry and self.is_ours else 0


class Router:
    """The decisions of one group under one policy.

    Args:
        partitions: how many partitions each retry topic and the dead-letter topic has; None leaves a record's partition to its key.
    """

    def __init__(self, policy: RetryPolicy, group: str, partitions: dict[str, int] | None = None) -> None:
        self._policy = policy
        self._group = group
        self._partitions = partitions

    def __repr__(self) -> str:
        return f"<Router group={self._group} dead_letter={self._policy.dead_letter}>"

    def arrival(self, record: Record) -> Arrival:
        """Return a consumed record with its place in the source topic, if it comes from a retry topic."""
        retry = self._policy.retry_of(record.topic)
        if not retry:
            return Arrival(record, FailureHeaders(), 0, True)
        failure = read_failure(record.headers) or FailureHeaders()
        if failure.topic is None or failure.partition is None or failure.offset is None:
            # Nobody but a user sends such a record: it is tried as what it is.
            failure = replace(failure, topic=record.topic, partition=record.partition, offset=record.offset)
        assert failure.topic is not None
        assert failure.partition is not None
        assert failure.offset is not None
        original = Record(
            failure.topic,
            failure.partition,
            failure.offset,
            record.timestamp_ms if failure.timestamp_ms is None else failure.timestamp_ms,
            record.key,
            record.value,
            without_failure(record.headers),
            (failure.attempts or 0) + 1,
        )
        return Arrival(original, failure, retry, failure.group in (None, self._group))

    def retry_after(self, arrival: Arrival, error: Exception) -> int:
        """Return which retry follows a failed attempt; 0 is the dead-letter topic."""
        attempts = arrival.record.attempt
        if attempts > self._policy.total_retries or isinstance(error, self._policy.not_retried):
            return 0
        return attempts

    def failed(self, arrival: Arrival, error: Exception, now_ms: int) -> Output:
        """Return the record of a failed attempt, for its retry topic or the dead-letter topic."""
        retry = self.retry_after(arrival, error)
        first = arrival.failure.first_failure_ms
        failure = replace(
            self._origin(arrival.record),
            attempts=arrival.record.attempt,
            error=_class_name(error),
            message=str(error),
            first_failure_ms=now_ms if first is None else first,
            last_failure_ms=now_ms,
            due_ms=now_ms + self._policy.delay_ms(retry) if retry else None,
        )
        return self._output(arrival.record, failure, retry)

    def held_until(self, arrival: Arrival, due_ms: int, now_ms: int) -> tuple[Output, int]:
        """Return a record, as it is, for the topic where it waits for a time, or for a part of it; and which retry's topic that is.

        That is the topic with the longest delay that ends before the time. A shorter wait takes the topic with the shortest delay.

        Raises:
            ValueError: the policy has no retries, so no topic to wait in.
        """
        delays = {self._policy.delay_ms(retry): retry for retry in range(self._policy.total_retries, 0, -1)}
        if not delays:
            raise ValueError("a policy without retries has no topic in which a record may wait: give it delays")
        delay_ms = max((each for each in delays if each <= due_ms - now_ms), default=min(delays))
        retry = delays[delay_ms]
        return self.held_back(arrival, retry, min(due_ms, now_ms + delay_ms)), retry

    def held_back(self, arrival: Arrival, retry: int, due_ms: int = 0) -> Output:
        """Return a record, as it is, for the end of another retry's topic: behind the record that it waits for, or until a time."""
        origin = self._origin(arrival.record)
        failure = replace(
            arrival.failure,
            topic=origin.topic,
            partition=origin.partition,
            offset=origin.offset,
            timestamp_ms=origin.timestamp_ms,
            group=self._group,
            attempts=arrival.record.attempt - 1,
            due_ms=due_ms,
        )
        return self._output(arrival.record, failure, retry)

    def _origin(self, record: Record) -> FailureHeaders:
        return FailureHeaders(record.topic, record.partition, record.offset, record.timestamp_ms, self._group)

    def _output(self, record: Record, failure: FailureHeaders, retry: int) -> Output:
        topic = self._policy.retry_topics[retry - 1] if retry else self._policy.dead_letter
        headers = (*record.headers, *write_failure(failure))
        partition = None if self._partitions is None else record.partition % self._partitions[topic]
        return Output(topic, record.value, record.key, headers, partition)


def _class_name(error: Exception) -> str:
    kind = type(error)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
