"""What a coordinator's operation gives back: records to append, and the answer that waits for them (control plane).

`CoordinatorRecord` is a key and a value of an internal topic, both messages of the protocol's tables; a value of None is a
tombstone. `CoordinatorResult` is the whole outcome of one operation.

Invariants:
- the records of one atomic result are in one batch, so that they are found together after a crash, or not at all;
- `replay=False` only where the state is already moved: the classic group protocol keeps joins and timers, which are not
  durable, in memory, and its record is a picture of that memory (Kafka: `CoordinatorResult.replayRecords`).

Both are named tuples because every commit makes them: a frozen data class takes three times as long to make.

Sources: Kafka classes `CoordinatorRecord`, `CoordinatorResult`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from barnabas.protocol.errors import KafkaError

R = TypeVar("R")


class RecordMessage(Protocol):
    """A coordinator key or value, as `barnabas.protocol.messages` builds them."""

    def encode(self, version: int) -> bytes: ...


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
        records: what to append; may be empty.
        response: the answer, given out once the records (and all appended before them) are committed.
        replay: hand the records to `replay` after the append.
        atomic: keep all records in one batch; otherwise they may be split over several.
        on_append: called once, with None when the records are committed, or with the error that refused them.
    """

    response: R
    records: Sequence[CoordinatorRecord] = ()
    replay: bool = True
    atomic: bool = True
    on_append: Callable[[KafkaError | None], None] | None = None
