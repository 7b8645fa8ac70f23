"""Changes of the quorum's voters: rejected, because they are those of the configuration or of the formatted directories.

    AddRaftVoter     (API key 80, versions 0-1)   make a controller a voter (KIP-853); 1 may acknowledge before the commit (KIP-1186)
    RemoveRaftVoter  (81, version 0)              take a controller out of the voters
    UpdateRaftVoter  (82, version 0)              a voter tells its endpoints and its versions of kraft.version

- In a quorum of kraft.version 0, whose voters no log names, Kafka rejects the first two as well, with the same words.
"""

from __future__ import annotations

from typing import Any, NoReturn

from barnabas.api.context import ControllerContext
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError

_ACTIONS = {ApiKey.ADD_RAFT_VOTER: "adding", ApiKey.REMOVE_RAFT_VOTER: "removing", ApiKey.UPDATE_RAFT_VOTER: "updating"}


def handle(context: ControllerContext, request: Any) -> NoReturn:
    message = "The voters of this quorum cannot be changed while it runs."
    if context.services.driver.node.kraft_version == 0:
        action = _ACTIONS[ApiKey(context.api_key)]
        message = f"Cluster doesn't support {action} voter because the kraft.version feature is 0"
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
