"""Connections to the other brokers of the cluster.

    image ── registration of broker 2 ── its endpoint of the listener between brokers ──►  Channel to broker 2, one a purpose

- `config.inter_broker_listener` chooses the listener.
- Each purpose (fetches, markers, …) has a connection of its own: a broker answers a connection's requests in their order, and a
  request that waits long would hold up the others.
- A channel belongs to one registration. When the broker registers again, under a new epoch or a new address, or leaves, the channel
  is closed: the requests under way end with ConnectionLost. So senders ask for the channel at each request, and keep none.
- A fenced broker has a channel: fenced brokers are asked too, for example by a follower whose leader is about to be replaced.

A node without other brokers makes no channel and does not import this module.

Source: Kafka's `MetadataCache.getAliveBrokerNode` for the address, `BrokerBlockingSender` and `InterBrokerSendThread` for the channels.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.client.channel import Channel
from barnabas.config.listener_security import INTER_BROKER_MECHANISM
from barnabas.metadata.cluster_image import BrokerRegistration, Endpoint
from barnabas.net.security_of_listeners import dialling_security
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.config.config import BrokerConfig
    from barnabas.metadata.image import MetadataImage
    from barnabas.net.renewed_stores import RenewedStores
    from barnabas.protocol.message import Message

__all__ = ["InterBrokerChannels"]


class _Kept(NamedTuple):
    """A channel and the registration for which it was made."""

    epoch: int
    host: str
    port: int
    channel: Channel


class InterBrokerChannels:
    """The channels of one broker to the others, by broker and purpose.

    Args:
        image: returns the metadata as of now.
        loop: runs the connections.
        stores: of this node; the connections use those of the listener between brokers.

    Raises:
        CannotStart: this node cannot log in at the others.
    """

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        stores: RenewedStores,
    ) -> None:
        self._image = image
        self._node_id = config.node_id
        self._timeout_ms = config.request_timeout_ms
        self._loop = loop
        self._listener = config.inter_broker_listener
        self._security = dialling_security(config, self._listener.name, INTER_BROKER_MECHANISM, stores)
        self._kept: dict[tuple[int, str], _Kept] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<InterBrokerChannels of={self._node_id} channels={len(self._kept)}>"

    def channel(self, broker_id: int, purpose: str) -> Channel:
        """Return the channel to a broker; it connects at the first request.

        Args:
            purpose: a word for what the requests are for; part of the client id that the other broker shows.

        Raises:
            KafkaError: BROKER_NOT_AVAILABLE: the broker is not registered, or has no listener for brokers.
        """
        registration, endpoint = self._registered(broker_id)
        wanted = (registration.epoch, endpoint.host, endpoint.port)
        kept = self._kept.get((broker_id, purpose))
        if kept is not None and kept[:3] == wanted:
            return kept.channel
        if kept is not None:
            kept.channel.close()
        channel = Channel(
            self._loop,
            endpoint.host,
            endpoint.port,
            client_id=f"broker-{self._node_id}-{purpose}",
            timeout_ms=self._timeout_ms,
            security=self._security,
        )
        self._kept[broker_id, purpose] = _Kept(*wanted, channel)
        return channel

    async def request(
        self,
        broker_id: int,
        purpose: str,
        message: Message,
        *,
        highest: int | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Send one request to a broker and return its response.

        Args:
            highest: the highest version to negotiate.

        Raises:
            KafkaError: as `channel`, or what `Channel.request` raises.
            MalformedMessage: the response cannot be read.
        """
        return await self.channel(broker_id, purpose).request(message, highest=highest, timeout_ms=timeout_ms)

    def drop_outdated(self) -> None:
        """Close the channels to brokers that have left, or registered again; called when the image has changed."""
        for (broker_id, purpose), kept in list(self._kept.items()):
            try:
                registration, endpoint = self._registered(broker_id)
                is_current = kept[:3] == (registration.epoch, endpoint.host, endpoint.port)
            except KafkaError:
                is_current = False
            if not is_current:
                del self._kept[broker_id, purpose]
                kept.channel.close()

    def close(self) -> None:
        """Close every channel; later requests fail with BROKER_NOT_AVAILABLE."""
        self._is_closed = True
        for kept in self._kept.values():
            kept.channel.close()
        self._kept.clear()

    def _registered(self, broker_id: int) -> tuple[BrokerRegistration, Endpoint]:
        if self._is_closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {self._node_id} is stopping")
        registration = self._image().cluster.brokers.get(broker_id)
        if registration is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not registered")
        endpoint = self._listener.of_broker(registration)
        if endpoint is None:
            name = self._listener.name
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} has no listener {name} for other brokers"
            )
        return registration, endpoint
