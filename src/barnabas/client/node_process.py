"""The process of a broker, known by a connection: when the process ends, so does the connection.

No request of the protocol tells a client when a broker was started, or its broker epoch.
"""

from __future__ import annotations

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ConnectionLost
from barnabas.client.exchange import Exchange
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages

__all__ = ["NodeProcess"]


class NodeProcess:
    """The process that a broker has now.

    Raises:
        KafkaError: it does not answer.
    """

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self._connection: BlockingConnection = cluster.connection(node_id)

    def __repr__(self) -> str:
        return f"<NodeProcess {self._connection!r}>"

    def has_ended(self) -> bool:
        """Ask the process something; return whether it is gone.

        Raises:
            RequestTimedOut: it neither answers nor closes the connection.
        """
        connection = self._connection
        if connection.closed:
            return True
        version = connection.version_for(messages.ApiVersionsRequest)
        try:
            connection.request(Exchange.versions_request(version), version=version)
        except ConnectionLost:
            return True
        return False
