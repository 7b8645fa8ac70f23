"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter: rejected, because the voters of a quorum are those of its configuration."""

from __future__ import annotations

from typing import Any, NoReturn

from barnabas.api.context import ControllerContext
from barnabas.protocol.errors import ErrorCode, KafkaError

__all__ = ["reject_voter_change"]


def reject_voter_change(context: ControllerContext, request: Any) -> NoReturn:
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION,
        "The voters of this quorum cannot be changed while it runs; they are those of controller.quorum.voters.",
    )
