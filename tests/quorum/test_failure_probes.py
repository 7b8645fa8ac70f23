"""A broker's death, as the controller finds it out: over the simulated network."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.api.serving.context import ConnectionInfo
from barnabas.metadata.cluster_image import BrokerRegistration, ClusterImage, Endpoint
from barnabas.metadata.local_controller import LocalController
from barnabas.quorum.failure_probes import FailureProbes
from barnabas.simulation.node import Node
from barnabas.simulation.world import World

EPOCH = 7


class Active:
    """The active controller: it writes down what it is told."""

    def __init__(self) -> None:
        self.disconnected: list[tuple[int, int]] = []
        self.died: list[tuple[int, int]] = []

    def broker_disconnected(self, broker_id: int, epoch: int) -> None:
        self.disconnected.append((broker_id, epoch))

    def broker_has_died(self, broker_id: int, epoch: int) -> None:
        self.died.append((broker_id, epoch))


class Stage:
    """A controller's machine, and that of broker 1, which listens on two ports."""

    def __init__(self, *, fenced: bool = False) -> None:
        self.world = World(1)
        self.machine: Node = self.world.add_node("controller")
        self.broker: Node = self.world.add_node("broker")
        self.active: Active | None = Active()
        listeners = tuple(Endpoint(f"L{port}", self.broker.host, port, 0) for port in (9092, 9094))
        registration = BrokerRegistration(1, EPOCH, b"i" * 16, listeners, {}, None, fenced, False, ())
        image = SimpleNamespace(cluster=ClusterImage({1: registration}))
        controller = SimpleNamespace(image=image, active=self.active)
        self.controller = controller
        self.connections: dict[str, ConnectionInfo] = {}
        self.probes = FailureProbes(cast("LocalController", controller), self.machine.loop)  # type: ignore[arg-type]

    def heard(self, connection: str, epoch: int = EPOCH) -> None:
        self.connections[connection] = ConnectionInfo(connection)
        self.probes.heard(1, epoch, self.connections[connection])

    async def listen(self, *ports: int) -> None:
        async def serve() -> None:
            for port in ports:
                await self.broker.loop.create_server(asyncio.Protocol, self.broker.host, port)

        await self.broker.run(serve())

    def run(self, story: Any) -> None:
        self.world.play(story)


async def later() -> None:
    await asyncio.sleep(3)


def test_a_broker_whose_addresses_refuse_twice_has_died() -> None:
    stage = Stage()

    async def story() -> None:
        stage.heard("c1")
        stage.connections["c1"].closed()
        assert stage.active is not None
        assert stage.active.disconnected == [(1, EPOCH)]
        assert stage.active.died == []
        await later()
        assert stage.active.died == [(1, EPOCH)]

    stage.run(story())


@pytest.mark.parametrize("port", [9092, 9094])
def test_a_broker_that_still_accepts_anywhere_keeps_its_session(port: int) -> None:
    stage = Stage()

    async def story() -> None:
        await stage.listen(port)
        stage.heard("c1")
        stage.connections["c1"].closed()
        await later()
        assert stage.active is not None
        assert stage.active.died == []

    stage.run(story())


def test_a_process_that_closes_its_listeners_last_has_died() -> None:
    """A kernel that ends a process closes its files one after the other; a controller is quick enough to get between."""
    stage = Stage()

    async def story() -> None:
        await stage.listen(9092)
        stage.heard("c1")
        stage.connections["c1"].closed()
        await asyncio.sleep(0.045)
        stage.broker.kill()
        await later()
        assert stage.active is not None
        assert stage.active.died == [(1, EPOCH)]

    stage.run(story())


def test_a_machine_that_does_not_answer_keeps_its_session() -> None:
    stage = Stage()

    async def story() -> None:
        stage.broker.lose_power()
        stage.heard("c1")
        stage.connections["c1"].closed()
        await later()
        assert stage.active is not None
        assert stage.active.died == []

    stage.run(story())


def test_a_broker_that_has_a_new_connection_lives() -> None:
    stage = Stage()

    async def story() -> None:
        stage.heard("c1")
        stage.heard("c2")
        stage.connections["c1"].closed()
        await later()
        assert stage.active is not None
        assert (stage.active.disconnected, stage.active.died) == ([], [])
        stage.connections["c2"].closed()
        stage.heard("c3")
        await later()
        assert stage.active.died == []

    stage.run(story())


def test_only_the_active_controller_probes_and_only_the_registration_it_heard() -> None:
    stage = Stage()

    async def story() -> None:
        stage.heard("c1", epoch=EPOCH - 1)
        stage.connections["c1"].closed()
        stage.heard("c2")
        stage.controller.active = None
        stage.connections["c2"].closed()
        await later()
        assert stage.active is not None
        assert (stage.active.disconnected, stage.active.died) == ([], [])

    stage.run(story())


def test_a_new_controller_probes_every_broker_in_service() -> None:
    for fenced in (False, True):
        stage = Stage(fenced=fenced)

        async def story(stage: Stage = stage, fenced: bool = fenced) -> None:
            stage.probes.probe_all()
            await later()
            assert stage.active is not None
            assert stage.active.died == ([] if fenced else [(1, EPOCH)])

        stage.run(story())


def test_a_closed_prober_says_nothing_more() -> None:
    stage = Stage()

    async def story() -> None:
        stage.probes.probe_all()
        assert repr(stage.probes) == "<FailureProbes brokers=[] probing=1>"
        stage.probes.close()
        await later()
        assert stage.active is not None
        assert stage.active.died == []

    stage.run(story())
