"""The requests of a node that no other one can reach; `tests/api/test_voter_changes.py` has those of the others."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.metadata.voter_requests import VoterRequest, VoterRequests
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest


@pytest.mark.parametrize(
    "request_", [AddRaftVoterRequest(cluster_id="c"), RemoveRaftVoterRequest(cluster_id=None), UpdateRaftVoterRequest(cluster_id="c")]
)  # fmt: skip
def test_a_node_that_cannot_be_joined(request_: VoterRequest) -> None:
    answer = asyncio.run(VoterRequests(None, "c").answer(request_))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    if not isinstance(request_, UpdateRaftVoterRequest):
        assert answer.error_message == (
            "The voters cannot be changed: this node has no listener for other controllers."
        )
