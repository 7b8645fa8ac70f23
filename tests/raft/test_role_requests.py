"""What each role asks a peer."""

from __future__ import annotations

from barnabas.raft.peer_messages import BeginEpoch, FetchFrom, LogEnd, Vote
from barnabas.raft.role_requests import request_to
from tests.raft.member_of_three import ONE, TWO, VOTERS, Member

END = LogEnd(3, 8)


def test_a_role_asks_for_what_it_needs() -> None:
    member = Member(1, 1)
    quorum = member.node.quorum

    def asked() -> object:
        return request_to(2, quorum, VOTERS, END, 5)

    assert asked() == FetchFrom(1, ONE, 8, 3, 5)
    member.stand()
    assert asked() == Vote(1, ONE, TWO, END, pre_vote=True)
    member.grant()
    assert asked() == Vote(2, ONE, TWO, END)
    member.grant()
    assert asked() == BeginEpoch(2, 1, TWO)
