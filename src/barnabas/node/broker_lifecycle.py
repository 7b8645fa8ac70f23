"""A broker's membership in its cluster: registration with the controller, then heartbeats at an interval.

    register ──► catch up ──► be unfenced ──► heartbeat after heartbeat ──► shut down
    (again until  (heartbeats   (from the first                             (until the controller
     it succeeds)  want a fence) heartbeat without)                          lets the broker go)

- The controller returns a broker epoch at registration. The broker sends it with every request, so that the controller can reject
  requests of the same broker before a restart.
- At registration the broker names the epoch of its last run if that run stopped in order; else the controller takes it for crashed.
- Until it has read the metadata up to its registration, and is ready to serve, the broker asks to stay fenced. A heartbeat that does
  not achieve what the broker wants is followed by the next one soon.
- A heartbeat says what this broker's replicas of partitions without a leader have; the controller elects the longest log.
- A heartbeat names the data directories that have failed; the controller elects others for the replicas in them. It also names those that
  are cordoned (KIP-1066); the controller places no replica on a broker that has no other.
- A heartbeat that fails is repeated after a pause that doubles, up to the interval of heartbeats; a registration, up to half a second.
  The first of several equal failures is logged.
- Before it stops, a broker asks the controller until it may: its leaderships are handed over first. It gives up when nobody has answered
  for half a session, in which time a quorum elects a new controller: if all nodes of a cluster stop, there is none for the last ones.
- A broker that the controller no longer knows (STALE_BROKER_EPOCH) does not register again until it is restarted, as in Kafka: somebody
  unregistered it, or another process has taken its id.

The broker of a node alone, whose own controller answers, asks once (`Patience`): if it cannot register or be unfenced, its start fails.

Source: Kafka's `BrokerLifecycleManager`, KIP-631.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.metadata.metadata_version import supported_features
from barnabas.net.listeners import protocol_code, registered_address
from barnabas.pause import Pause
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
)
from barnabas.protocol.primitives import Uuid
from barnabas.steps import in_background, sleep

if TYPE_CHECKING:
    from barnabas.api.serving.context import Controller
    from barnabas.config.config import BrokerConfig
    from barnabas.log.meta_properties import MetaProperties
    from barnabas.net.listener import Listener

logger = logging.getLogger(__name__)

# The pause before a heartbeat that asks again for what the last one has not achieved.
_SOON_MS = 10
# The longest pause while the broker shuts down; the other brokers have to learn of new leaders.
_SHUT_DOWN_RETRY_MS = 50
# The pause after a failure; the next ones are twice as long each.
_BACKOFF_MS = 100
_BACKOFF_JITTER = 0.02
# The longest pause before a broker registers again: after a crash it waits for the session of its last run to end.
_REGISTER_RETRY_MS = 500
# What no later registration of this process would change.
_FINAL = frozenset({ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REGISTRATION, ErrorCode.UNSUPPORTED_VERSION})


class Patience(Protocol):
    """How a broker takes the failures of its controller; `node.membership.Membership` is one."""

    @property
    def retries(self) -> bool: ...
    @property
    def registration_patience_ms(self) -> int: ...


class BrokerLifecycle:
    """One broker's requests about itself to the controller.

    Args:
        meta: the identity of the data directory.
        controller: answers registrations and heartbeats, and nothing that could make them wait.
        metadata_offset: returns the last offset of the metadata log that this broker has applied.
        replica_logs: returns what this broker's replicas of partitions without a leader have; asked once the broker is ready.
        random: the source of the incarnation id, and of the jitter in pauses.
        directory_ids: of the data directories; empty if the one has none.
        offline_directories: returns the ids of those that have failed.
        cordoned_directories: returns the ids of those that are cordoned; None while the cluster's metadata has no place for them.

    Attributes:
        epoch: the broker epoch; -1 before the registration.
    """

    def __init__(
        self,
        config: BrokerConfig,
        patience: Patience,
        meta: MetaProperties,
        controller: Controller,
        metadata_offset: Callable[[], int],
        random: random_module.Random,
        loop: asyncio.AbstractEventLoop,
        replica_logs: Callable[[], list[BrokerHeartbeatRequest.ReplicaLog]] = list,
        directory_ids: Sequence[bytes] = (),
        offline_directories: Callable[[], list[bytes]] = list,
        cordoned_directories: Callable[[], list[bytes] | None] = lambda: None,
    ) -> None:
        self.epoch = -1
        self._config = config
        self._patience = patience
        self._meta = meta
        self._controller = controller
        self._metadata_offset = metadata_offset
        self._replica_logs = replica_logs
        self._directory_ids = directory_ids
        self._offline_directories = offline_directories
        self._cordoned_directories = cordoned_directories
        self._random = random
        self._loop = loop
        self._is_ready = False
        self._caught_up: asyncio.Future[None] = loop.create_future()
        self._unfenced: asyncio.Future[None] = loop.create_future()
        # The heartbeats, and the pause between two of them; None while one is under way.
        self._beating: asyncio.Future[None] | None = None
        self._pause = Pause(loop)
        self._failures = 0
        self._complaint = ""

    def __repr__(self) -> str:
        state = "unfenced" if self._unfenced.done() else "ready" if self._is_ready else "starting"
        return f"<BrokerLifecycle {self._config.node_id} epoch={self.epoch} {state}>"

    # Registration

    async def register(self, listeners: Sequence[Listener], previous_epoch: int = -1) -> None:
        """Register this broker's addresses and features; a member tries again for `initial.broker.registration.timeout.ms`.

        Args:
            previous_epoch: the broker epoch of a last run that stopped in order; else -1.

        Raises:
            KafkaError: the controller rejects the broker, for example with INCONSISTENT_CLUSTER_ID, or cannot be asked.
        """
        request = self._registration(listeners, previous_epoch)
        gives_up_at = self._loop.time() + self._patience.registration_patience_ms / 1000
        while True:
            try:
                response = await self._controller.handle(
                    ApiKey.BROKER_REGISTRATION, BrokerRegistrationRequest.MAX_VERSION, request
                )
                break
            except KafkaError as error:
                if error.code in _FINAL or self._loop.time() >= gives_up_at:
                    raise
                pause_ms = min(self._pause_after(error, "This broker cannot register yet"), _REGISTER_RETRY_MS)
                await sleep(pause_ms / 1000, self._loop)
        self._succeeded()
        self.epoch = response.broker_epoch

    def _registration(self, listeners: Sequence[Listener], previous_epoch: int) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self._config.node_id,
            cluster_id=self._meta.cluster_id,
            incarnation_id=Uuid(self._random.randbytes(16)),
            listeners=[_registered(self._config, listener) for listener in listeners],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.min, max_supported_version=levels.max
                )
                for name, levels in supported_features().items()
            ],
            rack=self._config.broker_rack,
            log_dirs=list(self._directory_ids),
            previous_broker_epoch=previous_epoch,
        )

    # Heartbeats

    async def catch_up(self) -> None:
        """Begin the heartbeats, and return when this broker has read the metadata up to its registration."""
        self._begin_beating()
        await self._caught_up

    async def unfence(self) -> None:
        """Say that this broker is ready to serve, and return when the controller has unfenced it.

        Raises:
            KafkaError: the controller of this node, which is alone, cannot answer.
        """
        self._is_ready = True
        self._begin_beating()
        await self._unfenced

    def beat_soon(self) -> None:
        """Send the next heartbeat without a pause: it has something to say."""
        if self._is_ready and self._beating is not None:
            self._pause.wake()

    def _begin_beating(self) -> None:
        """Send the first heartbeat, or the next one at once."""
        if self._beating is None:
            self._beating = in_background(self._beat_on(), self._loop)
        else:
            self._pause.wake()

    async def _beat_on(self) -> None:
        while True:
            await self._pause.or_woken(await self._beat() / 1000)

    async def _beat(self) -> float:
        """Send one heartbeat; return the pause after it, in milliseconds."""
        try:
            response = await self._heartbeat()
        except KafkaError as error:
            self._is_hurried = False  # Not at once after a failure.
            if not self._patience.retries and not self._unfenced.done():
                self._unfenced.set_exception(error)
            return self._pause_after(error, "A heartbeat failed")
        self._succeeded()
        if response.is_caught_up:
            _set(self._caught_up)
        if self._is_ready and not response.is_fenced:
            _set(self._unfenced)
        is_waiting = response.is_fenced if self._is_ready else not response.is_caught_up
        return _SOON_MS if is_waiting else self._config.broker_heartbeat_interval_ms

    def _heartbeat(self, *, want_shut_down: bool = False) -> asyncio.Future[BrokerHeartbeatResponse]:
        return self._controller.handle(
            ApiKey.BROKER_HEARTBEAT,
            BrokerHeartbeatRequest.MAX_VERSION,
            BrokerHeartbeatRequest(
                broker_id=self._config.node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._metadata_offset(),
                want_fence=not self._is_ready,
                want_shut_down=want_shut_down,
                offline_log_dirs=self._offline_directories(),
                cordoned_log_dirs=self._cordoned_directories(),
                replica_logs=self._replica_logs() if self._is_ready else [],
            ),
        )

    # Failures

    def _pause_after(self, error: KafkaError, what: str) -> float:
        """Log a failure unless it is the last one again; return the pause after it, in milliseconds."""
        if error.message != self._complaint:
            logger.warning("%s: %s", what, error)
        self._complaint = error.message
        pause_ms = min(_BACKOFF_MS << min(self._failures, 16), self._config.broker_heartbeat_interval_ms)
        self._failures += 1
        return pause_ms * self._random.uniform(1 - _BACKOFF_JITTER, 1 + _BACKOFF_JITTER)

    def _succeeded(self) -> None:
        if self._failures:
            logger.info("The controller answers again")
        self._failures, self._complaint = 0, ""

    # The end

    async def shut_down(self) -> None:
        """Hand this broker's leaderships over; return when it may stop.

        Raises:
            KafkaError: the controller does not know this broker, or has not answered for half a session.
        """
        self.close()
        pause_ms: float = _SOON_MS
        answered_at = self._loop.time()
        while True:
            try:
                response = await self._heartbeat(want_shut_down=True)
            except KafkaError as error:
                silent_ms = (self._loop.time() - answered_at) * 1000
                is_final = not self._patience.retries or error.code == ErrorCode.STALE_BROKER_EPOCH
                if is_final or silent_ms >= self._config.broker_session_timeout_ms // 2:
                    raise
                await sleep(self._pause_after(error, "This broker cannot hand over yet") / 1000, self._loop)
                continue
            if response.should_shut_down:
                return
            self._succeeded()
            answered_at = self._loop.time()
            await sleep(pause_ms / 1000, self._loop)
            pause_ms = min(2 * pause_ms, _SHUT_DOWN_RETRY_MS)

    def close(self) -> None:
        """Send no more heartbeats."""
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
        self._caught_up.cancel()
        self._unfenced.cancel()

    # Producer ids

    def allocate_producer_ids(self, controller: Controller) -> asyncio.Future[AllocateProducerIdsResponse]:
        """Allocate a block of producer ids that no other broker has."""
        return controller.handle(
            ApiKey.ALLOCATE_PRODUCER_IDS,
            AllocateProducerIdsRequest.MAX_VERSION,
            AllocateProducerIdsRequest(broker_id=self._config.node_id, broker_epoch=self.epoch),
        )


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _registered(config: BrokerConfig, listener: Listener) -> BrokerRegistrationRequest.Listener:
    host, port = registered_address(config, listener)
    return BrokerRegistrationRequest.Listener(
        name=listener.name, host=host, port=port, security_protocol=protocol_code(listener.protocol)
    )
