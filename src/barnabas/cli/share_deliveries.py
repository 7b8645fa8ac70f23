"""The records that a share group was given: how often each was delivered, and its state.

The states are those of Kafka, as the partition's leader wrote them last:

    AVAILABLE      released, or its lock has ended: waits to be delivered again
    ACKNOWLEDGED   accepted, and not behind the start offset yet: a record before it is unfinished
    ARCHIVING      rejected or delivered too often; on its way to the topic of dead letters
    ARCHIVED       rejected or delivered too often: never delivered again

ACQUIRED is never written, so only the leader knows which records members hold now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.cli.failure import failure_of
from barnabas.cli.output import Table
from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.group_offsets import ShareOffset
from barnabas.client.share_states import ShareState
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.state_batches import RecordState
from barnabas.protocol.topic_names import SHARE_GROUP_STATE

HELD_NOW = (
    "The deliveries do not have the records that members hold now: only the leader of a partition knows them. Such records are in "
    "no batch, or stand as they did before."
)
_WRITTEN = (RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVING, RecordState.ARCHIVED)
_PARTITION_COLUMNS = (
    "TOPIC", "PARTITION", "START-OFFSET", "LAG", *(each.name for each in _WRITTEN), "MAX-DELIVERY-COUNT",
)  # fmt: skip
_PARTITION_HIDDEN_FIRST = ("ARCHIVING", "START-OFFSET", "LAG", "ACKNOWLEDGED")
_BATCH_COLUMNS = ("TOPIC", "PARTITION", "FIRST-OFFSET", "LAST-OFFSET", "RECORDS", "STATE", "DELIVERY-COUNT")
_BATCHES_SHOWN = 500


class ShareReading(NamedTuple):
    """The states of a share group that could be read.

    Attributes:
        lags: as the group's coordinator counts them.
        unknown: sentences that say why states are missing.
    """

    states: Mapping[TopicPartition, ShareState]
    lags: Mapping[TopicPartition, int | None]
    unknown: tuple[str, ...] = ()

    def data(self) -> dict[str, object]:
        """Return the states for programs: `deliveries`, and `deliveries_unknown` if any are missing."""
        found: dict[str, object] = {"deliveries": [self._of(where) for where in self.states]}
        return found | ({"deliveries_unknown": list(self.unknown)} if self.unknown else {})

    def _of(self, where: TopicPartition) -> dict[str, object]:
        rows = [row[2:] for row in _batch_rows({where: self.states[where]})]
        names = ("first_offset", "last_offset", "records", "state", "delivery_count")
        partition = Table(_PARTITION_COLUMNS, [self._row(where)]).objects()[0]
        return partition | {"batches": [dict(zip(names, row, strict=True)) for row in rows]}

    def _row(self, where: TopicPartition) -> tuple[object, ...]:
        state = self.states[where]
        counts = dict.fromkeys(_WRITTEN, 0)
        for each in state.batches:
            counts[RecordState(each.delivery_state)] += each.last_offset - each.first_offset + 1
        most = max((each.delivery_count for each in state.batches), default=0)
        start = None if state.start_offset < 0 else state.start_offset
        return (*where, start, self.lags.get(where), *counts.values(), most)

    def tables(self) -> list[Table]:
        """Return the states for people: the counts of each partition, and the batches."""
        tables = []
        if self.states:
            rows = [self._row(where) for where in self.states]
            title = "Deliveries; what members hold now is not stored"
            tables.append(Table(_PARTITION_COLUMNS, rows, title=title, hidden_first=_PARTITION_HIDDEN_FIRST))
        if batches := _batch_rows(self.states):
            left_out = f"; the first {_BATCHES_SHOWN} of {len(batches)}" if len(batches) > _BATCHES_SHOWN else ""
            title = f"Delivered, and not behind the start offset{left_out}"
            tables.append(
                Table(_BATCH_COLUMNS, batches[:_BATCHES_SHOWN], title=title, hidden_first=("LAST-OFFSET", "RECORDS"))
            )
        if self.unknown:
            tables.append(Table(("DELIVERIES-UNKNOWN",), [(" ".join(self.unknown),)], vertical=True))
        return tables


def _batch_rows(states: Mapping[TopicPartition, ShareState]) -> list[tuple[object, ...]]:
    return [
        (*where, *each[:2], each.last_offset - each.first_offset + 1, RecordState(each.delivery_state).name, each[3])
        for where, state in states.items()
        for each in state.batches
    ]


def share_reading(admin: Admin, group_id: str, shared: Mapping[TopicPartition, ShareOffset]) -> ShareReading:
    """Read the states of a share group; what cannot be read becomes a sentence.

    Args:
        shared: the group's offsets, as `Admin.list_share_group_offsets` returns them.
    """
    lags = {where: each.lag for where, each in shared.items()}
    try:
        found = admin.read_share_states(group_id, sorted(shared))
    except KafkaError as error:
        return ShareReading({}, lags, _sentences([error]))
    states = {where: each for where, each in found.items() if isinstance(each, ShareState)}
    return ShareReading(states, lags, _sentences(each for each in found.values() if isinstance(each, KafkaError)))


def _sentences(errors: Iterable[KafkaError]) -> tuple[str, ...]:
    words = (failure_of(each, f"topic {SHARE_GROUP_STATE}").format_message() for each in errors)
    return tuple(dict.fromkeys(f"{each[:1].upper()}{each[1:]}." for each in words))
