"""One fetch session (KIP-227): what it remembers of a partition, which partitions a request looks at, and what ends its wait."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchResponse
from barnabas.replication.fetch_reader import FetchParams
from barnabas.replication.fetch_session import session_key
from barnabas.steps import step
from tests.at_once import at_once
from tests.replication.asking import ask, respond, wants
from tests.replication.hosting import NODE, Hosting


def test_a_new_partition_asks_for_no_epochs_and_was_told_nothing() -> None:
    (new,) = wants("t-0")
    assert (new.current_leader_epoch, new.last_fetched_epoch, new.log_start_offset) == (-1, -1, -1)
    assert (new.sent_high_watermark, new.sent_log_start_offset) == (-1, -1)


def test_a_partition_is_known_by_its_topics_name_or_id() -> None:
    by_name, by_id = wants("t-0") + wants("t-0", by_id=1)
    assert session_key(by_name) == session_key(wants("t-0", offset=5)[0])
    assert session_key(by_name) != session_key(by_id)
    assert session_key(by_id) != session_key(wants("t-0", by_id=2)[0])


class TestReading:
    """A session over real replicas: what it looks at, and what ends its wait."""

    params = FetchParams(12, -1, 500, 1, 1 << 20, isolation_level=0)

    def first(self, hosting: Hosting, *names: str) -> int:
        context = ask(hosting.sessions, 0, 0, wants(*names))
        fetching = hosting.replicas.fetches.fetch(self.params._replace(max_wait_ms=0), context.partitions)
        return int(respond(context, at_once(fetching), 0).session_id)

    def more(self, hosting: Hosting, session_id: int, epoch: int, *names: str, offset: int = 0, **params: Any) -> Any:
        context = ask(hosting.sessions, session_id, epoch, wants(*names, offset=offset))
        assert context.session is not None

        async def responded() -> FetchResponse:
            changes = self.params._replace(only_changes=True, **params)
            return await context.respond(await hosting.replicas.fetches.fetch(changes, (), context.session), epoch)

        return step(responded(), hosting.loop)

    def told(self, response: FetchResponse) -> list[tuple[str, int]]:
        return [(topic.topic, part.partition_index) for topic in response.responses for part in topic.partitions]

    def ready(self, hosting: Hosting, session_id: int) -> list[tuple[str | None, int]]:
        session = hosting.sessions.get(session_id)
        assert session is not None
        return [(wanted.topic, wanted.index) for wanted in session.ready]

    def test_only_partitions_with_news_are_looked_at(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 3)
        session_id = self.first(hosting, "t-0", "t-1", "t-2")
        waiting = self.more(hosting, session_id, 1)
        assert self.ready(hosting, session_id) == []
        assert not waiting.done()
        hosting.append("t", b"a", index=1)
        assert self.ready(hosting, session_id) == [("t", 1)]
        hosting.spin()
        assert self.told(waiting.result()) == [("t", 1)]
        assert self.ready(hosting, session_id) == [("t", 1)], "there may be more"
        waiting = self.more(hosting, session_id, 2, "t-1", offset=1)
        assert not waiting.done()
        hosting.advance(500)
        assert self.told(waiting.result()) == []

    def test_the_wait_is_for_enough_bytes(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session_id = self.first(hosting, "t-0", "t-1")
        waiting = self.more(hosting, session_id, 1, min_bytes=100)
        hosting.append("t", b"a")
        hosting.spin()
        assert not waiting.done()
        hosting.append("t", b"b", index=1)
        hosting.spin()
        assert self.told(waiting.result()) == [("t", 0), ("t", 1)]

    def test_news_before_the_request_is_answered_at_once(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session_id = self.first(hosting, "t-0", "t-1")
        self.more(hosting, session_id, 1, max_wait_ms=0)
        hosting.append("t", b"a", index=1)
        assert self.told(self.more(hosting, session_id, 2)) == [("t", 1)]

    def test_a_forgotten_partition_is_no_news(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session_id = self.first(hosting, "t-0", "t-1")
        ask(hosting.sessions, session_id, 1, [], (("t", 0),))
        waiting = self.more(hosting, session_id, 2)
        hosting.append("t", b"a", index=0)
        hosting.spin()
        assert not waiting.done()
        assert hosting.replicas.partition("t", 0).observers == {}

    def test_a_closed_session_is_forgotten_by_the_replicas(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session_id = self.first(hosting, "t-0", "t-1")
        observers = [hosting.replicas.partition("t", index).observers for index in range(2)]
        assert [len(found or ()) for found in observers] == [1, 1]
        ask(hosting.sessions, session_id, -1, [])
        assert observers == [{}, {}]

    def test_deleted_records_are_told_with_the_next_answer(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        hosting.append("t", b"a")
        session_id = self.first(hosting, "t-0", "t-1")
        waiting = self.more(hosting, session_id, 1, "t-0", offset=1)
        partition = hosting.replicas.partition("t", 0)
        partition.log.delete_records_before(1)
        hosting.replicas.log_start_moved(partition)
        hosting.spin()
        assert not waiting.done()
        hosting.append("t", b"b", index=1)
        hosting.spin()
        assert self.told(waiting.result()) == [("t", 0), ("t", 1)]

    def test_retention_is_told_although_nobody_writes(self, hosting: Hosting) -> None:
        hosting.configs["t"] = LogConfig(retention_bytes=0)
        hosting.create_topic("t", 2)
        hosting.append("t", b"a")
        session_id = self.first(hosting, "t-0", "t-1")
        self.more(hosting, session_id, 1, "t-0", offset=1, max_wait_ms=0)
        assert hosting.logs.apply_retention() == 1
        told = self.more(hosting, session_id, 2, max_wait_ms=0)
        assert self.told(told) == [("t", 0)]

    def test_a_session_whose_topics_are_all_unknown_waits_for_none(self, hosting: Hosting) -> None:
        session_id = self.first(hosting, "unknown-0")
        assert self.told(self.more(hosting, session_id, 1)) == [("unknown", 0)]

    def test_an_unknown_partition_does_not_end_the_wait_for_idle_ones(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        session_id = self.first(hosting, "t-0", "unknown-0")
        self.more(hosting, session_id, 1, max_wait_ms=0)
        assert isinstance(self.more(hosting, session_id, 2), asyncio.Future)

    def test_another_leader_is_news(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        session_id = self.first(hosting, "t-0")
        waiting = self.more(hosting, session_id, 1, version=10)
        hosting.change(id_, leader=2)
        hosting.spin()
        ((data,),) = ([part for topic in waiting.result().responses for part in topic.partitions],)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
