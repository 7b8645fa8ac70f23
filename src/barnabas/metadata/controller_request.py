"""A request to the controller, and the future of its response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.metadata.controller_view import PartitionQuota
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    import asyncio

# How long a request may wait for its commit: as long as Kafka's brokers wait for the controller.
FORWARDING_TIMEOUT_MS = 60_000
LATE = "The request's time was over before it was handled."
UNCOMMITTED = "The change was not committed in time; it may still be."
NOT_ACTIVE = "This node is not the active controller."


class Client(NamedTuple):
    """The client for which a broker sends a request to the controller."""

    client_id: str | None
    host: str
    correlation_id: int


class ControllerRequest(NamedTuple):
    """Attributes: `deadline_ms` and `expires_ms`, of the monotonic clock, say until when it may begin and must end."""

    api_key: int
    version: int
    body: Message
    deadline_ms: int | None
    expires_ms: int
    mutation_quota: PartitionQuota | None
    is_long: bool
    future: asyncio.Future[Any]
    principal: Principal = ANONYMOUS

    def is_late(self, now_ms: int) -> bool:
        """Return whether it is too late to begin."""
        return self.expires_ms < now_ms or (self.deadline_ms is not None and self.deadline_ms < now_ms)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def fail_if_late(self, now_ms: int) -> None:
        if self.is_late(now_ms):
            self.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT, LATE))
