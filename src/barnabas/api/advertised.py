"""The address at which a client finds a broker, as responses name it.

Metadata, FindCoordinator, DescribeCluster and Produce's leader hints all name brokers by host and port. Kafka answers with
the address configured for the listener the client came in by. `advertised.listeners=auto` goes one further: for this
node it answers with the address the client itself dialled, which is an address that works, through a port mapping too. A
listener that is configured with a name, such as localhost, is answered by that name, as by Kafka.

- Explicit listeners are respected: the entry whose name is the connection's listener.
- Another broker's address comes from its registration, again by the name of the connection's listener; a broker without
  such a listener is left out by the callers, as in Kafka.
- Behind address translation the dialled port may differ from the one bound; the socket cannot know. Then set
  `advertised.listeners`.

Source: Kafka's `MetadataCache.getAliveBrokerNode`, KIP-103 for listeners by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.api.context import RequestContext

__all__ = ["advertised_endpoint", "name_leaders"]


def advertised_endpoint(context: RequestContext, broker_id: int) -> tuple[str, int] | None:
    """Return host and port of a broker for this client; None if the broker is unknown or has no listener of the connection's name."""
    services, connection = context.services, context.connection
    if broker_id == services.node_id:
        advertised = services.config.advertised_listeners
        if advertised is None:
            return connection.local_host, connection.local_port
        for listener in advertised:
            if listener.name == connection.listener_name:
                # Port 0 asked for any free port: what was bound is what the client dialled.
                return listener.host or connection.local_host, listener.port or connection.local_port
        return None
    broker = services.image().cluster.brokers.get(broker_id)
    if broker is None:
        return None
    endpoint = broker.listener(connection.listener_name)
    return None if endpoint is None else (endpoint.host, endpoint.port)


def name_leaders(context: RequestContext, response: Any, leaders: Iterable[int]) -> None:
    """Add the addresses of the leaders that a response points to (KIP-951); -1 stands for no leader.

    Args:
        response: of Produce, Fetch, ShareFetch or ShareAcknowledge, each with a `NodeEndpoint` of its own.
    """
    for leader in sorted(set(leaders)):
        endpoint = advertised_endpoint(context, leader) if leader >= 0 else None
        if endpoint is not None:
            response.node_endpoints.append(
                type(response).NodeEndpoint(node_id=leader, host=endpoint[0], port=endpoint[1])
            )
