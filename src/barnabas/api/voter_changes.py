"""Changes of the quorum's voters: rejected, because they are those of the configuration or of the formatted directories.

AddRaftVoter     (API key 80, versions 0-1)   make a controller a voter (KIP-853); 1 may acknowledge before the commit (KIP-1186)
RemoveRaftVoter  (81, version 0)              take a controller out of the voters
UpdateRaftVoter  (82, version 0)              a voter tells its endpoints and its versions of kraft.version
"""

from __future__ import annotations

from typing import Any, NoReturn

from barnabas.api.context import ControllerContext
from barnabas.protocol.errors import ErrorCode, KafkaError


def handle(context: ControllerContext, request: Any) -> NoReturn:
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The voters of this quorum cannot be changed while it runs.")
