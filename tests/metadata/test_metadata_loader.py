"""The loader: when publishers hear of what, over how many turns, with snapshots, and with the controller's own changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.metadata import metadata_loader
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance
from barnabas.metadata.metadata_loader import MetadataLoader, OwnChange
from barnabas.metadata.record_codec import MetadataRecord, UnknownRecord, encode_record
from barnabas.metadata.snapshots import snapshot_batches
from barnabas.protocol import messages
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import VoterSet
from barnabas.records.builder import build_batch
from barnabas.steps import run_on_the_spot
from barnabas.turns import ELEMENT, REPLICA, TURN, next_turn
from tests.api.held_executor import HeldExecutor
from tests.api.quiet_clock import QuietClock
from tests.metadata.controller_harness import ControllerLog
from tests.metadata.test_delta import replay
from tests.short_turns import set_turn


def topic(number: int) -> list[MetadataRecord]:
    topic_id = number.to_bytes(16, "big")
    return [
        messages.TopicRecord(name=f"t{number}", topic_id=topic_id),
        messages.PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1),
    ]


class Node:
    """A loader over a log that holds a batch for each topic; notes what is published and what its listener hears."""

    def __init__(self, topics: int = 0, loop: QuietClock | None = None) -> None:
        self.log = ControllerLog()
        self.high_watermark = -1
        self.published: list[tuple[MetadataDelta, MetadataImage]] = []
        self.heard: list[object] = []
        self.loader = MetadataLoader(self.log, quorum_high_watermark=lambda: self.high_watermark, loop=loop)
        self.loader.listener = self
        self.loader.add_publisher(lambda delta, image: self.published.append((delta, image)))
        self.append(messages.FeatureLevelRecord(name="metadata.version", feature_level=33))
        for number in range(1, topics + 1):
            self.append(*topic(number))

    def append(self, *records: MetadataRecord) -> int:
        """Write a batch and return the end of the log."""
        values = [(7, None, encode_record(record, 33), ()) for record in records]
        batch = build_batch(values, base_offset=self.log.end_offset, leader_epoch=1)
        self.log.append(batch, 1)
        return self.log.end_offset

    def commit(self, offset: int, of_quorum: int | None = None) -> None:
        self.high_watermark = offset if of_quorum is None else of_quorum
        self.loader.on_high_watermark(offset)

    def on_commit(self, image: MetadataImage) -> None:
        self.heard.append(image.provenance.offset)

    def on_loader_failed(self, error: Exception) -> None:
        self.heard.append(error)

    def topics(self) -> list[str]:
        return sorted(self.loader.image.topics.by_name)


@pytest.fixture
def loop() -> Iterator[QuietClock]:
    made = QuietClock()
    yield made
    made.close()


def created(delta: MetadataDelta) -> list[str]:
    return [] if delta.topics is None else [each.name for each in delta.topics.created()]


def test_nothing_is_published_before_all_that_the_quorum_has_committed_is_read() -> None:
    node = Node(topics=3)
    late: list[MetadataImage] = []
    node.commit(3, of_quorum=7)
    run_on_the_spot(node.loader.add_late_publisher(lambda delta, image: late.append(image)), None)
    node.commit(5, of_quorum=7)
    assert (node.published, node.heard, late) == ([], [], [])
    assert repr(node.loader).startswith("<MetadataLoader catching up next=5 <MetadataImage offset=-1")
    node.commit(7)
    ((delta, image),) = node.published
    assert created(delta) == ["t1", "t2", "t3"]
    assert image.provenance == MetadataProvenance(6, 1, 7)
    assert late == [image]
    assert node.heard == [6]


def test_while_the_high_watermark_is_unknown_nothing_is_published() -> None:
    node = Node(topics=1)
    node.commit(3, of_quorum=99)
    assert not node.loader.is_caught_up
    assert node.topics() == []


def test_after_the_first_image_a_lag_hides_nothing() -> None:
    node = Node(topics=3)
    node.commit(3)
    node.commit(5, of_quorum=7)
    assert [created(delta) for delta, _ in node.published] == [["t1"], ["t2"]]
    assert node.loader.loaded_bytes == sum(map(len, node.log.batches[:-1]))


def test_a_late_publisher_receives_the_whole_image(loop: QuietClock) -> None:
    node = Node(topics=2, loop=loop)
    node.commit(5)
    heard: list[tuple[list[str], MetadataImage]] = []
    run_on_the_spot(node.loader.add_late_publisher(lambda delta, image: heard.append((created(delta), image))), None)
    assert heard == [(["t1", "t2"], node.loader.image)]


def own(node: Node, number: int) -> OwnChange:
    """Append a topic as the node's controller does: the change is handed over, and then appended."""
    base_offset = node.log.end_offset
    delta = MetadataDelta(node.loader.image)
    for record in topic(number):
        delta.replay(record)
    change = OwnChange(base_offset, delta, delta.apply(MetadataProvenance(base_offset + 1, 1, 7)), 100)
    node.loader.appended(change)
    node.append(*topic(number))
    return change


