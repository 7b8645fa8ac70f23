"""One scrape: every family of a node as one text, without delaying its requests.

The text for ten thousand partitions takes a good part of a second, in the thread that handles requests. It is therefore made piece by
piece, and the event loop gets its turns in between. The samples of a scrape are from moments that differ a little.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from barnabas.metrics import coordinator_families, process_families, replica_families, topic_families
from barnabas.metrics.exposition import Family
from barnabas.metrics.group_families import GroupFamilies
from barnabas.metrics.node_families import NodeFamilies
from barnabas.metrics.source import PartitionRow, Source, partition_rows
from barnabas.turns import RECORD, pace

__all__ = ["Scraper"]

BYTES = 64
"""Bytes of the text that are made for the cost of one."""


class Scraper:
    """Makes the text; one for a node.

    Args:
        more: returns further families, such as those that clients push.
    """

    def __init__(
        self, source: Source, monotonic_ns: Callable[[], int], more: Callable[[], Iterator[Family]] | None = None
    ) -> None:
        self._source = source
        self._node = NodeFamilies(source, monotonic_ns)
        self._groups = GroupFamilies(source)
        self._more = more
        self._under_way: asyncio.Future[bytearray] | None = None

    async def text(self) -> bytearray:
        """Make the text; concurrent scrapes share one."""
        if self._under_way is None:
            self._under_way = asyncio.ensure_future(self._make())
            self._under_way.add_done_callback(self._made)
        return await asyncio.shield(self._under_way)

    def _made(self, future: asyncio.Future[bytearray]) -> None:
        self._under_way = None
        if not future.cancelled():
            future.exception()

    async def _make(self) -> bytearray:
        # It grows to a hundred megabytes, which to join and encode at the end would take long.
        text = bytearray()
        for part in self._families():
            text += part.encode()
            await pace(RECORD + len(part) // BYTES)
        return text

    def _families(self) -> Iterator[Family]:
        """Yield families, and empty texts where the loop may get a turn."""
        rows: list[PartitionRow] = []
        by_place: dict[tuple[str, int], PartitionRow] = {}
        for row in partition_rows(self._source.services):
            rows.append(row)
            by_place[row.topic, row.number] = row
            yield ""
        cluster_name = self._source.services.cluster_id
        yield from self._node.families()
        yield from replica_families.families(self._source.services.replica_manager, rows)
        yield from topic_families.families(self._source, rows, cluster_name)
        yield from self._groups.families(by_place, cluster_name)
        yield from self._coordinators(rows)
        if self._more is not None:
            yield from self._more()
        yield from process_families.families()

    def _coordinators(self, rows: list[PartitionRow]) -> Iterator[Family]:
        services = self._source.services
        now_ms = services.now_ms()
        yield from coordinator_families.transactions(services.transaction_coordinator, rows, now_ms)
        share_partitions = self._source.share_partitions()
        if share_partitions is not None:
            yield from coordinator_families.share_groups(share_partitions)
        yield from coordinator_families.cleaner(services.replica_manager.log_manager.cleaner, now_ms)
