"""Several registries over one topic: no id is lost or given twice, and each finds what another one stored."""

from __future__ import annotations

import asyncio
import json

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.outcome import result
from barnabas.client.topics import delete_topics
from barnabas.registry.deleting import delete_subject
from barnabas.registry.levels import CompatibilityLevel, Mode
from barnabas.registry.problems import Problem
from barnabas.registry.registering import Registration, register
from barnabas.registry.registry import Registry
from barnabas.registry.settings import change_config, change_mode
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredVersion
from barnabas.registry.writing import Decision
from barnabas.schemas.schema import Schema

TOPIC = "_shared"


def registry_of(broker: barnabas.Broker) -> Registry:
    return Registry(lambda: Cluster(broker.bootstrap_servers), TOPIC)


async def add(registry: Registry, subject: str) -> StoredVersion:
    schema = Schema(json.dumps({"type": "fixed", "name": subject, "size": 1}))

    async def decide(state: RegistryState) -> Decision[StoredVersion]:
        return await register(registry.schemas, state, Registration(subject, schema))

    return await registry.write(decide)


async def id_of(registry: Registry, subject: str) -> int:
    async def ask(state: RegistryState) -> int:
        return state.version(subject, 1).schema_id

    return await registry.read(ask)


def test_two_registries_write_at_one_time(broker: barnabas.Broker) -> None:
    async def write() -> None:
        registries = [registry_of(broker) for _ in range(2)]
        for each in registries:
            await each.start()
        wanted = [(registry, f"S{number}{index}") for number in range(8) for index, registry in enumerate(registries)]
        made = await asyncio.gather(*(add(registry, subject) for registry, subject in wanted))
        assert sorted(each.schema_id for each in made) == list(range(1, 17))
        for each in made:
            found = await asyncio.gather(*(id_of(registry, each.subject) for registry in registries))
            assert found == [each.schema_id] * 2
        later = registry_of(broker)
        await later.start()
        assert later.state.max_id == 16
        for registry in (*registries, later):
            await registry.stop()

    asyncio.run(write())


@pytest.mark.slow
def test_a_deleted_topic_is_made_again(broker: barnabas.Broker) -> None:
    """Ids, deleted versions, levels and modes are as before; another registry follows."""

    def registry() -> Registry:
        return Registry(lambda: Cluster(broker.bootstrap_servers), "_lost")

    async def write() -> None:
        first, second = registry(), registry()
        await first.start()
        await second.start()
        for subject in ("A", "B", "C"):
            await add(first, subject)

        async def change(state: RegistryState) -> Decision[None]:
            level = change_config(state, "A", {"compatibility": "NONE"})
            mode = change_mode(state, "B", "IMPORT", force=True)
            gone = [*delete_subject(state, "C", permanent=False).records]
            return Decision(None, [*level.records, *mode.records, *gone])

        await first.write(change)
        assert await id_of(second, "B") == 2
        for _ in range(2):
            with Cluster(broker.bootstrap_servers) as cluster:
                result(delete_topics(cluster, ["_lost"])["_lost"])
            assert await id_of(first, "A") == await id_of(second, "A") == 1
            name = f"D{first.state.max_id}"
            assert (await add(first, name)).schema_id == first.state.max_id
            assert await id_of(second, name) == first.state.max_id
        third = registry()
        await third.start()
        await second.read(seen)
        for each in (first, second, third):
            state = each.state
            assert (state.max_id, state.subjects(), state.subjects(deleted=True)) == (
                5,
                ["A", "B", "D3", "D4"],
                ["A", "B", "C", "D3", "D4"],
            )
            assert (state.level("A"), state.mode("B")) == (CompatibilityLevel.NONE, Mode.IMPORT)
            await each.stop()

    async def seen(state: RegistryState) -> int:
        return state.version("D4", 1).schema_id

    asyncio.run(write())


def test_a_cluster_that_is_down() -> None:
    async def ask() -> None:
        registry = Registry(lambda: Cluster("127.0.0.1:1", timeout_ms=300), timeout_s=0.3)
        await registry.start()
        with pytest.raises(Problem, match="has not been read yet") as problem:
            await id_of(registry, "s")
        assert problem.value.code == 50001
        await registry.stop()

    asyncio.run(ask())
