"""The ports of a node that other machines reach, and their protection.

    a listener      a login (SASL, or SSL with `ssl.client.auth=required`), and an authorizer that says who may do what
    /metrics        TLS, and a bearer token

- A port that other machines reach without its protection stops the start, in one line. With `barnabas.insecure=true` (`--insecure`) it is
  a warning: the node's owner has said that nothing protects it.
- The addresses that are bound decide, and not the names in the settings. A port of the loopback interface needs no protection.
- Before a start (`Planned`) the addresses are those that a name has on this machine.

Apache Kafka has no such rule.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.config.authorizer_settings import authorizer_of
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.config.listener_security import has_login
from barnabas.http_access import is_loopback
from barnabas.net.addresses import EVERY_ADDRESS, dialable

if TYPE_CHECKING:
    from barnabas.net.http_listener import HttpListener
    from barnabas.net.listener import Listener

__all__ = ["Planned", "open_ports", "planned_open_ports", "refuse_open_ports", "warn_of_open_ports"]

logger = logging.getLogger(__name__)

_INSECURE = "barnabas.insecure"


class Planned(NamedTuple):
    """A listener that is not bound yet.

    Attributes:
        bound_hosts: the addresses of its host; none if this machine does not know the host.
    """

    name: str
    protocol: str
    host: str
    port: int
    bound_hosts: Sequence[str]


def planned_open_ports(config: BrokerConfig) -> list[str]:
    """Return what `open_ports` would, as far as the settings and the names that this machine knows say it."""
    listeners = (*config.listeners, *config.controller_listeners)
    planned = [
        Planned(each.name, each.security_protocol, each.host, each.port, _named(each.host)) for each in listeners
    ]
    return open_ports(config, planned, None, has_authorizer=authorizer_of(config.properties) is not None)


def _named(host: str) -> list[str]:
    if host in EVERY_ADDRESS:
        return ["0.0.0.0"]
    try:
        return [str(each[4][0]) for each in socket.getaddrinfo(host, None)]
    except OSError:
        return []


def open_ports(
    config: BrokerConfig, listeners: Iterable[Listener | Planned], http: HttpListener | None, *, has_authorizer: bool
) -> list[str]:
    """Return a line about each port that other machines reach, and that lacks protection.

    Args:
        listeners: for clients and for controllers; bound.
        http: of the metrics; bound, or None.
    """
    lines = [_of_listener(config, each, has_authorizer=has_authorizer) for each in listeners]
    if http is not None:
        lines.append(_of_metrics(http))
    return [line for line in lines if line]


def refuse_open_ports(config: BrokerConfig, lines: list[str]) -> None:
    """Stop the start because of the first of these ports, unless the node may be insecure.

    Raises:
        CannotStart: it may not.
    """
    if lines and not config.bool_value(_INSECURE):
        remedy = f"add what is missing, or listen on 127.0.0.1; --insecure ({_INSECURE}=true) starts the node as it is"
        raise CannotStart(f"{lines[0]} ({remedy})")


def warn_of_open_ports(lines: list[str]) -> None:
    """Warn of these ports of a node that has started."""
    for line in lines:
        logger.warning("%s", line[0].upper() + line[1:])


def _of_listener(config: BrokerConfig, listener: Listener | Planned, *, has_authorizer: bool) -> str:
    """Return a line about a listener; empty if it is protected."""
    knows_clients = has_login(config, listener.name, listener.protocol)
    reach = _reach(listener)
    if not reach or (knows_clients and has_authorizer):
        return ""
    if knows_clients:
        why = "without an authorizer (authorizer.class.name): everybody who logs in may read, write and delete"
    elif has_authorizer:
        why = "without a login (SASL, or SSL with ssl.client.auth=required): it does not know who anyone is"
    else:
        why = "without a login and an authorizer: anyone who reaches the port may read, write and delete"
    return f"listener {listener.name} serves {reach}, {why}"


def _of_metrics(http: HttpListener) -> str:
    """Return a line about the port of the metrics; empty if it is protected."""
    missing = [each for each, is_there in (("TLS", http.has_tls), ("a bearer token", http.has_token)) if not is_there]
    reach = _reach(http)
    if not reach or not missing:
        return ""
    settings = "barnabas.metrics.ssl.keystore.location, barnabas.metrics.token.file"
    return (
        f"/metrics serves {reach}, without {' and '.join(missing)} ({settings}): "
        "the names of topics, groups and clients are open"
    )


def _reach(listener: Listener | Planned | HttpListener) -> str:
    """Return which other machines reach a listener, and its address here; empty if none does."""
    if all(is_loopback(host) for host in listener.bound_hosts):
        return ""
    where = "every address of this machine" if listener.host in EVERY_ADDRESS else "the network"
    return f"{where}, here as {dialable(listener.host, listener.port)}"
