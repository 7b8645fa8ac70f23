"""Why the log rejects a call, with Kafka's error codes.

    KafkaError
    ├─ OffsetOutOfRange             OFFSET_OUT_OF_RANGE          below the log start or above the log end
    ├─ MessageTooLarge              MESSAGE_TOO_LARGE            a batch over max.message.bytes
    ├─ RecordListTooLarge           RECORD_LIST_TOO_LARGE        a set of batches over segment.bytes
    ├─ InvalidTimestamp             INVALID_TIMESTAMP            outside message.timestamp.before/after.max.ms
    ├─ InvalidRecords               INVALID_RECORD               with an error per record (KIP-467)
    ├─ OutOfOrderSequence           OUT_OF_ORDER_SEQUENCE_NUMBER a gap in a producer's sequence
    ├─ InvalidProducerEpoch         INVALID_PRODUCER_EPOCH       a newer epoch of the producer has written
    ├─ InvalidTxnState              INVALID_TXN_STATE            a batch that should, or should not, be in a transaction
    ├─ TransactionCoordinatorFenced TRANSACTION_COORDINATOR_FENCED a marker of a coordinator that has been replaced
    └─ KafkaStorageError            KAFKA_STORAGE_ERROR          the disk failed or is full

A corrupt batch raises the record room's `CorruptRecord`. A storage error leaves the log as it was before the call: the
written part of a failed append is cut off before anything else is written.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from barnabas.protocol.errors import ErrorCode, KafkaError


def in_words(error: BaseException) -> str:
    """Return what went wrong in one line for people: the system's words and the path, without a number or a class."""
    if isinstance(error, KafkaError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        # The disk follows no link in place of a file; the system's own words would be "Too many levels of symbolic links".
        words = "a symbolic link stands in its place" if error.errno == errno.ELOOP else error.strerror
        return f"{words} ({error.filename})" if error.filename else words
    return str(error) or type(error).__name__


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turn each OSError of the disk into a KafkaStorageError."""
    try:
        yield
    except OSError as error:
        raise KafkaStorageError(f"cannot read a log: {in_words(error)}") from error


_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def is_of_a_bad_disk(error: BaseException) -> bool:
    """Return whether a call failed because of its disk, and not because of room, memory or open files, which may come back."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__
    return cause is not None and cause.errno not in _PASSING


class OffsetOutOfRange(KafkaError):
    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int, where: str) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset} for partition {where}, but we only have log segments in the range "
            f"{log_start_offset} to {log_end_offset}.",
        )


class MessageTooLarge(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.MESSAGE_TOO_LARGE, message)


class RecordListTooLarge(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.RECORD_LIST_TOO_LARGE, message)


class RecordsRejected(KafkaError):
    """An error that names each bad record: (index in the batch, sentence)."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(code, message, for_client=True)
        self.record_errors = record_errors or []


class InvalidTimestamp(RecordsRejected):
    def __init__(self, message: str, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(ErrorCode.INVALID_TIMESTAMP, message, record_errors)


class InvalidRecords(RecordsRejected):
    def __init__(self, message: str, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message, record_errors)


class OutOfOrderSequence(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)


class InvalidProducerEpoch(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_PRODUCER_EPOCH, message)


class InvalidTxnState(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_TXN_STATE, message)


class TransactionCoordinatorFenced(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.TRANSACTION_COORDINATOR_FENCED, message)


class KafkaStorageError(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
