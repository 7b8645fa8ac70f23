"""The way to the active controller, wherever it is.

    this node leads the quorum     a call of its own controller, on the spot
    another node leads             a request over a `Channel` to its controller listener
    no leader is known             wait

- A broker's own requests (registration, heartbeat, AlterPartition …) travel as they are, clients' requests in an Envelope
  (KIP-590), so that the controller sees the client's principal, client id and address.
- Both travel in the highest version that the controller knows, too: one of an older Apache Kafka serves the clients of a newer broker.
  A field that the older version cannot carry, and that is set, is UNSUPPORTED_VERSION. (Kafka's broker offers its clients what the
  controller of that moment knows, and closes their connections when they ask another one for more.)
- A request is sent again, after a short pause, until its time is over: when its connection is lost, when nothing listens, when the node
  is not the controller. Every kind of request, as in Kafka: a CreateTopics whose answer is lost may be answered TOPIC_ALREADY_EXISTS.
- While requests are under way the channel looks for a new leader, and sends it the requests that the old one has not answered.
- After the last try the request fails with REQUEST_TIMED_OUT.

A response means the same wherever it comes from: an error of the whole request is raised, as `LocalController` does. Only the response to
a client's request stays as it is, because its client reads the errors in it.

Invariants: a node has several of these, one for each purpose, so that no purpose waits for another; after `close` every request fails.

Source: Kafka's `NodeToControllerChannelManager`, `ForwardingManager`.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.api.serving.context import Client
from barnabas.client.channel import Channel
from barnabas.client.errors import BrokerNotAvailable, ClientError
from barnabas.clock import Clock
from barnabas.metadata.controller_request import FORWARDING_TIMEOUT_MS
from barnabas.pause import Pause
from barnabas.protocol.envelope import unwrapped, wrapped
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage, known_code
from barnabas.protocol.message import Struct
from barnabas.protocol.messages import EnvelopeRequest, EnvelopeResponse
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.steps import start

if TYPE_CHECKING:
    from barnabas.metadata.local_controller import LocalController
    from barnabas.quota.quota_manager import MutationQuota
    from barnabas.raft.voters import VoterEndpoint
    from barnabas.security.client_security import ClientSecurity

__all__ = ["ControllerChannel"]

logger = logging.getLogger(__name__)

RETRY_BACKOFF_MS = 50
"""The pause before the next try, give or take a fifth. Kafka's channel waits as long for a connection, twice as long for a leader."""

LOOK_MS = 500
"""How often a channel with requests under way looks whether another node leads."""

_JITTER = 0.2
_RETRIED = (ErrorCode.NOT_CONTROLLER,)


class _Asked(NamedTuple):
    """A request, with the arguments of `Controller.handle`."""

    api_key: int
    version: int
    request: Any
    principal: Principal
    deadline_ms: int | None
    mutation_quota: MutationQuota | None
    is_long: bool
    client: Client | None


