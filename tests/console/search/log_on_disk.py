"""The records of a topic as its segments on disk have them: what a search is compared with.

It reads the files of a broker that runs, barnabas or Apache Kafka, whose formats are the same, and decides by the markers alone which
transactions were aborted. It shares nothing with the search but the parser of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches


class OnDisk(NamedTuple):
    """A record in a segment.

    Attributes:
        outcome: `committed`, `aborted`, or `open` without a marker behind it.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    is_control: bool
    outcome: str


Log = Mapping[int, list[OnDisk]]
"""By partition, in the order of offsets."""


def log_on_disk(data_dir: Path, topic: str) -> dict[int, list[OnDisk]]:
    """Return all records that the files have, also those before the log's start."""
    found = {}
    for folder in sorted(data_dir.rglob(f"{topic}-*")):
        number = folder.name.removeprefix(f"{topic}-")
        if folder.is_dir() and number.isdigit():
            found[int(number)] = list(_partition(folder, int(number)))
    return found


def _partition(folder: Path, partition: int) -> Iterator[OnDisk]:
    records: list[OnDisk] = []
    running: dict[int, list[int]] = {}
    for path in sorted(folder.glob("*.log")):
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # Compaction has replaced it; who compares looks twice.
            continue
        for position, batch in iter_batches(data):
            for each in iter_records(data, position, header=batch):
                if batch.is_control:
                    outcome = "committed" if each.key is not None and each.key[3] == 1 else "aborted"
                    for place in running.pop(batch.producer_id, ()):
                        records[place] = records[place]._replace(outcome=outcome)
                elif batch.is_transactional:
                    running.setdefault(batch.producer_id, []).append(len(records))
                state = "open" if batch.is_transactional and not batch.is_control else "committed"
                records.append(
                    OnDisk(
                        partition,
                        each.offset,
                        each.timestamp,
                        each.key,
                        each.value,
                        tuple(each.headers),
                        batch.is_control,
                        state,
                    )
                )
    return iter(records)


class Region(NamedTuple):
    """A part of a partition that one page of a search has passed.

    Attributes:
        edge_ms: the time that the record before it counted as.
    """

    begin: int
    end: int
    edge_ms: int | None


def in_order(log: Log, regions: Mapping[int, Region], *, newest_first: bool) -> list[OnDisk]:
    """Return the records of regions in the order that a search promises."""
    placed: list[tuple[int, int, int, OnDisk]] = []
    for partition, region in regions.items():
        records = [each for each in log.get(partition, []) if region.begin <= each.offset < region.end]
        edge_ms = region.edge_ms
        for each in reversed(records) if newest_first else records:
            if edge_ms is None:
                edge_ms = each.timestamp
            edge_ms = min(edge_ms, each.timestamp) if newest_first else max(edge_ms, each.timestamp)
            sign = -1 if newest_first else 1
            placed.append((sign * edge_ms, partition, sign * each.offset, each))
    return [each for *_, each in sorted(placed, key=lambda found: found[:3])]


Passes = Callable[[OnDisk], bool]
