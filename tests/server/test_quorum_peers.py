"""A quorum over channels: three controllers and their observers in a simulated world."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.server.quorum_world import Quorum


@pytest.mark.parametrize("seed", range(3))
def test_three_controllers_elect_replicate_and_survive_a_killed_leader(seed: int) -> None:
    quorum = Quorum(seed)

    async def story() -> None:
        await quorum.start()
        former = await quorum.leader()
        await former.change(1_000)
        await quorum.agreed()
        former.node.kill()
        leader = await quorum.leader()
        assert leader is not former
        await leader.change(2_000)
        await former.start()
        await quorum.agreed()
        assert former.driver.node.leader_id == leader.id

    quorum.world.play(story(), seconds=300)


def test_an_observer_follows_whoever_leads() -> None:
    quorum = Quorum(1, brokers=1)
    observer = quorum.members[4]

    async def story() -> None:
        await quorum.start()
        former = await quorum.leader()
        await former.change(1_000)
        await quorum.agreed()
        former.node.kill()
        leader = await quorum.leader()
        await leader.change(2_000)
        await quorum.agreed()
        assert observer.quorum.local_controller is None
        assert not observer.quorum.is_leader
        endpoint = observer.quorum.leader_endpoint()
        assert endpoint is not None
        assert endpoint.host == leader.node.host
        assert "VoteRequest" not in observer.answered

    quorum.world.play(story(), seconds=300)


def test_an_observer_finds_the_voters_by_a_bootstrap_server_and_learns_them_from_the_log() -> None:
    quorum = Quorum(1, brokers=1, is_dynamic=True)
    observer = quorum.members[4]

    async def story() -> None:
        await observer.start()
        assert observer.driver.node.voters.ids() == ()
        await asyncio.sleep(5)
        for number in (3, 2, 1):
            await quorum.members[number].start()
        former = await quorum.leader()
        await former.change(1_000)
        await quorum.agreed()
        assert observer.driver.node.voters == former.driver.node.voters
        assert observer.images[-1].features.kraft_version == 1
        quorum.members[1].node.kill()
        leader = await quorum.leader()
        await leader.change(2_000)
        await quorum.agreed()
        observer.node.kill()
        await observer.start()
        await quorum.agreed()

    quorum.world.play(story(), seconds=300)


def test_a_sole_voter_is_followed_by_an_observer_that_waits_for_news() -> None:
    quorum = Quorum(1, voters=1, brokers=1)
    controller, observer = quorum.members[1], quorum.members[2]

    async def story() -> None:
        await controller.start()
        assert controller.quorum.is_leader, "it elects itself before the start returns"
        await observer.start()
        await quorum.leader()
        await quorum.agreed()
        before = len(controller.answered)
        await asyncio.sleep(10)
        assert 15 < len(controller.answered) - before < 25, "a fetch each half second"
        await controller.change(1_000)
        await asyncio.sleep(0.1)
        assert observer.images[-1].configs == controller.images[-1].configs
        controller.node.kill()
        await asyncio.sleep(10)
        await controller.start()
        await controller.change(2_000)
        await quorum.agreed()

    quorum.world.play(story(), seconds=300)


TRIMMED = {
    "metadata.log.max.record.bytes.between.snapshots": "600",
    "metadata.max.retention.bytes": "1000",
    "internal.metadata.log.segment.bytes": "400",
}


@pytest.mark.parametrize("seed", range(3))
def test_a_follower_and_an_observer_that_fell_behind_a_trimmed_log_take_the_snapshot(seed: int) -> None:
    quorum = Quorum(seed, brokers=1, is_dynamic=bool(seed), settings=TRIMMED)

    async def story() -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.change(1)
        await quorum.agreed()
        late = [next(each for each in quorum.members.values() if each is not leader), quorum.members[4]]
        ends = [each.log.end_offset for each in late]
        for each in late:
            each.node.kill()
        for number in range(2, 40):
            await leader.change(number)
        assert leader.log.start_offset > max(ends)
        for each in late:
            await each.start()
        await quorum.agreed()
        assert "FetchSnapshotRequest" in leader.answered
        assert all(each.log.start_offset > max(ends) for each in late)
        await leader.change(100)
        await quorum.agreed()

    quorum.world.play(story(), seconds=300)


def test_an_observer_that_runs_and_is_left_behind_takes_the_snapshot() -> None:
    """Its image is replaced: what the snapshot lacks was deleted."""
    quorum = Quorum(2, brokers=1, settings=TRIMMED)
    observer = quorum.members[4]

    async def story() -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.change(1, "log.retention.bytes")
        await quorum.agreed()
        before = observer.images[-1]
        for each in quorum.members.values():
            quorum.world.network.cut(observer.node.host, each.node.host)
        await leader.change(None, "log.retention.bytes")
        for number in range(2, 40):
            await leader.change(number)
        for each in quorum.members.values():
            quorum.world.network.heal(observer.node.host, each.node.host)
        await quorum.agreed()
        assert before in observer.images, "it has not started again"
        assert observer.log.start_offset > before.provenance.offset

    quorum.world.play(story(), seconds=300)


@pytest.mark.parametrize("seed", range(4))
def test_what_was_answered_survives_kills_cuts_and_lost_power(seed: int) -> None:
    quorum = Quorum(seed, brokers=1, is_dynamic=bool(seed % 2), settings=TRIMMED)
    rng = random.Random(seed)
    network, members = quorum.world.network, list(quorum.members.values())

    async def trouble() -> None:
        victim, other = rng.sample(members, 2)
        kind = rng.choice(("kill", "power", "cut", "nothing"))
        if kind == "cut":
            network.cut(victim.node.host, other.node.host)
        elif kind == "kill":
            victim.node.kill()
        elif kind == "power":
            victim.node.lose_power()
        await asyncio.sleep(rng.choice((0.1, 1.0, 5.0)))
        network.heal(victim.node.host, other.node.host)
        if not victim.node.is_up:
            await victim.start()

    async def story() -> None:
        await quorum.start()
        answered = 0
        for number in range(1, 40):
            leader = await quorum.leader()
            change = asyncio.ensure_future(leader.change(number))
            await asyncio.sleep(0)
            await trouble()
            await asyncio.wait({change}, timeout=10)
            if change.done() and change.exception() is None:
                answered = number
            change.cancel()
        await quorum.agreed()
        image = (await quorum.leader()).images[-1]
        (values,) = image.configs.by_resource.values()
        assert int(values["log.retention.ms"]) >= answered > 0

    quorum.world.play(story(), seconds=3_000)
