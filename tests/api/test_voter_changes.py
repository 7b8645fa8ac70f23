"""The requests that would change the quorum's voters."""

from __future__ import annotations

import pytest

from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.errors import ErrorCode
from tests.api.controlling import Controlling


@pytest.mark.parametrize("key", [ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UPDATE_RAFT_VOTER])
def test_the_voters_cannot_be_changed(controlling: Controlling, key: int) -> None:
    answer = controlling.ask(api(key).request_class())
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    if key != ApiKey.UPDATE_RAFT_VOTER:  # It has no message.
        assert answer.error_message == "The voters of this quorum cannot be changed while it runs."


def test_a_static_quorum_rejects_changes_in_kafkas_words() -> None:
    static = Controlling(
        controller_quorum_voters="1@controller.example:9093", process_roles="broker,controller", node_id="1"
    )
    answer = static.ask(api(ApiKey.ADD_RAFT_VOTER).request_class())
    message = "Cluster doesn't support adding voter because the kraft.version feature is 0"
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNSUPPORTED_VERSION, message)
    static.close()
