"""DeadLetterWriter in virtual time: a topic that comes late or not at all, commits that fail, and long ranges."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsResponse
from barnabas.records.record import iter_records
from barnabas.share.dead_letters import ATTEMPTS, DeadLetterWriter
from barnabas.steps import start
from tests.replication.hosting import Hosting


class Settings:
    """The group's and the cluster's settings; `create` answers with `code`, or raises it."""

    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        self.topic = "dlq"
        self.copies = False
        self.auto_create = True
        self.enabled = True
        self.code: ErrorCode | Exception = ErrorCode.NONE
        self.creations = 0

    def value(self, group_id: str, name: str) -> object:
        return self.topic if name.endswith("topic.name") else self.copies

    def int_value(self, group_id: str, name: str) -> int:
        raise NotImplementedError

    def allows_dead_letters(self) -> bool:
        return True

    def auto_creates(self) -> bool:
        return self.auto_create

    def prefix(self) -> str:
        return "d"

    def is_enabled_on(self, topic: str) -> bool:
        return self.enabled

    async def create(self, topic: str) -> CreateTopicsResponse:
        self.creations += 1
        if isinstance(self.code, Exception):
            raise self.code
        result = CreateTopicsResponse.CreatableTopicResult(name=topic, error_code=int(self.code))
        return CreateTopicsResponse(topics=[result])


class Writing:
    """A writer over real logs with a source topic `q` of some records."""

    def __init__(self, root: Path) -> None:
        self.hosting = Hosting(root)
        self.hosting.create_topic("q")
        self.hosting.append("q", *[b"%d" % number for number in range(50)])
        self.settings = Settings(self.hosting)
        self.writer = DeadLetterWriter(
            self.hosting.replicas, self.settings, self.settings, loop=self.hosting.loop, now_ms=self.hosting.now_ms
        )

    def write(self, first: int, last: int) -> asyncio.Future[None]:
        source = self.hosting.replicas.partition("q", 0)
        return start(self.writer.write("g", source, first, last, 1, rejected=True), self.hosting.loop)

    def offsets(self) -> list[int]:
        """The offsets of the records that the letters are about."""
        return [
            int(dict(record.headers)["__dlq.errors.offset"] or b"")
            for chunk in self.hosting.replicas.read_internal("dlq", 0, 0)
            for record in iter_records(chunk)
        ]


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    made = Writing(tmp_path)
    yield made
    made.hosting.close()


def test_a_range_is_written_in_batches_that_the_topic_takes(writing: Writing) -> None:
    writing.hosting.create_topic("dlq", config=LogConfig(max_message_bytes=1_000))
    writing.settings.copies = True
    done = writing.write(3, 40)
    assert not done.done(), "the loop gets a turn between two batches"
    while not done.done():
        writing.hosting.spin()
    assert writing.offsets() == list(range(3, 41))
    log = writing.hosting.replicas.partition("dlq", 0).log
    batches = [header for _, header in log.read(0, 1 << 20, max_offset=log.high_watermark).headers()]
    assert len(batches) > 1
    assert all(header.size <= 1_000 for header in batches)


def test_letters_wait_for_a_topic_that_is_led_later(writing: Writing) -> None:
    done = writing.write(0, 1)
    assert writing.settings.creations == 1
    writing.hosting.advance(999)
    writing.hosting.create_topic("dlq")
    assert writing.settings.creations == 1
    writing.hosting.advance(1)
    assert done.done()
    assert writing.offsets() == [0, 1]


def test_letters_are_given_up_when_the_topic_never_comes(writing: Writing, caplog: pytest.LogCaptureFixture) -> None:
    done = writing.write(0, 1)
    writing.hosting.advance(1_000 + 2_000 + 4_000 + 8_000 - 1)
    assert not done.done()
    writing.hosting.advance(1)
    assert done.result() is None
    assert writing.settings.creations == ATTEMPTS
    assert "dlq is not in the metadata yet" in caplog.text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ErrorCode.INVALID_REPLICATION_FACTOR, "dlq cannot be created"),
        (KafkaError(ErrorCode.NOT_CONTROLLER, "no controller"), "no controller"),
        (ValueError("a bug"), "a bug"),
    ],
)
def test_letters_are_given_up_when_the_topic_cannot_be_created(
    writing: Writing, code: ErrorCode | Exception, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    writing.settings.code = code
    assert writing.write(0, 1).result() is None
    assert writing.settings.creations == 1
    assert words in caplog.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"topic": ""}, "no longer names"),
        ({"topic": "__dlq"}, "must not start with __"),
        ({"topic": "letters"}, "does not start with d"),
        ({"auto_create": False}, "may not be created"),
    ],
)
def test_a_topic_that_letters_may_not_be_written_to_gets_none(
    writing: Writing, changes: dict[str, object], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in changes.items():
        setattr(writing.settings, name, value)
    assert writing.write(0, 1).result() is None
    assert words in caplog.text
    assert writing.settings.creations == 0


def test_a_topic_that_another_node_created_must_allow_letters(
    writing: Writing, caplog: pytest.LogCaptureFixture
) -> None:
    writing.settings.enabled = False
    writing.settings.code = ErrorCode.TOPIC_ALREADY_EXISTS
    done = writing.write(0, 1)
    writing.hosting.create_topic("dlq")
    writing.hosting.advance(1_000)
    assert done.done()
    assert writing.offsets() == []
    assert "does not allow dead letters" in caplog.text


def test_letters_wait_for_their_commit(writing: Writing) -> None:
    writing.hosting.create_topic("dlq", replicas=(1, 2))
    done = writing.write(0, 1)
    writing.hosting.spin()
    assert not done.done()
    writing.hosting.delete_topic(writing.hosting.image.topics.by_name["dlq"].topic_id)
    writing.hosting.spin()
    assert done.result() is None, "a topic that is deleted meanwhile gives no error to the group"