def test_own_changes_are_published_as_they_were_handed_over() -> None:
    node = Node()
    node.commit(1)
    change = own(node, 1)
    assert node.topics() == []
    node.commit(3)
    delta, image = node.published[-1]
    assert (delta is change.delta, image is change.image) == (True, True)
    assert node.loader.image is change.image


def test_what_was_appended_before_a_resignation_is_read_from_the_log() -> None:
    node = Node()
    node.commit(1)
    change = own(node, 1)
    node.loader.forget_appended()
    node.commit(3)
    delta, _ = node.published[-1]
    assert created(delta) == ["t1"]
    assert delta is not change.delta


def test_records_before_an_own_change_are_read_first() -> None:
    node = Node()
    node.commit(1)
    node.append(messages.NoOpRecord())
    own(node, 1)
    node.commit(node.log.end_offset)
    assert node.heard == [0, 1, 3]
    assert node.topics() == ["t1"]


def test_a_change_that_the_log_rejects_is_taken_back() -> None:
    node = Node()
    node.commit(1)
    change = own(node, 1)
    node.log.batches.pop()
    node.loader.take_back()
    node.append(*topic(2))
    node.commit(3)
    assert node.topics() == ["t2"]
    assert repr(change) == "<OwnChange base_offset=1 <MetadataDelta since=0 changed=['topics']>>"


def snapshot_of(*numbers: int, end_offset: int) -> tuple[SnapshotId, bytes]:
    records: list[MetadataRecord] = [messages.FeatureLevelRecord(name="metadata.version", feature_level=33)]
    image = replay(MetadataImage(), [*records, *(record for number in numbers for record in topic(number))])
    return SnapshotId(end_offset, 1), b"".join(snapshot_batches(image, VotersFrom(-1, VoterSet(()), 0)))


def test_a_snapshot_deletes_what_it_lacks() -> None:
    node = Node(topics=2)
    node.commit(5)
    snapshot, data = snapshot_of(2, 3, end_offset=40)
    node.log.snapshots[snapshot] = data
    node.log.trim()
    node.append(*topic(4))
    node.commit(42)
    delta, image = node.published[-1]
    assert delta.topics is not None
    assert [each.name for each in delta.topics.deleted.values()] == ["t1"]
    assert created(delta) == ["t3", "t4"]
    assert image.provenance.offset == 41
    assert node.topics() == ["t2", "t3", "t4"]


def test_a_snapshot_during_the_catch_up_replaces_what_was_read() -> None:
    node = Node(topics=2)
    node.commit(5, of_quorum=40)
    snapshot, data = snapshot_of(3, end_offset=40)
    node.log.snapshots[snapshot] = data
    node.log.trim()
    node.commit(40)
    ((delta, _),) = node.published
    assert created(delta) == ["t3"]
    assert node.topics() == ["t3"]


