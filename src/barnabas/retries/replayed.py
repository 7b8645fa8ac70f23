"""How far a replay is: a record of the compacted topic `__barnabas_replays`, written in the transactions that send its records.

    key    NAME
    value  {"version": 1, "source": "orders", "source_id": …, "target": "test", "target_id": …, "choice": "--from -1h",
            "partitions": {"0": [17, 4210]}, "read": 17, "written": 12}

A partition has its next offset and the end that stood when the replay began. Ids are kept, because a topic that is deleted and created
again begins at offset 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from barnabas.retries.record import Output, Record
from barnabas.retries.versioned_notes import read, written

STATE_TOPIC = "__barnabas_replays"


@dataclass(slots=True)
class Progress:
    """A replay.

    Attributes:
        choice: the options that choose and change records, as they were typed.
        partitions: the next offset and the end of each partition of the source.
        read, written: how many records; a filter or a rewrite may leave some out.
    """

    name: str
    source: str
    source_id: str
    target: str
    target_id: str
    choice: str
    partitions: dict[int, tuple[int, int]]
    read: int = 0
    written: int = 0

    @property
    def is_finished(self) -> bool:
        """Whether every partition was read to its end."""
        return all(position >= end for position, end in self.partitions.values())

    def take(self, record: Record, *, is_written: bool) -> None:
        """Note that a record of the source was taken."""
        self.partitions[record.partition] = (record.offset + 1, self.partitions[record.partition][1])
        self.read += 1
        self.written += is_written

    def finish(self, until: Mapping[int, int] | None = None) -> None:
        """Note that all was read; markers of transactions may be the last of a log.

        Args:
            until: by partition, the offset before which all was read; None for all ends.
        """
        stop = {} if until is None else until
        self.partitions = {
            each: (max(at, min(end, stop.get(each, end))), end) for each, (at, end) in self.partitions.items()
        }

    def note(self) -> Output:
        """Return the record of the state topic."""
        return Output(STATE_TOPIC, written(asdict(self)), self.name.encode(), (), 0)


def read_progress(record: Record) -> Progress | None:
    """Return what a record of the state topic says; None if its replay was forgotten.

    Raises:
        ValueError: a newer barnabas wrote it.
    """
    if record.value is None:
        return None
    found = read(record.value, f"replay {(record.key or b'').decode()}")
    found["partitions"] = {int(each): (at, end) for each, (at, end) in found["partitions"].items()}
    return Progress(**found)
