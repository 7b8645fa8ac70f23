"""What a node alone does in another order than a member, and what it leaves out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from barnabas.config.config import BrokerConfig
from barnabas.config.timers import Timers
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.alone import Alone, OwnCoordinators
from barnabas.node.directory_assignments import OneDirectory
from barnabas.protocol.primitives import Uuid
from barnabas.simulation.world_loop import WorldLoop


class Story:
    """Keeps the order in which a node's parts are called."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def step(self, name: str) -> Callable[[], None]:
        return lambda: self.told.append(name)

    def wait(self, name: str) -> Callable[[], Awaitable[None]]:
        async def waited() -> None:
            await asyncio.sleep(0)
            self.told.append(name)

        return waited


def alone(**settings: str) -> Alone:
    return Alone(BrokerConfig.from_properties({name.replace("_", "."): text for name, text in settings.items()}))


def run(work: Awaitable[Any]) -> Any:
    async def ran() -> Any:
        return await work

    return WorldLoop().run_until_complete(ran())


def test_its_logs_are_recovered_before_it_elects_itself() -> None:
    story = Story()
    run(alone().open(story.step("join"), story.wait("recover")))
    assert story.told == ["recover", "join"]


def test_it_serves_once_it_is_unfenced_and_closes_its_listeners_first() -> None:
    story = Story()
    run(alone().catch_up(story.wait("read metadata")))
    run(alone().begin_service(story.step("serve"), story.wait("unfenced")))
    run(alone().end_service(story.wait("listeners"), story.wait("hand over")))
    assert story.told == ["unfenced", "serve", "listeners", "hand over"]


def test_it_asks_its_controller_once_and_looks_after_it_at_heartbeats() -> None:
    made = alone(broker_heartbeat_interval_ms="1500", initial_broker_registration_timeout_ms="60000")
    assert (made.retries, made.registration_patience_ms, made.tick_ms) == (False, 0, 1500)
    quorum: Any = SimpleNamespace(controller=object())
    assert made.controller_for("heartbeat", quorum) is quorum.controller


def test_a_part_of_its_start_waits_for_nobody_even_if_the_node_has_failed() -> None:
    story, loop = Story(), WorldLoop()
    failed = loop.create_future()
    failed.set_result(None)
    assert run(alone().unless_failed(_part(story), failed)) is True
    assert story.told == ["part"]


async def _part(story: Story) -> None:
    await story.wait("part")()


def test_it_has_nothing_to_replicate_and_logs_no_leaders() -> None:
    made, loop, nothing = alone(), WorldLoop(), SimpleNamespace()
    timers, quorum = Timers(loop), SimpleNamespace(loader=None)
    made.report_changes(quorum, lambda: True, nothing, timers)  # type: ignore[arg-type]
    assert repr(timers) == "<Timers >"
    made.replicate(nothing, OneDirectory([Uuid(bytes(16))]), lambda: 1, quorum)  # type: ignore[arg-type]
    assert vars(nothing) == {}
    delta = MetadataDelta(MetadataImage())
    made.apply_settings(delta, MetadataImage())
    run(made.apply_replicas(delta))
    made.leave_replication()
    made.close()


def test_its_coordinators_are_the_only_ones() -> None:
    others = alone().other_brokers(MetadataImage, lambda: None)  # type: ignore[arg-type, return-value]
    assert isinstance(others, OwnCoordinators)
    local: Any = object()
    assert others.marker_writer(local) is others.share_states(local) is others.end_offset(local) is local
    absent: list[Any] = [others.transaction_partitions(lambda name: 0), others.letters(5), others.requests("any")]  # type: ignore[func-returns-value]
    assert absent == [None, None, None]
    others.apply_delta(MetadataDelta(MetadataImage()))
    others.close()
