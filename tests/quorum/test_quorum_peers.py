"""A quorum over channels: three controllers and their observers in a simulated world."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Sequence

import pytest

from barnabas.client.errors import BrokerNotAvailable
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import VoteResponse
from barnabas.quorum.quorum_peers import ChannelPeers
from barnabas.raft.answer_messages import NodeAddress, answer_message
from barnabas.raft.peer_messages import (
    Fetched,
    FetchFrom,
    FetchSnapshot,
    LogEnd,
    SnapshotPiece,
    Vote,
    VoteAnswer,
    bootstrap_ids,
)
from barnabas.raft.raft_driver import NobodyListens
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_messages import Sender
from barnabas.raft.seams import SnapshotId
from barnabas.raft.snapshot_messages import piece_message
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from tests.client.scripted_broker import ScriptedBroker, answer, versions_response
from tests.quorum.simulated_quorum import Quorum


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
        carried, silent = observer.quorum.traffic, controller.quorum.traffic
        assert carried is not None
        assert carried.responses >= 15
        assert carried.requests - carried.responses <= 1
        assert min(carried.bytes_in, carried.bytes_out) > 15 * 20
        assert silent is not None
        assert silent.requests == 0, "there is no other voter to ask"
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
def test_what_was_answered_survives_kills_cuts_pauses_and_lost_power(seed: int) -> None:
    quorum = Quorum(seed, brokers=1, is_dynamic=bool(seed % 2), settings=TRIMMED)
    rng = random.Random(seed)
    network, members = quorum.world.network, list(quorum.members.values())

    async def trouble() -> None:
        victim, other = rng.sample(members, 2)
        kind = rng.choice(("kill", "power", "cut", "pause", "nothing"))
        if kind == "cut":
            network.cut(victim.node.host, other.node.host)
        elif kind == "kill":
            victim.node.kill()
        elif kind == "power":
            victim.node.lose_power()
        elif kind == "pause":
            victim.node.pause()
        await asyncio.sleep(rng.choice((0.1, 1.0, 5.0)))
        network.heal(victim.node.host, other.node.host)
        victim.node.go_on()
        if not victim.node.is_up:
            await victim.start()

    async def story() -> None:
        for each in members:
            each.node.slow_threads(rng.choice((0.0, 0.05, 0.5)))
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


# One peer, on a socket


ONE, TWO = ReplicaKey(1, b"1" * 16), ReplicaKey(2, b"2" * 16)
RANGES = {ApiKey.API_VERSIONS: (0, 4), ApiKey.VOTE: (0, 2), ApiKey.FETCH: (4, 17), ApiKey.FETCH_SNAPSHOT: (0, 1)}
HELLO = answer(versions_response(RANGES))
VOTE, FETCH = Vote(5, ONE, TWO, LogEnd(4, 9), pre_vote=True), FetchFrom(5, ONE, 9, 4)


def peers(*endpoints: VoterEndpoint, servers: Sequence[tuple[str, int]] = ()) -> ChannelPeers:
    """The peers of node 1, with node 2 at these endpoints."""
    return ChannelPeers(
        Sender("cluster"),
        loop=asyncio.get_running_loop(),
        listener_name="CONTROLLER",
        voters=lambda: VoterSet.of([Voter(2, b"2" * 16, endpoints)]),
        accepts=lambda epoch: epoch == 6,
        bootstrap_servers=servers,
        timeout_ms=5_000,
        client_id="raft-client-1",
    )


@pytest.mark.parametrize(
    ("request_", "expected", "version"),
    [(VOTE, VoteAnswer(6, 3), 2), (FETCH, Fetched(6, 3, error=ErrorCode.FENCED_LEADER_EPOCH), 17)],
    ids=["vote", "fetch"],
)
def test_a_request_travels_in_the_version_that_both_know_and_the_answer_names_the_leader(
    request_: Vote | FetchFrom, expected: VoteAnswer | Fetched, version: int
) -> None:
    response = answer_message(request_, expected, version, NodeAddress(3, "three.example", 9))

    async def story(port: int) -> None:
        made = peers(VoterEndpoint("CONTROLLER", "127.0.0.1", port))
        assert await made.send(2, request_) == expected
        assert made.endpoint_of(3) == VoterEndpoint("CONTROLLER", "three.example", 9)
        assert "channels=1 learned=[3]" in repr(made)
        made.close()
        with pytest.raises(BrokerNotAvailable):
            await made.send(2, request_)

    with ScriptedBroker(HELLO, answer(response)) as broker:
        asyncio.run(story(broker.port))
    assert (broker.seen[-1].version, broker.seen[-1].client_id) == (version, "raft-client-1")


def test_an_address_is_learned_only_from_an_answer_that_the_node_accepts_and_only_the_leaders() -> None:
    stale = answer_message(VOTE, VoteAnswer(5, 3), 2, NodeAddress(3, "foreign.example", 9))
    other = answer_message(VOTE, VoteAnswer(6, 3), 2, NodeAddress(3, "foreign.example", 9))
    assert isinstance(other, VoteResponse)
    other.node_endpoints[0].node_id = 2

    async def story(port: int) -> None:
        configured = VoterEndpoint("CONTROLLER", "127.0.0.1", port)
        made = peers(configured)
        assert await made.send(2, VOTE) == VoteAnswer(5, 3)
        assert await made.send(2, VOTE) == VoteAnswer(6, 3)
        assert (made.endpoint_of(2), made.endpoint_of(3)) == (configured, None)
        made.close()

    with ScriptedBroker(HELLO, answer(stale), answer(other)) as broker:
        asyncio.run(story(broker.port))


def test_a_piece_of_a_snapshot_travels_too() -> None:
    piece = SnapshotPiece(5, 2, SnapshotId(9, 4), 7, 3, b"data")

    async def story(port: int) -> None:
        made = peers(servers=[("127.0.0.1", port)])
        (server,) = bootstrap_ids(1)
        found = await made.fetch_snapshot(server, FetchSnapshot(5, ONE, SnapshotId(9, 4), 3))
        assert found._replace(data=bytes(found.data)) == piece
        made.close()

    with ScriptedBroker(HELLO, answer(piece_message(piece, 1))) as broker:
        asyncio.run(story(broker.port))


def test_where_a_node_said_it_is_counts_until_nobody_answers_there() -> None:
    vote = answer_message(VOTE, VoteAnswer(6), 2)

    async def story(port: int) -> None:
        configured = VoterEndpoint("CONTROLLER", "127.0.0.1", port)
        made = peers(VoterEndpoint("OTHER", "127.0.0.1", 9), configured)
        with socket.create_server(("127.0.0.1", 0)) as gone:
            closed_port = gone.getsockname()[1]
        made.learn(2, [VoterEndpoint("CONTROLLER", "127.0.0.1", closed_port)])
        with pytest.raises(NobodyListens, match="connection refused"):
            await made.send(2, VOTE)
        assert made.endpoint_of(2) == configured
        assert await made.send(2, VOTE) == VoteAnswer(6)
        made.close()

    with ScriptedBroker(HELLO, answer(vote)) as broker:
        asyncio.run(story(broker.port))


def test_a_node_without_a_known_address_is_not_available() -> None:
    async def story() -> None:
        made = peers()
        for node_id in (2, 3, -2):
            assert made.endpoint_of(node_id) is None
            with pytest.raises(BrokerNotAvailable, match=f"the address of node {node_id} is not known"):
                await made.send(node_id, VOTE)

    asyncio.run(story())


def test_a_peer_that_rejects_or_knows_no_pre_vote_gives_no_answer() -> None:
    old = answer(versions_response({**RANGES, ApiKey.VOTE: (0, 1)}))
    refused = answer(VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))

    async def story(port: int) -> None:
        made = peers(VoterEndpoint("CONTROLLER", "127.0.0.1", port))
        with pytest.raises(KafkaError) as raised:
            await made.send(2, VOTE)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(KafkaError) as raised:
            await made.send(2, VOTE._replace(pre_vote=False))
        assert raised.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
        made.close()

    with ScriptedBroker(old, refused) as broker:
        asyncio.run(story(broker.port))
