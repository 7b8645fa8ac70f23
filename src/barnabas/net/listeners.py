"""The listening sockets of a broker or a controller, as its configuration has them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.config.cannot_start import CannotStart, remedies
from barnabas.config.config import BrokerConfig
from barnabas.config.endpoints import Listener as Endpoint
from barnabas.net.addresses import EVERY_ADDRESS, remedy_for, why_not
from barnabas.net.connections import Connections
from barnabas.net.listener import Listener
from barnabas.net.listener_security import ListenerSecurity

if TYPE_CHECKING:
    from barnabas.net.refreshing_keys import RefreshingKeys

__all__ = ["bind_listeners", "protocol_code", "registered_address"]

_JWKS_ENDPOINT_URL = "sasl.oauthbearer.jwks.endpoint.url"


async def bind_listeners(
    endpoints: Iterable[Endpoint],
    listeners: list[Listener],
    connections: Connections,
    config: BrokerConfig,
    *,
    loop: asyncio.AbstractEventLoop,
    now_ms: Callable[[], int],
    securities: Mapping[str, ListenerSecurity],
) -> None:
    """Bind a socket for each entry of `listeners`; early connections wait for `Listener.serve`.

    Args:
        listeners: each one is appended as soon as it is bound, so that a start that fails can stop them.
        securities: of the listeners that are not PLAINTEXT, by name.

    Raises:
        CannotStart: an address cannot be bound, or the keys of OAUTHBEARER cannot be read.
    """
    for endpoint in endpoints:
        security = None if endpoint.security_protocol == "PLAINTEXT" else securities[endpoint.name]
        listener = Listener(
            loop,
            name=endpoint.name,
            host=endpoint.host,
            port=endpoint.port,
            max_frame_bytes=config.socket_request_max_bytes,
            max_idle_ms=config.connections_max_idle_ms,
            quotas=connections.quotas,
            memory=connections.memory,
            now_ms=now_ms,
            backlog=config.socket_listen_backlog_size,
            send_buffer_bytes=config.socket_send_buffer_bytes,
            lines=connections.lines,
            descriptors=connections.descriptors,
            security=security,
        )
        try:
            await listener.bind()
        except OSError as error:
            where = f"{endpoint.host}:{endpoint.port}"
            remedy = remedy_for(error, remedies(config.embedded))
            raise CannotStart(f"cannot listen on {where}: {why_not(error)}{remedy}") from None
        listeners.append(listener)
        listener.on_room = connections.look_for_room
        if security is not None and security.keys is not None:
            await _begin_keys(security.keys, listener)


async def _begin_keys(keys: RefreshingKeys, listener: Listener) -> None:
    try:
        await keys.begin(listener.loop, listener.lines)
    except (OSError, ValueError) as error:
        setting = f"listener.name.{listener.name.lower()}.oauthbearer.{_JWKS_ENDPOINT_URL}"
        raise CannotStart(f"{setting}: {keys.address}: {error}") from None


def protocol_code(protocol: str) -> int:
    """Return Kafka's number of a security protocol, as registrations have it."""
    return ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL").index(protocol)


def registered_address(config: BrokerConfig, listener: Listener) -> tuple[str, int]:
    """Return the host and the port of a bound listener that the node registers with the controller.

    With `advertised.listeners=auto`, clients receive the address that they dialled; the registration still needs a name.
    """
    for endpoint in (*(config.advertised_listeners or ()), *config.advertised_controller_listeners):
        if endpoint.name == listener.name:
            host = endpoint.host or _host(listener)
            return host, endpoint.port if endpoint.port > 0 else listener.port
    return _host(listener), listener.port


def _host(listener: Listener) -> str:
    return socket.gethostname() if listener.host in EVERY_ADDRESS else listener.host
