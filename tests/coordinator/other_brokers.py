"""Other brokers for these tests: requests to them go through their bytes, and wait until the test answers or loses them."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.virtual_loop import VirtualLoop


class Sent(NamedTuple):
    """A request on its way."""

    broker_id: int
    message: Any
    version: int
    answer: asyncio.Future[Any]


class OtherBrokers:
    """Holds every request that is sent."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.sent: list[Sent] = []

    async def send(self, broker_id: int, message: Any) -> Any:
        version = message.MAX_VERSION
        seen = type(message).decode(message.encode(version), version)
        sent = Sent(broker_id, seen, version, self.loop.create_future())
        self.sent.append(sent)
        return await sent.answer

    def take(self) -> Sent:
        """Remove and return the request that waits longest."""
        self.loop.run_ready()
        return self.sent.pop(0)

    def answer(self, sent: Sent, response: Any) -> None:
        """Answer a request, through the bytes of the response."""
        read = getattr(messages, type(response).__name__).decode(response.encode(sent.version), sent.version)
        sent.answer.set_result(read)
        self.loop.run_ready()

    def lose(self, sent: Sent) -> None:
        """End a request's connection."""
        sent.answer.set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION, "lost the connection"))
        self.loop.run_ready()
