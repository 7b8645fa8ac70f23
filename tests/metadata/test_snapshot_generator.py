"""When snapshots are written, over how many turns, of which image."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.clock import Clock
from barnabas.metadata import snapshots
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance
from barnabas.metadata.metadata_batch_loader import load_snapshot
from barnabas.metadata.snapshot_generator import SnapshotGenerator
from barnabas.metadata.snapshots import SnapshotPolicy
from barnabas.protocol import messages
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.turns import next_turn
from tests.api.quiet_clock import QuietClock
from tests.metadata.controller_harness import ControllerLog
from tests.metadata.test_delta import replay

VOTERS = VoterSet.of([Voter(1, b"d" * 16)])


def image_of(topics: int, offset: int = 10) -> MetadataImage:
    made = [messages.TopicRecord(name=f"t{number}", topic_id=number.to_bytes(16, "big")) for number in range(topics)]
    return replay(MetadataImage(), [*made])._replace(provenance=MetadataProvenance(offset, 3, 7))


class SlowLog(ControllerLog):
    """Writes a snapshot in `turns` turns of the loop; with `error` it fails at the end."""

    turns = 0
    trimmed = 0
    is_writing = False

    async def write_snapshot(self, snapshot: SnapshotId, data: bytes) -> None:
        self.is_writing = True
        for _ in range(self.turns):
            await next_turn()
        if self.error is not None:
            raise self.error
        self.snapshots[snapshot] = data

    def trim(self) -> None:
        self.trimmed += 1


class Node:
    def __init__(self, loop: QuietClock | None = None, max_bytes: int = 100) -> None:
        self.log = SlowLog()
        self.loaded_bytes = 0
        self.policy = SnapshotPolicy(max_bytes, max_interval_ms=0)
        self.generator = SnapshotGenerator(
            self.log,
            VoterSetHistory(VotersFrom(0, VOTERS)),
            self.policy,
            Clock(lambda: 0, lambda: 0),
            lambda: self.loaded_bytes,
            loop,
        )

    def publish(self, image: MetadataImage, size: int) -> None:
        self.loaded_bytes += size
        self.generator.publish(MetadataDelta(image), image)


@pytest.fixture
def loop() -> Iterator[QuietClock]:
    made = QuietClock()
    yield made
    made.close()


def names(data: bytes) -> list[str]:
    return [record.name for record in load_snapshot(data) if isinstance(record, messages.TopicRecord)]


def test_a_snapshot_is_written_when_enough_has_been_published() -> None:
    node = Node()
    node.publish(image_of(1), 60)
    assert node.log.snapshots == {}
    node.publish(image_of(2), 40)
    ((snapshot, data),) = node.log.snapshots.items()
    assert snapshot == SnapshotId(11, 3)
    assert names(data) == ["t0", "t1"]
    assert node.log.trimmed == 1
    node.publish(image_of(3, offset=11), 99)
    assert len(node.log.snapshots) == 1


def test_a_snapshot_is_encoded_batch_by_batch(loop: QuietClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "RECORDS_PER_BATCH", 10)
    encoded: list[int] = []
    count = 0
    encode = snapshots.encode_record

    def counting(record: object, version: int) -> bytes:
        nonlocal count
        count += 1
        return encode(record, version)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshots, "encode_record", counting)
    node = Node(loop)

    async def story() -> None:
        nonlocal count
        node.publish(image_of(100), 100)
        # The answer to the request that made the snapshot due goes first.
        assert count == 0
        while not node.log.snapshots:
            await asyncio.sleep(0)
            encoded.append(count)
            count = 0

    loop.run_until_complete(story())
    assert sum(encoded) == 100
    assert max(encoded) <= 11
    (data,) = node.log.snapshots.values()
    assert len(names(data)) == 100


def test_a_snapshot_is_of_the_image_that_made_it_due(loop: QuietClock) -> None:
    node = Node(loop)
    node.log.turns = 3

    async def story() -> None:
        node.publish(image_of(1), 100)
        await asyncio.sleep(0)
        node.publish(image_of(2, offset=20), 100)
        assert repr(node.generator) == "<SnapshotGenerator since=100 writing=True>"
        await asyncio.sleep(1)
        # Only one is written at a time; the next image has it written.
        assert [names(data) for data in node.log.snapshots.values()] == [["t0"]]
        node.publish(image_of(3, offset=21), 0)
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    assert list(node.log.snapshots) == [SnapshotId(11, 3), SnapshotId(22, 3)]


def test_a_snapshot_under_way_is_given_up_when_the_node_stops(loop: QuietClock) -> None:
    node = Node(loop)

    async def story() -> None:
        node.publish(image_of(1), 100)
        node.generator.close()
        await asyncio.sleep(1)
        node.publish(image_of(1), 100)
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    assert node.log.snapshots == {}


def test_a_log_that_is_closed_while_the_file_is_written_is_not_trimmed(loop: QuietClock) -> None:
    node = Node(loop)
    node.log.turns = 5

    async def story() -> None:
        node.publish(image_of(1), 100)
        while not node.log.is_writing:
            await asyncio.sleep(0)
        node.generator.close()
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    assert len(node.log.snapshots) == 1
    assert node.log.trimmed == 0


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("a bug")])
def test_a_snapshot_that_fails_is_tried_again_when_the_next_is_due(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node()
    node.log.error = error
    node.publish(image_of(1), 100)
    assert "Cannot write a snapshot of the metadata, the log goes on without" in caplog.text
    node.log.error = None
    node.publish(image_of(1), 99)
    assert node.log.snapshots == {}
    node.publish(image_of(1), 1)
    assert len(node.log.snapshots) == 1
