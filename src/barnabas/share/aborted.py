"""Records of aborted transactions, which members of a share group with read_committed do not get.

A consumer filters aborted records itself. A member of a share group does not, since a record that it gets counts as delivered. So the
leader acquires whole ranges, archives the batches of aborted transactions in them, and delivers the rest.

Source: Kafka's `SharePartition.fetchAbortedTransactionRecordBatches`; KIP-932, KIP-98.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.records.record_batch import BatchHeader
from barnabas.share.window import Acquired

__all__ = ["aborted_ranges", "without"]


def aborted_ranges(
    headers: Sequence[BatchHeader], aborted: Iterable[tuple[int, int]], abort_markers: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return base and last offset of the record batches that belong to aborted transactions.

    Args:
        headers: the headers of the batches read, control batches among them.
        aborted: producer id and first offset of each aborted transaction.
        abort_markers: producer id and offset of each abort marker among the batches.
    """
    waiting = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    if not waiting:
        return []
    markers = set(abort_markers)
    open_producers: set[int] = set()
    found = []
    for header in headers:
        if not header.has_producer:
            continue
        while waiting and waiting[-1][1] <= header.last_offset:
            open_producers.add(waiting.pop()[0])
        if header.is_control:
            if (header.producer_id, header.base_offset) in markers:
                open_producers.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in open_producers:
            found.append((header.base_offset, header.last_offset))
    return found


def without(acquired: Iterable[Acquired], first: int, last: int) -> list[Acquired]:
    """Return the acquired ranges without one range."""
    rest = []
    for part in acquired:
        if part.last < first or part.first > last:
            rest.append(part)
            continue
        if part.first < first:
            rest.append(part._replace(last=first - 1))
        if part.last > last:
            rest.append(part._replace(first=last + 1))
    return rest
