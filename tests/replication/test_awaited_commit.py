"""How an append that waits for its in-sync replicas ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.replication.awaited_commit import AwaitedCommit
from barnabas.replication.partition import Partition
from barnabas.steps import step
from tests.replication.hosting import NODE, Hosting


async def codes(hosting: Hosting, commits: Sequence[AwaitedCommit]) -> list[ErrorCode | None]:
    await hosting.replicas.await_commits(commits, 500)
    return [commit.error_code for commit in commits]


class Waiting:
    """Topics `t` and `u` of two replicas, and a request that waits for one record in each."""

    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        config = LogConfig(min_insync_replicas=2)
        self.ids = {name: hosting.create_topic(name, replicas=(NODE, 2), config=config) for name in "tu"}
        self.commits = [AwaitedCommit(self.partition(name), hosting.append(name, b"v") + 1) for name in "tu"]
        self._answer: Any = step(codes(hosting, self.commits), hosting.loop)

    def answer(self) -> list[ErrorCode | None] | None:
        """Return the outcomes when the request goes on; None while it waits."""
        self.hosting.spin()
        return self._answer.result() if self._answer.done() else None

    def partition(self, name: str) -> Partition:
        return self.hosting.replicas.partition(name, 0)

    def commit(self, name: str) -> None:
        partition = self.partition(name)
        partition.update_follower(2, partition.log.log_end_offset)
        self.hosting.replicas.high_watermark_moved(partition)


@pytest.fixture
def waiting(hosting: Hosting) -> Waiting:
    return Waiting(hosting)


def test_the_answer_waits_for_the_last_commit(waiting: Waiting) -> None:
    waiting.commit("t")
    assert waiting.answer() is None
    waiting.commit("u")
    assert waiting.answer() == [ErrorCode.NONE, ErrorCode.NONE]
    assert waiting.hosting.replicas.delayed_produces.watched == 0


def test_what_is_committed_is_answered_at_once(waiting: Waiting) -> None:
    for name in "tu":
        waiting.commit(name)
    again = [AwaitedCommit(waiting.partition("t"), 1)]
    assert step(codes(waiting.hosting, again), waiting.hosting.loop) == [ErrorCode.NONE]


def test_what_is_not_committed_in_time_has_timed_out(waiting: Waiting) -> None:
    waiting.commit("t")
    waiting.hosting.advance(499)
    assert waiting.answer() is None
    waiting.hosting.advance(1)
    assert waiting.answer() == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]


def test_a_deleted_partition(waiting: Waiting) -> None:
    waiting.commit("u")
    waiting.hosting.delete_topic(waiting.ids["t"])
    assert waiting.answer() == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]


def test_another_leader(waiting: Waiting) -> None:
    waiting.commit("u")
    waiting.hosting.change(waiting.ids["t"], leader=2)
    assert waiting.answer() == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]


def test_the_same_leader_in_a_later_epoch(waiting: Waiting) -> None:
    waiting.commit("u")
    waiting.hosting.change(waiting.ids["t"], leader=NODE)
    assert waiting.partition("t").leader_epoch == 1
    assert waiting.answer() is None
    waiting.commit("t")
    assert waiting.answer() == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_leader_that_was_a_follower_in_between(waiting: Waiting) -> None:
    waiting.commit("u")
    waiting.hosting.change(waiting.ids["t"], leader=2)
    waiting.hosting.change(waiting.ids["t"], leader=NODE)
    assert waiting.answer() == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]


def test_committed_by_fewer_replicas_than_wanted(waiting: Waiting) -> None:
    waiting.commit("u")
    partition = waiting.partition("t")
    partition.update_follower(2, partition.log.log_end_offset)
    waiting.hosting.change(waiting.ids["t"], isr=[NODE])
    assert waiting.answer() == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NONE]


def test_too_few_replicas_commit_nothing_until_there_are_enough(waiting: Waiting) -> None:
    waiting.commit("u")
    waiting.hosting.change(waiting.ids["t"], isr=[NODE])
    assert waiting.answer() is None
    waiting.hosting.change(waiting.ids["t"], isr=[NODE, 2])
    waiting.commit("t")
    assert waiting.answer() == [ErrorCode.NONE, ErrorCode.NONE]


def test_an_outcome_stays(waiting: Waiting) -> None:
    waiting.commit("t")
    assert waiting.commits[0].settle()
    waiting.hosting.change(waiting.ids["t"], isr=[NODE])
    waiting.commit("u")
    assert waiting.answer() == [ErrorCode.NONE, ErrorCode.NONE]
