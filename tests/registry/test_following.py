"""The state follows the topic."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.outcome import result
from barnabas.client.topics import delete_topics
from barnabas.protocol.errors import ErrorCode, error_for
from barnabas.protocol.primitives import Uuid
from barnabas.registry.following import Following, NotInTime
from barnabas.registry.schemas_log import SchemasLog
from barnabas.registry.stored_records import StoredRecord, StoredVersion, version_record
from barnabas.schemas.schema import Schema

PATIENCE_SECONDS = 60


def test_it_reaches_what_another_one_appends(broker: barnabas.Broker) -> None:
    async def follow() -> None:
        reader, writer = (SchemasLog(Cluster(broker.bootstrap_servers), "_followed") for _ in range(2))
        with closing(writer):
            writer.open()
            following = Following(reader)
            following.start()
            with pytest.raises(NotInTime):
                await following.reach(1, 0.01)
            writer.claim(0, "me")
            records = [version_record(StoredVersion("s", each, each, Schema('"int"'))) for each in range(1, 501)]
            last = writer.append(records)
            await following.reach(last + 1, PATIENCE_SECONDS)
            assert (following.state.next_version("s"), following.state.claim) == (501, "me")
            following.begin_again(last)
            await following.reach(last + 1, PATIENCE_SECONDS)
            assert [each.version for each in following.state.versions("s")] == [500]
            await following.stop()

    asyncio.run(follow())


def test_another_topic_that_is_as_long(broker: barnabas.Broker) -> None:
    """The leader rejects no offset: the id of the topic tells."""

    class AnotherTopic(SchemasLog):
        asked = 0

        def topic_id(self) -> Uuid:
            self.asked += 1
            return super().topic_id() if self.asked > 1 else Uuid(b"0123456789abcdef")

        def poll(self, offset: int, max_wait_ms: int) -> tuple[list[StoredRecord], int]:
            if self.asked == 1:
                raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return super().poll(offset, max_wait_ms)

    async def follow() -> None:
        log = AnotherTopic(Cluster(broker.bootstrap_servers), "_as-long")
        log.open()
        end = log.claim(7, "me") + 1
        following = Following(log)
        following.begin_again(end)
        following.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while following.state.max_id != 7:
                await asyncio.sleep(0.01)
        await following.reach(end, PATIENCE_SECONDS)
        await following.stop()

    asyncio.run(follow())


def test_a_topic_that_is_made_again_as_long_as_it_was(broker: barnabas.Broker) -> None:
    """A reader that waits for an offset of the new topic does not get the state of the old topic."""

    async def follow() -> None:
        reader, writer = (SchemasLog(Cluster(broker.bootstrap_servers), "_as-long-again") for _ in range(2))
        with closing(writer):
            writer.open()
            end = writer.claim(7, "old") + 1
            following = Following(reader)
            following.start()
            await following.reach(end, PATIENCE_SECONDS, writer.topic_id())
            with Cluster(broker.bootstrap_servers) as cluster:
                result(delete_topics(cluster, ["_as-long-again"])["_as-long-again"])
            writer.open()
            assert writer.claim(9, "new") + 1 == end
            await following.reach(end, PATIENCE_SECONDS, writer.topic_id())
            assert (following.state.max_id, following.state.claim) == (9, "new")
            await following.stop()

    asyncio.run(follow())


def test_a_held_state_stays(broker: barnabas.Broker) -> None:
    async def follow() -> None:
        log, writer = (SchemasLog(Cluster(broker.bootstrap_servers), "_held") for _ in range(2))
        writer.open()
        following = Following(log)
        with closing(writer), following.held() as state:
            following.start()
            end = writer.claim(7, "me") + 1
            with pytest.raises(NotInTime):
                await following.reach(end, 0.05)
            state.max_id = 8
            following.go_on(end)
        await following.reach(end, PATIENCE_SECONDS)
        assert following.state.max_id == 8
        await following.stop()

    asyncio.run(follow())


def test_a_topic_that_was_made_again(broker: barnabas.Broker) -> None:
    """The offset is beyond its end: the state is another one."""

    async def follow() -> None:
        log = SchemasLog(Cluster(broker.bootstrap_servers), "_made-again")
        log.open()
        following = Following(log)
        following.begin_again(100)
        following.state.max_id = 7
        following.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while following.state.max_id:
                await asyncio.sleep(0.01)
        assert following.state.next_offset == 0
        await following.stop()

    asyncio.run(follow())
