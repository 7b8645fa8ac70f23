"""The node's view of the metadata: it follows the committed log, owns the image, and passes each change to the publishers.

    committed batches ──► MetadataBatchLoader ──► delta ──► image ──► publishers, then the controller
    a snapshot        ──► an image of its own ──► difference ──┘
    own commits, replayed when they were appended ─────────────┘

- Publishers receive every image once and in order, with the delta that led to it. A publisher that is added late first receives the
  whole image as a delta from nothing.
- A publisher with much to do is a coroutine, which yields to the loop. Nothing else is read or published until it ends, and `image`
  stays the previous one until all publishers have the next one.
- Catch-up gate: nothing is published before everything up to the quorum's high watermark has been read. A node that lags behind
  would otherwise act on an old image, and for example take the logs of new topics for strays.
- A snapshot replaces the image: the delta deletes everything that the snapshot lacks. It may come at any time, on a follower that has
  fallen behind.
- The changes of this node's own controller are not decoded again. The controller hands them over (`appended`) with the append, and they
  are published when they are committed. After a resignation they count for nothing (`forget_appended`): those that are committed later
  are read from the log.
- The loop has its turns while a long log or snapshot is read, and the executor makes the image from it. Later batches that are committed
  together, such as those after a broker's failure, are published after every few hundred records. So clients need not wait for the last
  partition that has a new leader.
- A record that cannot be replayed, or a publisher that fails, stops the node: its state is no longer that of the log.

Source: Kafka's `MetadataLoader`, `MetadataPublisher`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.metadata.batches import CHANGE
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance
from barnabas.metadata.image_difference import difference
from barnabas.metadata.metadata_batch_loader import MetadataBatchLoader, load_snapshot
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.steps import run_on_the_spot
from barnabas.turns import ELEMENT, REPLICA, TURN, is_long, pace

if TYPE_CHECKING:
    from barnabas.raft.seams import ReplicatedLog, SnapshotId

RECORDS_PER_PUBLICATION = TURN // CHANGE
"""After how many records the loader publishes before it reads on: as many as the controller puts into one batch (see `batches`)."""

R = TypeVar("R")

Publisher = Callable[[MetadataDelta, MetadataImage], Coroutine[Any, Any, None] | None]
"""Takes a change and the image after it; the loader awaits the coroutine that it returns, if any."""


class LoaderListener(Protocol):
    """The controller of this node."""

    def on_commit(self, image: MetadataImage) -> None:
        """Everything up to the image's offset is committed, and publishers know it."""

    def on_loader_failed(self, error: Exception) -> None:
        """The loader has stopped for good."""


class OwnChange:
    """A change that this node's controller appended: the delta from the change before, and the image after it."""

    __slots__ = ("base_offset", "delta", "image", "size")

    def __init__(self, base_offset: int, delta: MetadataDelta, image: MetadataImage, size: int) -> None:
        self.base_offset = base_offset
        self.delta = delta
        self.image = image
        self.size = size

    def __repr__(self) -> str:
        return f"<OwnChange base_offset={self.base_offset} {self.delta!r}>"


