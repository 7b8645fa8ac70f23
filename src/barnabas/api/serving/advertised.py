"""The address of a broker in responses.

Metadata, FindCoordinator, DescribeCluster and the leader hints of Produce name brokers by host and port.

- With explicit listeners it is the entry with the name of the connection's listener, as in Kafka.
- With `advertised.listeners=auto` it is, for this node, the address that the client dialled. That address works, through a port
  mapping too.
- For another broker it is the registered address of the listener with that name. Callers leave out a broker without one, as in Kafka.
- A fenced broker has no address for clients. Only DescribeCluster shows those it has registered.
- Behind address translation the dialled port may differ from the bound one, and the socket cannot know. Then set
  `advertised.listeners`.

Source: Kafka's `MetadataCache.getAliveBrokerNode`, KIP-103 for listeners by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from barnabas.api.serving.context import RequestContext

if TYPE_CHECKING:
    from barnabas.protocol.messages import FetchResponse, ProduceResponse, ShareAcknowledgeResponse, ShareFetchResponse

    R = TypeVar("R", ProduceResponse, FetchResponse, ShareFetchResponse, ShareAcknowledgeResponse)

__all__ = ["advertised_endpoint", "name_leaders"]


def advertised_endpoint(
    context: RequestContext, broker_id: int, *, include_fenced: bool = False
) -> tuple[str, int] | None:
    """Return host and port of a broker for this client, None if it is unknown, fenced, or lacks the connection's listener."""
    services, connection = context.services, context.connection
    if broker_id == services.node_id:
        advertised = services.config.advertised_listeners
        if advertised is None:
            return connection.local_host, connection.local_port
        for listener in advertised:
            if listener.name == connection.listener_name:
                # Port 0 means any free port: the client dialled the bound one.
                return listener.host or connection.local_host, listener.port or connection.local_port
        return None
    broker = services.image().cluster.brokers.get(broker_id)
    if broker is None or (broker.fenced and not include_fenced):
        return None
    endpoint = broker.listener(connection.listener_name)
    return None if endpoint is None else (endpoint.host, endpoint.port)


def name_leaders(context: RequestContext, response: R, leaders: Iterable[int]) -> None:
    """Add the addresses of the leaders that a response names (KIP-951).

    Args:
        response: has a `NodeEndpoint` of its own.
        leaders: node ids, -1 for no leader.
    """
    for leader in sorted(set(leaders)):
        endpoint = advertised_endpoint(context, leader) if leader >= 0 else None
        if endpoint is not None:
            response.node_endpoints.append(
                type(response).NodeEndpoint(node_id=leader, host=endpoint[0], port=endpoint[1])
            )