class ControllerChannel:
    """The active controller for one purpose of this node; a `Controller`.

    Args:
        local: this node's own controller; None if it has none.
        leader: returns where the leader's controller listens; None if no leader is known.
        random: the source of the jitter in the pauses between tries.
        client_id: shown in the controller's logs and metrics.
        request_timeout_ms: for one try (`controller.socket.timeout.ms`).
        retry_timeout_ms: for all of them, unless the request has a deadline of its own; None for a minute.
        security: TLS and the login of this node; None in plain text.
    """

    def __init__(
        self,
        local: LocalController | None,
        leader: Callable[[], VoterEndpoint | None],
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        random: random_module.Random,
        client_id: str,
        request_timeout_ms: int = 30_000,
        retry_timeout_ms: int | None = None,
        security: ClientSecurity | None = None,
    ) -> None:
        self._local = local
        self._security = security
        self._leader = leader
        self._loop = loop
        self._clock = clock
        self._random = random
        self._client_id = client_id
        self._retry_timeout_ms = FORWARDING_TIMEOUT_MS if retry_timeout_ms is None else retry_timeout_ms
        self._request_timeout_ms = min(request_timeout_ms, self._retry_timeout_ms)
        self._endpoint: VoterEndpoint | None = None
        self._channel: Channel | None = None
        self._under_way = 0
        self._look_timer: asyncio.TimerHandle | None = None
        # The pauses of requests that are going to be sent again; a dict, because its order is the same in every run of a simulation.
        self._pauses: dict[Pause, None] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        where = "closed" if self._is_closed else "here" if self._is_here() else repr(self._channel or "no leader")
        return f"<ControllerChannel {self._client_id} {where} under_way={self._under_way} waiting={len(self._pauses)}>"

    def handle(
        self,
        api_key: int,
        version: int,
        request: Any,
        *,
        principal: Principal = ANONYMOUS,
        deadline_ms: int | None = None,
        mutation_quota: MutationQuota | None = None,
        is_long: bool = False,
        client: Client | None = None,
    ) -> asyncio.Future[Any]:
        """Answer a request, or have it answered.

        Args:
            version: of the request; it may travel in a lower one.
            deadline_ms: until when it may be sent again, by the wall clock.
            mutation_quota: for this node's controller; another one has its own.
            client: the sender; None for the broker's own request.

        Returns:
            A future of the response; it also carries every exception. It fails with a `KafkaError`: REQUEST_TIMED_OUT when the
            time is over (the request may then still be carried out), BROKER_NOT_AVAILABLE when this node stops.
        """
        asked = _Asked(api_key, version, request, principal, deadline_ms, mutation_quota, is_long, client)
        here: asyncio.Future[Any] | None = None
        if self._is_here():
            here = self._ask_here(asked)
            if here.done() and not _should_move(here):
                return here
        return start(self._answer(asked, here), self._loop)

    def close(self) -> None:
        """Fail all waiting requests; close the connection."""
        self._is_closed = True
        self._drop()
        for pause in tuple(self._pauses):
            pause.wake()

    # One request

    async def _answer(self, asked: _Asked, here: asyncio.Future[Any] | None) -> Any:
        expires_ms = self._expires_ms(asked)
        while True:
            try:
                if here is None and self._is_here():
                    here = self._ask_here(asked)
                if here is not None:
                    return await here
                return await self._ask_there(asked)
            except MalformedMessage as error:
                logger.error("A response of the controller cannot be read: %s", error.message)
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
            except KafkaError as error:
                if not (isinstance(error, ClientError) or error.code in _RETRIED):
                    raise
                await self._pause_after(error, expires_ms)
                here = None

    def _expires_ms(self, asked: _Asked) -> int:
        now_ms = self._clock.monotonic_ms()
        expires_ms = now_ms + self._retry_timeout_ms
        if asked.deadline_ms is None:
            return expires_ms
        return max(now_ms, min(expires_ms, self._clock.to_monotonic_ms(asked.deadline_ms)))

    async def _pause_after(self, error: KafkaError, expires_ms: int) -> None:
        """Wait before the next try.

        Raises:
            KafkaError: REQUEST_TIMED_OUT, BROKER_NOT_AVAILABLE: there is none.
        """
        left_ms = expires_ms - self._clock.monotonic_ms()
        if left_ms <= 0 and not self._is_closed:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"the controller does not answer: {error.message}") from error
        backoff_ms = RETRY_BACKOFF_MS * self._random.uniform(1 - _JITTER, 1 + _JITTER)
        if not self._is_closed:
            pause = Pause(self._loop)
            self._pauses[pause] = None
            try:
                await pause.or_woken(min(backoff_ms, left_ms) / 1000)
            finally:
                del self._pauses[pause]
        if self._is_closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "This node stops.") from error

    # Here

    def _is_here(self) -> bool:
        """Return whether this node leads; its controller may still be reading up to its own epoch."""
        return self._local is not None and self._local.driver.node.is_leader

    def _ask_here(self, asked: _Asked) -> asyncio.Future[Any]:
        assert self._local is not None, "this node has no controller"
        return self._local.handle(
            asked.api_key,
            asked.version,
            asked.request,
            principal=asked.principal,
            deadline_ms=asked.deadline_ms,
            mutation_quota=asked.mutation_quota,
            is_long=asked.is_long,
            client=asked.client,
        )

    # There

    async def _ask_there(self, asked: _Asked) -> Any:
        """Send a request to the leader's node.

        Raises:
            ClientError: it cannot be reached, or has not answered.
            KafkaError: it rejects the request, with NOT_CONTROLLER for example.
        """
        if asked.client is None:
            return _checked(await self._asking(lambda channel: channel.request(asked.request, highest=asked.version)))
        return await self._asking(partial(self._forward, asked, asked.client))

    async def _forward(self, asked: _Asked, client: Client, channel: Channel) -> Any:
        """Send a client's request in an envelope, in a lower version if the controller is older than this broker."""
        version = await channel.version_for(asked.request, asked.version)

        def wrap() -> EnvelopeRequest:
            return wrapped(
                asked.request,
                version,
                correlation_id=client.correlation_id,
                client_id=client.client_id,
                principal=asked.principal,
                host=client.host,
            )

        def unwrap() -> Any:
            return unwrapped(envelope.response_data, asked.api_key, version, client.correlation_id)

        # A long request is encoded, and its response decoded, apart from the loop.
        run = self._loop.run_in_executor
        request = await run(None, wrap) if asked.is_long else wrap()
        envelope: EnvelopeResponse = await channel.request(request)
        if envelope.error_code:
            raise _envelope_error(envelope.error_code)
        return await run(None, unwrap) if asked.is_long else unwrap()

    async def _asking(self, ask: Callable[[Channel], Awaitable[Any]]) -> Any:
        """Ask the leader's node something, and look meanwhile whether another node leads."""
        channel = self._to_leader()
        self._under_way += 1
        if self._look_timer is None:
            self._look_timer = self._loop.call_later(LOOK_MS / 1000, self._look)
        try:
            return await ask(channel)
        finally:
            self._under_way -= 1
            if not self._under_way and self._look_timer is not None:
                self._look_timer.cancel()
                self._look_timer = None

    def _to_leader(self) -> Channel:
        """Return the channel to the node that leads now; the one to its predecessor is closed."""
        endpoint = self._leader()
        if endpoint is None or self._is_closed:
            raise BrokerNotAvailable("no active controller is known")
        if self._channel is None or endpoint != self._endpoint:
            self._drop()
            self._endpoint = endpoint
            self._channel = Channel(
                self._loop,
                endpoint.host,
                endpoint.port,
                client_id=self._client_id,
                timeout_ms=self._request_timeout_ms,
                security=self._security,
            )
        return self._channel

    def _look(self) -> None:
        """Give up on a leader that has a successor: it may be paused or cut off, and not answer for long."""
        self._look_timer = self._loop.call_later(LOOK_MS / 1000, self._look)
        if self._leader() not in (None, self._endpoint):
            self._drop()

    def _drop(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()


def _should_move(done: asyncio.Future[Any]) -> bool:
    """Return whether this node's controller resigned before it answered, so that the request goes to the next one."""
    error = None if done.cancelled() else done.exception()
    return isinstance(error, KafkaError) and error.code in _RETRIED


def _checked(response: Struct) -> Any:
    """Return a response to the broker's own request.

    Raises:
        KafkaError: the error of the whole request, or NOT_CONTROLLER on its first part, which then is on all of them.
    """
    code = getattr(response, "error_code", 0)
    if code:
        raise KafkaError(code, getattr(response, "error_message", None))
    first: Any = response
    while first is not None:
        if getattr(first, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        arrays = (getattr(first, name) for name in first.FIELDS)
        first = next(
            (array[0] for array in arrays if type(array) is list and array and isinstance(array[0], Struct)), None
        )
    return response


def _envelope_error(code: int) -> KafkaError:
    """Return the error of a request whose envelope was rejected; its client learns no more, because it knows nothing of envelopes."""
    if code in (ErrorCode.NOT_CONTROLLER, ErrorCode.UNSUPPORTED_VERSION):
        return KafkaError(code)
    logger.error("The controller rejects a forwarded request: %s", known_code(code).name)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