def test_a_snapshot_that_replaces_the_log_while_it_is_read_is_read_next(
    loop: QuietClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_turn(monkeypatch, 4 * REPLICA)
    node = Node(topics=10, loop=loop)

    async def story() -> None:
        node.commit(3)
        assert node.heard == [2]
        node.commit(21)
        await asyncio.sleep(0)
        assert node.heard == [2]
        snapshot, data = snapshot_of(3, 4, end_offset=40)
        node.log.snapshots[snapshot] = data
        node.log.trim()
        node.commit(40)
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    assert node.topics() == ["t3", "t4"]
    assert node.heard == [2, 39], "no image of half a log"


def test_a_long_log_is_read_over_many_turns(loop: QuietClock, monkeypatch: pytest.MonkeyPatch) -> None:
    set_turn(monkeypatch, 4 * REPLICA)
    node = Node(topics=10, loop=loop)
    replayed: list[int] = []
    count = 0
    replay_one = MetadataDelta.replay

    def counting(delta: MetadataDelta, record: MetadataRecord) -> None:
        nonlocal count
        count += 1
        replay_one(delta, record)

    monkeypatch.setattr(MetadataDelta, "replay", counting)

    async def story() -> None:
        nonlocal count
        node.commit(21)
        assert node.published == []
        while not node.published:
            replayed.append(count)
            count = 0
            await asyncio.sleep(0)

    loop.run_until_complete(story())
    # The first record that is too much for a turn is replayed all the same, and paid for in the next.
    assert [each for each in replayed if each] == [5, 4, 4, 4, 4]
    assert len(node.topics()) == 10


def test_batches_that_are_committed_together_are_published_in_parts(
    loop: QuietClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert metadata_loader.RECORDS_PER_PUBLICATION * REPLICA >= TURN
    monkeypatch.setattr(metadata_loader, "RECORDS_PER_PUBLICATION", 4)
    set_turn(monkeypatch, 2 * REPLICA)
    node = Node(topics=5, loop=loop)
    in_turns: list[int] = []

    async def story() -> None:
        node.commit(1)
        node.commit(11)
        while len(node.topics()) < 5:
            if len(node.topics()) not in in_turns:
                in_turns.append(len(node.topics()))
            await asyncio.sleep(0)

    loop.run_until_complete(story())
    assert in_turns == [0, 2, 4], "others have a turn between two topics and the next two, of two records each"
    assert node.heard == [0, 4, 8, 10]
    assert [created(delta) for delta, _ in node.published[1:]] == [["t1", "t2"], ["t3", "t4"], ["t5"]]


def test_a_metadata_transaction_is_not_published_in_parts(loop: QuietClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_loader, "RECORDS_PER_PUBLICATION", 1)
    node = Node(loop=loop)
    node.append(*topic(1), messages.BeginTransactionRecord(name="all"))
    node.append(*topic(2))
    node.append(*topic(3), messages.EndTransactionRecord())

    async def story() -> None:
        node.commit(1)
        node.commit(node.log.end_offset)
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    assert [created(delta) for delta, _ in node.published[1:]] == [["t1", "t2", "t3"]]


def test_own_changes_of_many_partitions_have_a_turn_each(loop: QuietClock, monkeypatch: pytest.MonkeyPatch) -> None:
    set_turn(monkeypatch, 99)
    node = Node(loop=loop)

    async def story() -> None:
        node.commit(1)
        changes = [own(node, number) for number in (1, 2)]
        node.commit(node.log.end_offset)
        assert [delta for delta, _ in node.published[1:]] == [changes[0].delta]
        node.loader.forget_appended()
        await asyncio.sleep(1)
        assert created(node.published[-1][0]) == ["t2"], "it has resigned, and read the log"

    loop.run_until_complete(story())
    assert node.heard == [0, 2, 4]


def test_small_own_changes_are_published_in_one_turn(loop: QuietClock) -> None:
    node = Node(loop=loop)

    async def story() -> None:
        node.commit(1)
        changes = [own(node, number) for number in (1, 2)]
        node.commit(node.log.end_offset)
        assert [delta for delta, _ in node.published[1:]] == [change.delta for change in changes]

    loop.run_until_complete(story())


@pytest.fixture
def held() -> Iterator[HeldExecutor]:
    made = HeldExecutor()
    yield made
    made.close()


def rest(loop: QuietClock) -> None:
    loop.run_until_complete(asyncio.sleep(1))


@pytest.mark.parametrize("topics", [20, 40])
def test_only_a_large_image_is_made_in_the_executor(
    held: HeldExecutor, monkeypatch: pytest.MonkeyPatch, topics: int
) -> None:
    # Each topic has a partition.
    set_turn(monkeypatch, 60 * ELEMENT)
    node = Node(topics=topics, loop=held)
    held.call_soon(node.commit, node.log.end_offset)
    held.held = []
    rest(held)
    assert held.apart == (["MetadataDelta.apply"] if topics == 40 else [])
    assert len(node.topics()) == (0 if topics == 40 else 20)
    held.let_go()
    rest(held)
    assert len(node.topics()) == topics


def test_a_large_snapshot_is_compared_in_the_executor(held: HeldExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(topics=2, loop=held)
    node.commit(5)
    snapshot, data = snapshot_of(*range(2, 42), end_offset=100)
    node.log.snapshots[snapshot] = data
    node.log.trim()
    set_turn(monkeypatch, 60 * ELEMENT)
    held.call_soon(node.commit, 100)
    rest(held)
    assert held.apart == ["MetadataDelta.apply", "difference", "MetadataDelta.apply"]
    assert len(node.topics()) == 40
    assert "t1" not in node.topics()


def test_the_whole_image_of_a_late_publisher_is_made_in_the_executor(
    held: HeldExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(topics=40, loop=held)
    node.commit(node.log.end_offset)
    rest(held)
    set_turn(monkeypatch, 30 * ELEMENT)
    late: list[list[str]] = []
    adding = held.create_task(node.loader.add_late_publisher(lambda delta, image: late.append(created(delta))))
    held.apart.clear()
    held.held = []
    rest(held)
    assert (held.apart, late) == (["difference"], [])
    held.let_go()
    held.run_until_complete(adding)
    assert sorted(late[0]) == node.topics()


class Slow:
    """A publisher that takes a turn of the loop for each topic, and notes which it has handled."""

    def __init__(self) -> None:
        self.handled: list[str] = []

    async def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for name in created(delta):
            await next_turn()
            self.handled.append(name)


def test_an_image_is_there_when_a_slow_publisher_has_it(loop: QuietClock) -> None:
    node, slow = Node(topics=3, loop=loop), Slow()
    node.loader.add_publisher(slow.publish)
    node.commit(5)
    assert (len(node.published), node.topics(), node.heard, slow.handled) == (1, [], [], [])
    # The next one waits for the end of this one.
    node.commit(7)
    assert len(node.published) == 1
    loop.run_until_complete(asyncio.sleep(1))
    assert slow.handled == ["t1", "t2", "t3"]
    assert (node.heard, [created(delta) for delta, _ in node.published]) == ([4, 6], [["t1", "t2"], ["t3"]])


def test_what_is_committed_while_a_late_publisher_receives_the_image_follows(loop: QuietClock) -> None:
    node, slow = Node(topics=3, loop=loop), Slow()
    node.commit(5)

    async def story() -> None:
        adding = asyncio.ensure_future(node.loader.add_late_publisher(slow.publish))
        await asyncio.sleep(0)
        node.commit(7)
        assert (slow.handled, node.heard) == ([], [4])
        await adding
        assert slow.handled == ["t1", "t2"]

    loop.run_until_complete(story())
    loop.run_until_complete(asyncio.sleep(1))
    assert (slow.handled, node.heard) == (["t1", "t2", "t3"], [4, 6])


def test_a_late_publisher_waits_for_what_is_published(loop: QuietClock) -> None:
    node, slow, late = Node(topics=2, loop=loop), Slow(), Slow()
    node.loader.add_publisher(slow.publish)
    node.commit(5)
    loop.run_until_complete(node.loader.add_late_publisher(late.publish))
    assert (slow.handled, late.handled) == (["t1", "t2"], ["t1", "t2"])


def test_a_late_publisher_that_fails_is_the_failure_of_who_adds_it(loop: QuietClock) -> None:
    node = Node(topics=2, loop=loop)
    node.commit(3)

    async def fail(delta: MetadataDelta, image: MetadataImage) -> None:
        raise ValueError("cannot")

    with pytest.raises(ValueError, match="cannot"):
        loop.run_until_complete(node.loader.add_late_publisher(fail))
    node.commit(5)
    assert node.heard == [2, 4]


def test_a_loader_that_is_closed_while_it_publishes_tells_nobody_else(loop: QuietClock) -> None:
    node, slow, last = Node(topics=2, loop=loop), Slow(), Slow()
    node.loader.add_publisher(slow.publish)
    node.loader.add_publisher(last.publish)
    node.commit(5)
    node.loader.close()
    loop.run_until_complete(asyncio.sleep(1))
    assert (slow.handled, last.handled, node.heard) == (["t1", "t2"], [], [])


def test_a_loader_that_is_closed_while_it_makes_the_image_publishes_nothing(
    held: HeldExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_turn(monkeypatch, 3 * ELEMENT)
    node = Node(topics=2, loop=held)
    held.held = []
    held.call_soon(node.commit, 5)
    rest(held)
    assert held.apart == ["MetadataDelta.apply"]
    node.loader.close()
    held.let_go()
    rest(held)
    assert (node.published, node.heard) == ([], [])


def test_what_is_committed_while_the_image_is_made_follows(held: HeldExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    set_turn(monkeypatch, 3 * ELEMENT)
    node = Node(topics=3, loop=held)
    held.held = []
    held.call_soon(node.commit, 5)
    rest(held)
    node.commit(7)
    assert node.published == []
    held.let_go()
    rest(held)
    assert [created(delta) for delta, _ in node.published] == [["t1", "t2"], ["t3"]]
    assert node.heard == [4, 6]


def test_what_is_committed_while_the_log_is_read_is_read_as_well(
    loop: QuietClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_turn(monkeypatch, 4 * REPLICA)
    node = Node(topics=10, loop=loop)

    async def story() -> None:
        node.commit(17)
        node.commit(21)
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    # The quorum's high watermark had moved on when the first part was read, so both parts are one image.
    assert node.heard == [20]
    assert len(node.topics()) == 10


def test_a_loader_that_is_closed_while_it_reads_publishes_nothing(
    loop: QuietClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_turn(monkeypatch, 4 * REPLICA)
    node = Node(topics=10, loop=loop)

    async def story() -> None:
        node.commit(21)
        node.loader.close()
        await asyncio.sleep(1)
        node.commit(21)

    loop.run_until_complete(story())
    assert (node.published, node.heard) == ([], [])


def test_a_record_that_cannot_be_replayed_ends_the_loader() -> None:
    node = Node()
    node.commit(1)
    node.log.append(build_batch([(7, None, b"\x01\x7f\x00\x00", ())], base_offset=1, leader_epoch=1), 1)
    node.commit(2)
    *_, error = node.heard
    assert isinstance(error, UnknownRecord)
    node.append(*topic(1))
    node.commit(4)
    assert len(node.published) == 1


def test_a_publisher_that_fails_ends_the_loader_after_the_commit_is_told() -> None:
    node = Node(topics=1)
    node.commit(1)
    broken = ValueError("cannot")

    def fail(delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.topics is not None:
            raise broken

    run_on_the_spot(node.loader.add_late_publisher(fail), None)
    node.commit(3)
    assert node.heard == [0, 2, broken]
    node.append(*topic(2))
    node.commit(5)
    assert node.topics() == ["t1"]
