"""The controller of this node, active or not.

    standby    no controller state at all; requests are answered NOT_CONTROLLER
    elected    this node leads the quorum, and its loader has not read the epoch's first record yet; requests wait
    active     a `QuorumController` answers them

A `QuorumController` is made when this node has read everything up to its own epoch, and dropped when the node resigns. The next one begins
with the image that the loader has then. Both get the committed state from the loader.

Source: Kafka's `QuorumController.claim` and `renounce`, `ControllerServer`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

from barnabas.clock import Clock
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.controller_request import FORWARDING_TIMEOUT_MS, NOT_ACTIVE, Client, ControllerRequest
from barnabas.metadata.controller_view import ControllerSettings, PartitionQuota
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_loader import MetadataLoader
from barnabas.metadata.quorum_controller import ControllerCounts, QuorumController
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.raft.leader import Leader
from barnabas.raft.raft_driver import RaftDriver
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.steps import shielded, start

if TYPE_CHECKING:
    import asyncio

    from barnabas.metadata.voter_requests import VoterRequest, VoterRequests

logger = logging.getLogger(__name__)

NO_EPOCH = -1

Guard = Callable[
    [int, int, Message, Principal, str, Callable[[Message], "asyncio.Future[Any]"]], Coroutine[Any, Any, Message | None]
]
"""Asks the authorizer: takes api key, version, request, principal and address of a client, and a function that has the controller answer
what is allowed; awaits the response, or raises KafkaError. `api.authorization.guard.ControllerGuard.answer` is one.
"""

Audit = Callable[[int, Message, Message, Principal, str], Coroutine[Any, Any, None]]
"""Writes down what a client has changed: takes api key, request, response, and principal and address of the client.
`api.authorization.audit.ChangeAudit.write` is one.
"""

_VOTER_KEYS = (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UPDATE_RAFT_VOTER)


class LocalController:
    """The entry to the controller. It listens to `RaftDriver`, after the loader, and to the loader.

    Args:
        settings, configs: the node's configuration.
        create_future: the loop's; the controller needs nothing else of a loop.
        clock: timeouts, sessions and intervals go by its monotonic time.
        random: topic ids and replica placement are drawn from it.
        on_fault: called with the error when the node must stop.
        loop: its executor runs the managers of long requests; None runs them on the spot.
        bootstrap: the records that a fresh log begins with; Kafka's defaults when None.

    Attributes:
        active: the controller, while this node is the active one.
        counts: of its work in all its times as the active controller.
        voters: answers the requests that change the voters of the quorum, while this node leads it.
        guard: asks the authorizer about clients' requests; None if everything is allowed.
        audits: by api key, called with what a client has changed, before the client has the response.
        when_active: called when this node has become the active one.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        configs: ConfigResolver,
        driver: RaftDriver,
        loader: MetadataLoader,
        *,
        create_future: Callable[[], asyncio.Future[Any]],
        clock: Clock,
        random: random.Random,
        on_fault: Callable[[BaseException], None],
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap: list[MetadataRecord] | None = None,
    ) -> None:
        self.settings = settings
        self.driver = driver
        self.active: QuorumController | None = None
        self.counts = ControllerCounts()
        self.voters: VoterRequests | None = None
        self.guard: Guard | None = None
        self.audits: Mapping[int, Audit] = {}
        self.when_active: Callable[[], None] | None = None
        self._configs = configs
        self._loader = loader
        self._create_future = create_future
        self._clock = clock
        self._random = random
        self._on_fault = on_fault
        self._loop = loop
        self._bootstrap = bootstrap
        self._elected_epoch = NO_EPOCH
        # Requests that wait until this node has read up to its epoch.
        self._early: list[ControllerRequest] = []
        self._closed = False
        # The message of NOT_CONTROLLER.
        self._reason = NOT_ACTIVE
        loader.listener = self
        driver.add_listener(loader)
        driver.add_listener(self)

    def __repr__(self) -> str:
        return f"<LocalController id={self.settings.node_id} {self.active or 'standby'}>"

    @property
    def is_active(self) -> bool:
        return self.active is not None

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self._loader.image

    def handle(
        self,
        api_key: int,
        version: int,
        request: Message,
        *,
        principal: Principal = ANONYMOUS,
        deadline_ms: int | None = None,
        mutation_quota: PartitionQuota | None = None,
        is_long: bool = False,
        client: Client | None = None,
    ) -> asyncio.Future[Any]:
        """Answer a request.

        Args:
            deadline_ms: until when the request may begin, by the wall clock; None for no limit but the minute in which it must end.
            mutation_quota: counts the partitions that the request creates or deletes, and may refuse them.
            is_long: the request takes too long for one turn of the loop.
            principal, client: who asks; the guard is not called if `client` is None: this node asks in its own name.

        Returns:
            A future of the response; it also carries every exception. It fails with a `KafkaError` when the whole
            request does: NOT_CONTROLLER on a node that does not lead, REQUEST_TIMED_OUT when its time is over (a change
            may then still be committed), or what the API's manager raises.
        """
        if client is None:
            return self._ask(api_key, version, request, principal, deadline_ms, mutation_quota, is_long)

        def ask(allowed: Message) -> asyncio.Future[Any]:
            return self._ask(api_key, version, allowed, principal, deadline_ms, mutation_quota, is_long)

        answer = self._guarded(api_key, version, request, principal, client, ask)
        audit = self.audits.get(api_key)
        if audit is None:
            return answer
        assert self._loop is not None, "an audited controller has a loop"
        # A client that closes its connection soon does not get past the audit: its change may be committed all the same.
        return start(
            shielded(self._audited(audit, answer, api_key, request, principal, client.host), self._loop), self._loop
        )

    def _guarded(
        self,
        api_key: int,
        version: int,
        request: Message,
        principal: Principal,
        client: Client,
        ask: Callable[[Message], asyncio.Future[Any]],
    ) -> asyncio.Future[Any]:
        guard = self.guard
        if guard is None:
            return ask(request)
        assert self._loop is not None, "a guarded controller has a loop"
        return start(guard(api_key, version, request, principal, client.host, ask), self._loop)

    async def _audited(
        self, audit: Audit, answer: asyncio.Future[Any], api_key: int, request: Message, principal: Principal, host: str
    ) -> Any:
        response = await answer
        await audit(api_key, request, response, principal, host)
        return response

    def _ask(
        self,
        api_key: int,
        version: int,
        request: Message,
        principal: Principal,
        deadline_ms: int | None,
        mutation_quota: PartitionQuota | None,
        is_long: bool,
    ) -> asyncio.Future[Any]:
        expires_ms = self._clock.monotonic_ms() + FORWARDING_TIMEOUT_MS
        if deadline_ms is not None:
            deadline_ms = self._clock.to_monotonic_ms(deadline_ms)
        future = self._create_future()
        asked = ControllerRequest(
            api_key, version, request, deadline_ms, expires_ms, mutation_quota, is_long, future, principal
        )
        is_of_quorum = api_key in _VOTER_KEYS and self.voters is not None and self._loop is not None
        if is_of_quorum and self.driver.node.is_leader and not self._closed:
            # The leader of the quorum answers these itself, without the metadata.
            assert self.voters is not None
            assert self._loop is not None
            return start(self.voters.answer(cast("VoterRequest", request)), self._loop)
        if not self.is_active and not self._closed and self.driver.node.is_leader:
            self._early.append(asked)
        else:
            self._answer(asked)
        return future

    def _answer(self, request: ControllerRequest) -> None:
        if self.active is not None:
            self.active.answer(request)
        else:
            request.fail(KafkaError(ErrorCode.NOT_CONTROLLER, self._reason))

    def _answer_early(self) -> None:
        early, self._early = self._early, []
        for request in early:
            self._answer(request)

    # The quorum's listener

    def on_high_watermark(self, offset: int) -> None:
        """The loader reads up to there, and calls `on_commit`."""

    def on_leader(self, epoch: int) -> None:
        self._elected_epoch = epoch
        self._activate_if_ready()

    def on_resigned(self, epoch: int) -> None:
        self._elected_epoch = NO_EPOCH
        self._loader.forget_appended()
        self._deactivate()

    # The loader's listener

    def on_commit(self, image: MetadataImage) -> None:
        if self.active is None:
            self._activate_if_ready()
        else:
            self.active.on_commit(image)

    def on_loader_failed(self, error: Exception) -> None:
        self._stop_on(error)

    def _activate_if_ready(self) -> None:
        """Become active once the image has all that was committed before this node's epoch."""
        node = self.driver.node
        if self._closed or self._elected_epoch != node.epoch or self.active is not None:
            return
        leader = node.quorum.state
        assert isinstance(leader, Leader), f"{node!r} was elected"
        if self.image.provenance.offset < leader.epoch_start_offset:
            return
        self.active = QuorumController(
            self.settings,
            self._configs,
            self.driver,
            self._loader,
            clock=self._clock,
            random=self._random,
            counts=self.counts,
            on_fault=self._stop_on,
            loop=self._loop,
        )
        self.active.begin(self._bootstrap)
        self._answer_early()
        if self.when_active is not None:
            self.when_active()

    def _deactivate(self) -> None:
        active, self.active = self.active, None
        if active is not None:
            active.resign(self._reason)
        self._answer_early()

    def tick(self) -> None:
        """Time out requests, fence brokers whose session has expired, hold elections; the server calls this on a timer."""
        for request in self._early:
            request.fail_if_late(self._clock.monotonic_ms())
        if self.active is not None:
            self.active.tick()

    def _stop_on(self, error: Exception) -> None:
        """Close the controller and call the host, which has to end the process."""
        self._reason = f"The controller has stopped: {error}"
        logger.critical("The state of the metadata log is unknown, this node stops: %s", error, exc_info=error)
        self.close()
        self._on_fault(error)

    def close(self) -> None:
        """Fail the requests that wait; nothing is appended or committed after this."""
        self._closed = True
        self.driver.close()
        self._deactivate()