class MetadataLoader:
    """Follows the metadata log; it is `RaftDriver`'s listener.

    Args:
        quorum_high_watermark: the high watermark of the quorum's leader, -1 while unknown. On a node that lags behind it is higher than
            the end of the node's own log.
        kraft_version: returns that of the quorum; no record of the image has it.
        loop: has its turns meanwhile; without one everything is read in one go.

    Attributes:
        image: the last one that all publishers have; empty before the first.
        listener: hears of each commit after the publishers, and of a failure.
        loaded_bytes: how many bytes of the log have been published.
    """

    listener: LoaderListener

    def __init__(
        self,
        log: ReplicatedLog,
        *,
        quorum_high_watermark: Callable[[], int],
        kraft_version: Callable[[], int] = lambda: 0,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        empty = MetadataImage()
        self.image = empty._replace(features=empty.features._replace(kraft_version=kraft_version()))
        self._kraft_version = kraft_version
        self.loaded_bytes = 0
        self.is_caught_up = False
        self._log = log
        self._quorum_high_watermark = quorum_high_watermark
        self._loop = loop
        self._publishers: list[Publisher] = []
        self._own: deque[OwnChange] = deque()
        self._batches = MetadataBatchLoader()
        self._next_offset = 0
        self._target = 0
        # The changes that are read and not published yet, and the last record of them.
        self._delta = MetadataDelta(self.image)
        self._provenance = self.image.provenance
        # Held while publishers receive a change, and while the next one is read.
        self._publishing = asyncio.Lock()
        self._is_loading = False
        self._closed = False

    def __repr__(self) -> str:
        state = "caught up" if self.is_caught_up else "catching up"
        return f"<MetadataLoader {state} next={self._next_offset} {self.image!r}>"

    def add_publisher(self, publisher: Publisher) -> None:
        """Register a publisher before anything is published."""
        assert not self.is_caught_up, "a publisher of a loader that has published must receive the whole image"
        self._publishers.append(publisher)

    async def add_late_publisher(self, publisher: Publisher) -> None:
        """Register a publisher at any time; if anything is published already, it first receives the whole image."""
        async with self._publishing:
            if self.is_caught_up:
                whole = await self._apart(
                    ELEMENT * len(self.image.topics.by_id), difference, MetadataImage(), self.image
                )
                if (published := publisher(whole, self.image)) is not None:
                    await published
            self._publishers.append(publisher)

    def close(self) -> None:
        """Publish nothing any more."""
        self._closed = True

    # The controller's own changes

    def appended(self, change: OwnChange) -> None:
        """Take over a change that is about to be appended."""
        self._own.append(change)

    def take_back(self) -> None:
        """Forget the last change: the log rejected it."""
        self._own.pop()

    def forget_appended(self) -> None:
        """Forget the changes that are not committed: this node no longer leads."""
        self._own.clear()

    # The quorum's listener

    def on_high_watermark(self, offset: int) -> None:
        self._target = offset
        if not self._is_loading and not self._closed:
            run_on_the_spot(self._load(), self._loop)

    def on_leader(self, epoch: int) -> None:
        """Nothing changes for readers of the metadata."""

    def on_resigned(self, epoch: int) -> None:
        """Nothing changes for readers of the metadata."""

    # Loading

    async def _load(self) -> None:
        self._is_loading = True
        try:
            while self._next_offset < self._target and not self._closed:
                async with self._publishing:
                    await self._load_some()
        except Exception as error:
            # Whatever the reason is: two replicas that read one log must not reach different states.
            self._closed = True
            self.listener.on_loader_failed(error)
        finally:
            self._is_loading = False

    async def _load_some(self) -> None:
        """Publish the first own change if it is next, else read the log."""
        if self._own and self._own[0].base_offset == self._next_offset:
            own = self._own.popleft()
            await self._publish(own.delta, own.image, own.size)
            if self._loop is not None:
                await pace(own.size)  # A hundred changes of partitions have a turn of their own.
        else:
            await self._read()

    async def _read(self) -> None:
        """Read the log up to the high watermark or the first own change, and publish that."""
        snapshot = self._log.latest_snapshot()
        if snapshot is not None and snapshot.end_offset > self._next_offset:
            await self._read_snapshot(snapshot)
        size = 0
        end_offset = min(self._target, self._own[0].base_offset) if self._own else self._target
        count = 0
        for batch in self._log.read(self._next_offset, end_offset):
            if count >= RECORDS_PER_PUBLICATION and self.is_caught_up and not self._batches.is_in_transaction:
                await self._publish_read(size)
                return
            size += len(batch)
            for loaded in self._batches.load((batch,)):
                await self._replay(self._delta, loaded.records)
                count += len(loaded.records)
                self._provenance = MetadataProvenance(loaded.last_offset, loaded.epoch, loaded.append_time_ms)
            if self._closed or self._is_replaced():
                return
        if self._closed or self._is_replaced():
            return
        self._next_offset = end_offset
        if self.is_caught_up or self._next_offset >= self._quorum_high_watermark():
            await self._publish_read(size)
        else:
            self.loaded_bytes += size

    async def _publish_read(self, size: int) -> None:
        """Make the image of all records read so far, and publish it."""
        delta = self._delta
        image = await self._apart(ELEMENT * delta.weight, delta.apply, self._provenance)
        if self._closed:
            return
        await self._publish(delta, image, size)

    def _is_replaced(self) -> bool:
        """Return whether a snapshot of the leader has replaced the log meanwhile; it is to be read next."""
        return self._log.start_offset > self._next_offset

    async def _read_snapshot(self, snapshot: SnapshotId) -> None:
        """Replace the image by a snapshot."""
        delta = MetadataDelta(self.image if not self.is_caught_up else MetadataImage())
        await self._replay(delta, load_snapshot(self._log.read_snapshot(snapshot)))
        # Anything that the snapshot lacks was deleted before it was written.
        if self.is_caught_up:
            image = await self._apart(ELEMENT * delta.weight, delta.apply)
            delta = await self._apart(ELEMENT * delta.weight, difference, self.image, image)
        self._delta = delta
        self._provenance = MetadataProvenance(snapshot.end_offset - 1, snapshot.epoch, -1)
        self._next_offset = snapshot.end_offset
        self._batches = MetadataBatchLoader()

    async def _replay(self, delta: MetadataDelta, records: Iterable[MetadataRecord]) -> None:
        for record in records:
            delta.replay(record)
            if self._loop is not None:
                await pace(REPLICA)

    async def _apart(self, cost: int, function: Callable[..., R], *args: Any) -> R:
        """Make a large image or delta in the executor: both are made of immutable parts."""
        if self._loop is None or not is_long(cost):
            return function(*args)
        return await self._loop.run_in_executor(None, function, *args)

    async def _publish(self, delta: MetadataDelta, image: MetadataImage, size: int) -> None:
        if image.features.kraft_version != (level := self._kraft_version()):
            image = image._replace(features=image.features._replace(kraft_version=level))
        self.is_caught_up = True
        self._next_offset = image.provenance.offset + 1
        self._delta, self._provenance = MetadataDelta(image), image.provenance
        self.loaded_bytes += size
        failure: Exception | None = None
        try:
            for publisher in self._publishers:
                if (published := publisher(delta, image)) is not None:
                    await published
                    if self._closed:
                        return
        except Exception as error:
            failure = error
        self.image = image
        self.listener.on_commit(image)
        if failure is not None:
            raise failure
