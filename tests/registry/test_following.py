"""The state follows the topic."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.registry.following import Following, NotInTime
from barnabas.registry.schemas_log import SchemasLog
from barnabas.registry.stored_records import StoredVersion, version_record
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
