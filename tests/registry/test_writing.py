"""Decisions are made on the whole state, and again if another registry came between."""

from __future__ import annotations

import asyncio

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.registry.following import Following
from barnabas.registry.problems import Problem
from barnabas.registry.schemas_log import SchemasLog
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredRecord, StoredVersion, version_record
from barnabas.registry.writing import CLAIM_AGE_S, Decision, Writing
from barnabas.schemas.schema import Schema

PATIENCE_SECONDS = 60


def next_one(state: RegistryState) -> Decision[int]:
    made = StoredVersion("s", state.next_version("s"), state.max_id + 1, Schema('"int"'))
    return Decision(made.schema_id, [version_record(made)])


def test_a_decision_is_made_again(broker: barnabas.Broker) -> None:
    async def write() -> None:
        now = [0.0]
        log = SchemasLog(Cluster(broker.bootstrap_servers), "_written")
        other = SchemasLog(Cluster(broker.bootstrap_servers), "_written")
        following = Following(SchemasLog(Cluster(broker.bootstrap_servers), "_written"))
        writing = Writing(log, following, PATIENCE_SECONDS, clock=lambda: now[0])
        await writing.open()
        following.start()
        seen: list[int] = []

        async def decide(state: RegistryState) -> Decision[int]:
            seen.append(state.max_id)
            if len(seen) == 1:
                # Another registry takes the claim, and the id that this decision is about to give.
                other.claim(0, "other")
                other.append(next_one(state).records)
            return next_one(state)

        assert await writing.write(decide) == 2
        assert (seen, following.state.max_id) == ([0, 1], 2)
        before = following.state.next_offset
        assert await writing.write(decide) == 3
        assert following.state.next_offset == before + 1, "the claim is still held"
        now[0] = CLAIM_AGE_S + 1
        assert await writing.write(decide) == 4
        assert following.state.next_offset == before + 3, "an old claim is taken again"

        async def nothing(state: RegistryState) -> Decision[str]:
            return Decision("nothing")

        assert await writing.write(nothing) == "nothing"

        async def too_large(state: RegistryState) -> Decision[None]:
            records: list[StoredRecord] = [(b"key", b" " * (2 << 20))]
            return Decision(None, records)

        with pytest.raises(Problem) as problem:
            await writing.write(too_large)
        assert problem.value.code == 42209
        assert await writing.write(decide) == 5
        await writing.stop()
        await following.stop()
        other.close()

    asyncio.run(write())


def test_a_cluster_that_is_down() -> None:
    async def write() -> None:
        writing = Writing(
            SchemasLog(Cluster("127.0.0.1:1", timeout_ms=300)), Following(SchemasLog(Cluster("127.0.0.1:1"))), 0.3
        )

        async def decide(state: RegistryState) -> Decision[None]:
            raise AssertionError("nothing is known")

        with pytest.raises(Problem, match="does not store the change") as problem:
            await writing.write(decide)
        assert problem.value.code == 50001
        await writing.stop()

    asyncio.run(write())
