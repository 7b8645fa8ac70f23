"""Dead letters: what is in them, and in which batches and partitions they are written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.protocol.messages import CreateTopicsResponse
from barnabas.records.compression import Compression
from barnabas.records.record import iter_records
from barnabas.share.dead_letters import DeadLetterWriter
from barnabas.steps import start
from tests.replication.conftest import hosting
from tests.replication.hosting import Hosting, batch

__all__ = ["hosting"]
TOPIC = "errors.deadletterqueue.topic.name"
COPIES = "errors.deadletterqueue.copy.record.enable"


class Groups:
    def __init__(self) -> None:
        self.values: dict[str, object] = {TOPIC: "dlq.q", COPIES: False}

    def value(self, group_id: str, name: str) -> object:
        assert group_id == "g"
        return self.values[name]

    def int_value(self, group_id: str, name: str) -> int:
        raise AssertionError


class Cluster:
    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        self.allowed = True

    def allows_dead_letters(self) -> bool:
        return self.allowed

    def auto_creates(self) -> bool:
        return True

    def prefix(self) -> str:
        return "dlq."

    def is_enabled_on(self, topic: str) -> bool:
        return True

    async def create(self, topic: str) -> CreateTopicsResponse:
        self.hosting.create_topic(topic)
        return CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(name=topic, error_code=0)])


class Subject:
    """A source topic `q` with ten records, and a group whose dead letters go to `dlq.q`."""

    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        self.groups, self.cluster = Groups(), Cluster(hosting)
        self.writer = DeadLetterWriter(
            hosting.replicas, self.groups, self.cluster, loop=hosting.loop, now_ms=hosting.now_ms
        )
        hosting.create_topic("q", 4)
        for number in range(10):
            hosting.append("q", b"v%d" % number, index=2)

    def write(self, first: int, last: int, *, count: int = 5, rejected: bool = False) -> asyncio.Future[None]:
        source = self.hosting.replicas.partition("q", 2)
        return start(self.writer.write("g", source, first, last, count, rejected=rejected), self.hosting.loop)

    def letters(self, index: int = 0) -> list[Any]:
        if "dlq.q" not in self.hosting.replicas.topics:
            return []
        return [
            record for found in self.hosting.replicas.read_internal("dlq.q", index, 0) for record in iter_records(found)
        ]

    def written(self, first: int, last: int, **options: Any) -> list[Any]:
        done = self.write(first, last, **options)
        for _ in range(20):
            self.hosting.spin()
        assert done.done()
        return self.letters()


@pytest.fixture
def subject(hosting: Hosting) -> Subject:
    return Subject(hosting)


def test_a_letter_says_whence_it_came_and_why(subject: Subject) -> None:
    (letter,) = subject.written(3, 3)
    assert (letter.key, letter.value, letter.timestamp) == (None, None, subject.hosting.now_ms())
    assert letter.headers == [
        ("__dlq.errors.topic", b"q"),
        ("__dlq.errors.partition", b"2"),
        ("__dlq.errors.offset", b"3"),
        ("__dlq.errors.group", b"g"),
        ("__dlq.errors.delivery.count", b"5"),
        ("__dlq.errors.message", b"Offset delivery count exceeded the threshold."),
    ]


def test_a_rejected_record_says_so(subject: Subject) -> None:
    (letter,) = subject.written(3, 3, rejected=True, count=1)
    assert dict(letter.headers)["__dlq.errors.message"] == b"Offset rejected by client."
    assert dict(letter.headers)["__dlq.errors.delivery.count"] == b"1"


def offsets(letters: list[Any]) -> list[int]:
    return [int(dict(letter.headers)["__dlq.errors.offset"]) for letter in letters]


def test_each_record_of_a_range_has_a_letter(subject: Subject) -> None:
    assert offsets(subject.written(2, 7)) == [2, 3, 4, 5, 6, 7]


def test_copies_have_the_key_and_the_value(subject: Subject) -> None:
    subject.groups.values[COPIES] = True
    letters = subject.written(2, 4)
    assert [(letter.key, letter.value) for letter in letters] == [(b"k", b"v2"), (b"k", b"v3"), (b"k", b"v4")]
    assert offsets(letters) == [2, 3, 4]


def test_copies_out_of_the_middle_of_a_batch(subject: Subject) -> None:
    subject.groups.values[COPIES] = True
    subject.hosting.append("q", b"a", b"b", b"c", b"d", index=2)
    assert [letter.value for letter in subject.written(11, 12)] == [b"b", b"c"]


def test_a_record_that_is_gone_leaves_its_headers(subject: Subject) -> None:
    subject.groups.values[COPIES] = True
    subject.hosting.replicas.partition("q", 2).log.delete_records_before(5)
    letters = subject.written(3, 3)
    assert [(letter.key, letter.value) for letter in letters] == [(None, None)]


def small_letters(subject: Subject, max_message_bytes: int) -> None:
    subject.hosting.create_topic("dlq.q", config=LogConfig(max_message_bytes=max_message_bytes))


@pytest.mark.parametrize("copies", [True, False])
def test_a_long_range_takes_several_batches(subject: Subject, copies: bool) -> None:
    subject.groups.values[COPIES] = copies
    small_letters(subject, 900)
    letters = subject.written(0, 9)
    assert offsets(letters) == list(range(10))
    if copies:
        assert [letter.value for letter in letters] == [b"v%d" % number for number in range(10)]
    sizes = [len(found) for found in subject.hosting.replicas.read_internal("dlq.q", 0, 0)]
    assert 1 < len(sizes) < 8, "as many in a batch as fit"
    assert max(sizes) <= 900


def test_a_record_too_large_for_the_topic_leaves_its_headers(subject: Subject) -> None:
    subject.groups.values[COPIES] = True
    small_letters(subject, 900)
    subject.hosting.append("q", b"x" * 2000, index=2)
    subject.hosting.append("q", b"small", index=2)
    assert [letter.value for letter in subject.written(9, 11)] == [b"v9", None, b"small"]


def test_a_batch_that_grows_too_large_is_left_out(subject: Subject) -> None:
    subject.groups.values[COPIES] = True
    small_letters(subject, 900)
    bomb = batch(b"x" * 100_000, compression=Compression.GZIP, timestamp=subject.hosting.now_ms())
    subject.hosting.replicas.append("q", 2, bomb, 1)
    assert [letter.value for letter in subject.written(9, 10)] == [b"v9", None]


def test_letters_lie_in_the_partition_of_their_source_as_far_as_there_is_one(subject: Subject) -> None:
    subject.hosting.create_topic("dlq.q", 2)
    subject.written(1, 1)
    assert offsets(subject.letters(0)) == [1]
    subject.groups.values[TOPIC] = "dlq.more"
    subject.hosting.create_topic("dlq.more", 3)
    subject.written(1, 1)
    assert [subject.hosting.replicas.partition("dlq.more", index).log.log_end_offset for index in range(3)] == [0, 0, 1]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_group_has_dead_letters_if_it_names_a_topic_and_the_cluster_allows_it(
    subject: Subject, allowed: bool
) -> None:
    subject.cluster.allowed = allowed
    assert subject.writer.is_enabled("g") is allowed
    subject.groups.values[TOPIC] = None
    assert not subject.writer.is_enabled("g")
