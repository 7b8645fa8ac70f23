"""The result of a coordinator's operation: records to append, and the response that waits for them.

`CoordinatorRecord` is a key and a value of an internal topic, both messages of the protocol's tables; a value of None is a
tombstone. `CoordinatorResult` is the whole outcome of one operation.

Invariants:
- the records of an atomic result are in one batch: after a crash either all of them are in the log or none is;
- `replay=False` only if the operation has moved the state already: the classic group protocol keeps joins and timers, which are
  not durable, in memory, and its record is a picture of that memory (Kafka: `CoordinatorResult.replayRecords`).

Both are named tuples because every commit makes them: a frozen data class takes three times as long to make.

Sources: Kafka classes `CoordinatorRecord`, `CoordinatorResult`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.protocol.errors import KafkaError

R = TypeVar("R")


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic.

    Args:
        type_id: the record type, which is also the two-byte prefix of the key.
        key: the key message, always of version 0.
        value: the value message, or None for a tombstone.
        value_version: the version that the value is written in (ignored for a tombstone).
    """

    type_id: int
    key: Any
    value: Any | None
    value_version: int = 0


class CoordinatorResult(NamedTuple, Generic[R]):
    """The outcome of one operation.

    Args:
        response: the answer. The client gets it when the records, and all appended before them, are committed.
        records: what to append; may be empty.
        replay: pass the records to `replay` after the append.
        atomic: keep all records in one batch; otherwise they may be split over several.
        on_append: called once with the outcome: None when the records are committed, else the error. A client whose wait has timed
            out does not end it: the records may still be committed.
    """

    response: R
    records: Sequence[CoordinatorRecord] = ()
    replay: bool = True
    atomic: bool = True
    on_append: Callable[[KafkaError | None], None] | None = None
