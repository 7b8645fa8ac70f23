"""The seam to the other nodes: what carries requests in the server and in the tests of this room is the same to a driver."""

from __future__ import annotations

import inspect

import pytest

from barnabas.quorum.quorum_peers import ChannelPeers
from barnabas.raft.peers import Peers
from tests.raft.quorum_of_drivers import Member
from tests.raft.test_raft_driver import HeldPeers

NAMES = ("send", "fetch_snapshot", "endpoint_of", "learn", "close")


def parameters(function: object) -> list[tuple[str, object]]:
    assert callable(function)
    return [(each.name, each.kind) for each in inspect.signature(function).parameters.values()]


def test_the_seam_has_these_methods() -> None:
    assert {name for name in vars(Peers) if not name.startswith("_")} == set(NAMES)


@pytest.mark.parametrize("kind", [ChannelPeers, Member, HeldPeers])
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_peers_is_called_as_the_seam_says(kind: type, name: str) -> None:
    seam, method = getattr(Peers, name), getattr(kind, name)
    assert parameters(method) == parameters(seam)
    assert inspect.iscoroutinefunction(method) == inspect.iscoroutinefunction(seam)
