"""The interface of the two producers, and their failures.

The three failures decide the outcome in the history, so a producer raises Refused only if it is certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

TopicPartition = tuple[str, int]


class ProducerError(Exception):
    """A call failed."""


class Abortable(ProducerError):
    """The transaction can only be aborted; the producer stays usable."""


class Refused(ProducerError):
    """It certainly did not happen, and the producer is unusable: it may be fenced."""


class Unknown(ProducerError):
    """It may or may not have happened."""


class Producer(Protocol):
    """One producer. Without a transactional id, only `send`, `flush` and `close` are used.

    Every call ends within the producer's timeout.
    """

    def begin(self) -> None:
        """Begin a transaction."""

    def send(self, topic: str, partition: int, value: bytes) -> None:
        """Send a record, or queue it.

        Raises:
            ProducerError: it is in no log, except after Unknown.
        """

    def flush(self) -> list[int | None]:
        """Wait until everything sent since the last flush is acknowledged.

        Returns:
            The offsets in the order sent; None for an acknowledgement without an offset.

        Raises:
            Abortable: in a transaction.
            Refused, Unknown: otherwise.
        """

    def send_offsets(self, positions: Mapping[TopicPartition, int], group_metadata: bytes) -> None:
        """Add a group's offsets to the transaction.

        Args:
            group_metadata: from confluent-kafka's `Consumer.consumer_group_metadata`.

        Raises:
            Abortable, Refused
        """

    def commit(self) -> None:
        """Commit.

        Raises:
            Abortable: it is not committed yet, and cannot be.
            Refused, Unknown
        """

    def abort(self) -> None:
        """Abort.

        Raises:
            Refused, Unknown: in both cases the transaction is not committed.
        """

    def close(self) -> None:
        """Close without a request to the broker."""
