"""What a member of a cluster does in another order than a node alone, and what it does besides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.config.timers import Timers
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.net.renewed_stores import RenewedStores
from barnabas.node.directory_assignments import OneDirectory
from barnabas.node.member import Member
from barnabas.node.remote_coordinators import RemoteCoordinators
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import ConfigRecord
from barnabas.protocol.primitives import uuid_from_str
from barnabas.simulation.world_loop import WorldLoop
from tests.node.runtimes import runtime_of
from tests.node.test_alone import Story
from tests.replication.hosting import Hosting

DIRECTORY = OneDirectory([uuid_from_str("AAAAAAAAAAAAAAAAAAAAAw")])


@pytest.fixture
def loop() -> Iterator[WorldLoop]:
    loop = WorldLoop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)


def member(loop: asyncio.AbstractEventLoop, **settings: str) -> Member:
    given = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        **{name.replace("_", "."): text for name, text in settings.items()},
    }
    return Member(BrokerConfig.from_properties(given), runtime_of(loop), RenewedStores(loop, 1))


def a_quorum() -> Any:
    """A quorum whose leader nobody knows."""
    return SimpleNamespace(
        local_controller=None, leader_endpoint=lambda: None, loader=SimpleNamespace(add_publisher=lambda each: None)
    )


def test_it_joins_its_quorum_before_its_logs_are_recovered(loop: WorldLoop) -> None:
    story = Story()
    loop.run_until_complete(member(loop).open(story.step("join"), story.wait("recover")))
    assert story.told == ["join", "recover"]


def test_it_reads_the_metadata_first_and_serves_before_it_leads_and_until_others_do(loop: WorldLoop) -> None:
    story, made = Story(), member(loop)
    loop.run_until_complete(made.catch_up(story.wait("read metadata")))  # type: ignore[arg-type]
    loop.run_until_complete(made.begin_service(story.step("serve"), story.wait("unfenced")))
    loop.run_until_complete(made.end_service(story.wait("listeners"), story.wait("hand over")))
    assert story.told == ["read metadata", "serve", "unfenced", "hand over", "listeners"]


def test_it_asks_again_and_looks_after_sessions_often(loop: WorldLoop) -> None:
    made = member(loop, broker_session_timeout_ms="9000", initial_broker_registration_timeout_ms="60000")
    assert (made.retries, made.registration_patience_ms, made.tick_ms) == (True, 60_000, 180)


def test_a_part_of_its_start_ends_with_its_own_error(loop: WorldLoop) -> None:
    failed = loop.create_future()

    async def part() -> None:
        raise KafkaError(41, "the part fails")

    with pytest.raises(KafkaError, match="the part fails"):
        loop.run_until_complete(member(loop).unless_failed(part(), failed))


def test_a_part_of_its_start_ends_when_the_node_has_failed(loop: WorldLoop) -> None:
    failed, ended = loop.create_future(), []

    async def part() -> None:
        loop.call_soon(failed.set_result, None)
        try:
            await loop.create_future()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    assert loop.run_until_complete(member(loop).unless_failed(part(), failed)) is False
    assert ended == ["cancelled"]


def test_each_purpose_has_a_channel_to_the_controller_until_the_node_ends(loop: WorldLoop) -> None:
    made = member(loop)
    first, other = (made.controller_for(purpose, a_quorum()) for purpose in ("heartbeat", "forwarding"))
    assert first is not other
    made.close()
    for channel in (first, other):
        asked = channel.handle(63, 0, object())  # type: ignore[arg-type]
        loop.run_until_complete(asyncio.wait((asked,)))
        assert isinstance(asked.exception(), KafkaError)


def test_it_logs_changes_of_leaders(loop: WorldLoop) -> None:
    published: list[Any] = []
    quorum, timers = a_quorum(), Timers(loop)
    quorum.loader.add_publisher = published.append
    member(loop).report_changes(quorum, lambda: True, SimpleNamespace(lines=None), timers)  # type: ignore[arg-type]
    assert len(published) == 1
    assert repr(timers) != "<Timers >"
    timers.cancel()


def test_settings_reach_its_replicas_and_replicas_their_directory(loop: WorldLoop, tmp_path: Path) -> None:
    hosting = Hosting(tmp_path)
    made = member(loop, num_replica_fetchers="2")
    delta = MetadataDelta(MetadataImage())
    delta.replay(
        ConfigRecord(
            resource_type=ConfigResourceType.BROKER,
            resource_name="1",
            name="leader.replication.throttled.rate",
            value="7",
        )
    )
    made.apply_settings(delta, delta.apply())  # Before it has replicas, there is nothing to apply it to.
    made.replicate(hosting.replicas, DIRECTORY, lambda: 9, a_quorum())
    assert hosting.replicas.fetchers_per_leader == 2
    made.apply_settings(delta, delta.apply())
    assert hosting.replicas.leader_quota is not None
    assert hosting.replicas.leader_quota.limit == 7
    assert repr(made) == "<Member 1 controllers=1>", "the assignments have a channel of their own"
    loop.run_until_complete(made.apply_replicas(delta))
    made.leave_replication()
    made.close()
    hosting.close()


def test_its_coordinators_ask_other_brokers(loop: WorldLoop) -> None:
    channels: Any = object()
    assert isinstance(member(loop).other_brokers(MetadataImage, lambda: channels), RemoteCoordinators)
