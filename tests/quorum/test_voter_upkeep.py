"""What a controller asks the leader about its own place among the voters."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from barnabas.quorum.voter_upkeep import VoterUpkeep
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import Voter, VoterEndpoint
from tests.coordinator.virtual_loop import VirtualLoop
from tests.raft.member_of_three import ONE, THREE, TWO, VOTERS, Member

ENDPOINT = VoterEndpoint("CONTROLLER", "one.example", 9093)


class Kept:
    """Node 1, or another node or directory, beside the voters 1, 2 and 3."""

    def __init__(self, key: ReplicaKey = ONE, *, joins: bool = False) -> None:
        self.loop = VirtualLoop()
        self.member = Member(1, key=key)
        self.asked: list[tuple[int, Message]] = []
        self.fails = False
        self.upkeep = VoterUpkeep(
            self.member.node, Voter(*key, (ENDPOINT,)), "cluster", self.tell, self.loop, period_ms=2_000, joins=joins
        )

    async def tell(self, leader_id: int, message: Message) -> Any:
        self.asked.append((leader_id, message))
        if self.fails:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        return AddRaftVoterResponse()

    def follow(self) -> None:
        self.member.follow(TWO, 2)


def test_a_voter_tells_the_leader_where_it_is() -> None:
    kept = Kept()
    assert kept.upkeep.due() is None, "it knows no leader"
    kept.follow()
    request = kept.upkeep.due()
    assert isinstance(request, UpdateRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id, request.current_leader_epoch) == (*ONE, 2)
    assert [(each.name, each.host, each.port) for each in request.listeners] == [tuple(ENDPOINT)]
    assert request.k_raft_version_feature.max_supported_version == 1
    history = kept.member.node.history
    history.add(VotersFrom(1, VOTERS.with_voter(Voter(*ONE, (ENDPOINT,)))))
    assert kept.upkeep.due() is None, "its entry is as it should be"


def test_a_voter_of_a_static_quorum_names_itself_to_each_leader_once() -> None:
    kept = Kept()
    kept.follow()
    kept.member.node.history.add(VotersFrom(1, VOTERS, kraft_version=0))
    kept.upkeep.start()
    kept.fails = True
    kept.loop.advance(2_000)
    kept.fails = False
    kept.loop.advance(6_000)
    first, second = kept.asked
    assert first == second == (2, kept.upkeep._update())
    kept.member.follow(THREE, 3)
    kept.loop.advance(4_000)
    leader, request = kept.asked[-1]
    assert isinstance(request, UpdateRaftVoterRequest)
    assert (len(kept.asked), leader, request.current_leader_epoch) == (3, 3, 3)
    kept.upkeep.close()


def test_an_observer_of_a_static_quorum_does_nothing() -> None:
    kept = Kept(ReplicaKey(4, b"4" * 16), joins=True)
    kept.follow()
    kept.member.node.history.add(VotersFrom(1, VOTERS, kraft_version=0))
    assert kept.upkeep.due() is None


def test_an_observer_joins_only_if_it_may() -> None:
    kept = Kept(ReplicaKey(4, b"4" * 16))
    kept.follow()
    assert kept.upkeep.due() is None
    joining = Kept(ReplicaKey(4, b"4" * 16), joins=True)
    joining.follow()
    request = joining.upkeep.due()
    assert isinstance(request, AddRaftVoterRequest)
    assert (request.voter_id, request.cluster_id, request.ack_when_committed) == (4, "cluster", False)


def test_a_new_directory_takes_the_place_of_the_old_one() -> None:
    kept = Kept(ReplicaKey(1, b"new" * 5 + b"!"), joins=True)
    kept.follow()
    request = kept.upkeep.due()
    assert isinstance(request, RemoveRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id) == ONE


def test_it_looks_again_and_again_until_it_is_closed() -> None:
    kept = Kept()
    kept.follow()
    kept.upkeep.start()
    kept.loop.advance(1_999)
    assert kept.asked == []
    kept.fails = True
    kept.loop.advance(1)
    kept.fails = False
    kept.loop.advance(2_000)
    assert [leader_id for leader_id, _ in kept.asked] == [2, 2]
    kept.upkeep.close()
    kept.loop.advance(9_000)
    assert len(kept.asked) == 2
