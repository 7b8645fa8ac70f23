"""Brokers for these tests: one on a real socket that follows a script, and one in memory that answers by function.

Both speak through the codec, so a request that does not fit the negotiated version fails here as it would on the wire.
"""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import BrokerNotAvailable
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey, response_header_version
from barnabas.protocol.framing import parse_request_header

CLOSE = "close"
SILENCE = "silence"


class Seen(NamedTuple):
    """A request as the broker read it."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: Any


def frame_response(
    api_key: int, version: int, correlation_id: int, response: Any, *, body_version: int | None = None
) -> bytes:
    body = struct.pack(">i", correlation_id)
    if response_header_version(api_key, version) >= 1:
        body += b"\0"
    body += response.encode(version if body_version is None else body_version)
    return struct.pack(">i", len(body)) + bytes(body)


def versions_response(ranges: dict[int, tuple[int, int]], error_code: int = 0) -> Any:
    item = messages.ApiVersionsResponse.ApiVersion
    return messages.ApiVersionsResponse(
        error_code=error_code,
        api_keys=[item(api_key=key, min_version=low, max_version=high) for key, (low, high) in ranges.items()],
    )


class ScriptedBroker:
    """Listens on a free port and answers each request with the next item of a script.

    An item is raw bytes, CLOSE, SILENCE, or a function of the request that returns one of these. With a context it speaks TLS.
    """

    def __init__(self, *script: Any, context: ssl.SSLContext | None = None) -> None:
        self._script = list(script)
        self._context = context
        self.seen: list[Seen] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> "ScriptedBroker":
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                # A client that has read enough, or likes no certificate, resets its connection, and dials again.
                with connection, contextlib.suppress(ConnectionError, ssl.SSLError):
                    if self._context is None:
                        self._answer(connection)
                    else:
                        with self._context.wrap_socket(connection, server_side=True) as secured:
                            self._answer(secured)

    def _answer(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while size := stream.read(4):
            frame = stream.read(struct.unpack(">i", size)[0])
            header, body = parse_request_header(frame)
            request_class = getattr(messages, _request_names[ApiKey(header.api_key)])
            version = min(header.api_version, request_class.MAX_VERSION)
            message = request_class.decode(frame[body:], version)
            seen = Seen(header.api_key, header.api_version, header.correlation_id, header.client_id, message)
            self.seen.append(seen)
            item = self._script.pop(0) if self._script else CLOSE
            if callable(item):
                item = item(seen)
            if item is CLOSE:
                return
            if item is SILENCE:
                continue
            assert isinstance(item, bytes)
            connection.sendall(item)


_request_names = {
    ApiKey.API_VERSIONS: "ApiVersionsRequest",
    ApiKey.METADATA: "MetadataRequest",
    ApiKey.FETCH: "FetchRequest",
    ApiKey.PRODUCE: "ProduceRequest",
    ApiKey.SASL_HANDSHAKE: "SaslHandshakeRequest",
    ApiKey.SASL_AUTHENTICATE: "SaslAuthenticateRequest",
    ApiKey.VOTE: "VoteRequest",
    ApiKey.FETCH_SNAPSHOT: "FetchSnapshotRequest",
}


def answer(response: Any, *, body_version: int | None = None) -> Callable[[Seen], bytes]:
    """A script item that answers whatever is asked with this response."""
    return lambda seen: frame_response(
        seen.api_key, seen.version, seen.correlation_id, response, body_version=body_version
    )


Handler = Callable[[int, Any, int], Any]
"""(broker id, request, version) -> response, or an exception to raise"""


class MemoryConnection(BlockingConnection):
    """A connection without a socket; its cluster answers."""

    def __init__(self, cluster: "MemoryCluster", host: str, port: int) -> None:
        self.cluster = cluster
        super().__init__(host, port, negotiate=False)
        self._exchange.versions = cluster.versions

    def _connect(self) -> Any:
        if self.port in self.cluster.down:
            raise BrokerNotAvailable(f"cannot reach {self.host}:{self.port}: connection refused")
        return _NoSocket()

    def request(
        self, message: Any, *, version: int | None = None, highest: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        if version is None:
            version = self.version_for(message, highest)
        request = type(message).decode(message.encode(version), version)
        self.cluster.requests.append((self.port, request, version))
        response = self.cluster.handle(self.port, request, version)
        if isinstance(response, Exception):
            self.close()
            raise response
        return type(response).decode(response.encode(version), version)


class _NoSocket:
    def close(self) -> None:
        pass


class MemoryCluster:
    """Brokers by id, which is also their port; answers Metadata itself and the rest through ``handlers``."""

    def __init__(self, *broker_ids: int, controller: int | None = None) -> None:
        self.broker_ids = list(broker_ids or (1,))
        self.controller_id = self.broker_ids[0] if controller is None else controller
        self.topics: dict[str, list[int]] = {}
        """Leader of each partition, -1 for none."""
        self.topic_ids: dict[str, bytes] = {}
        self.coordinators: dict[str, int] = {}
        self.versions: dict[int, tuple[int, int]] = {
            key: (getattr(messages, name).MIN_VERSION, getattr(messages, name).MAX_VERSION)
            for key, name in _all_requests().items()
        }
        self.handlers: dict[str, Handler] = {
            "MetadataRequest": self._metadata,
            "FindCoordinatorRequest": self._find_coordinator,
        }
        self.requests: list[tuple[int, Any, int]] = []
        self.down: set[int] = set()
        self.now = 0.0
        self.slept: list[float] = []

    def client(self, timeout_ms: int = 5000) -> Cluster:
        return Cluster(
            [f"127.0.0.1:{self.broker_ids[0]}"],
            timeout_ms=timeout_ms,
            clock=lambda: self.now,
            sleep=self._sleep,
            connect=lambda host, port, **_: MemoryConnection(self, host, port),
        )

    def asked(self, name: str) -> list[Any]:
        """The requests of one kind that arrived."""
        return [request for _, request, _ in self.requests if type(request).__name__ == name]

    def handle(self, broker_id: int, request: Any, version: int) -> Any:
        return self.handlers[type(request).__name__](broker_id, request, version)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def _metadata(self, broker_id: int, request: Any, version: int) -> Any:
        response = messages.MetadataResponse
        everything = request.topics is None or (version == 0 and not request.topics)
        names = list(self.topics) if everything else [topic.name for topic in request.topics]
        return response(
            cluster_id="memory",
            controller_id=self.controller_id,
            brokers=[
                response.MetadataResponseBroker(node_id=each, host="127.0.0.1", port=each) for each in self.broker_ids
            ],
            topics=[
                response.MetadataResponseTopic(
                    name=name,
                    topic_id=self.topic_ids.get(name, bytes(16)),
                    error_code=0 if name in self.topics else 3,
                    partitions=[
                        response.MetadataResponsePartition(
                            partition_index=index, leader_id=leader, replica_nodes=[leader], isr_nodes=[leader]
                        )
                        for index, leader in reversed(list(enumerate(self.topics.get(name, []))))
                    ],
                )
                for name in names
            ],
        )

    def _find_coordinator(self, broker_id: int, request: Any, version: int) -> Any:
        response = messages.FindCoordinatorResponse

        def node(key: str) -> int:
            return self.coordinators.get(key, self.broker_ids[0])

        if version >= 4:
            return response(
                coordinators=[
                    response.Coordinator(key=key, node_id=node(key), host="127.0.0.1", port=node(key))
                    for key in request.coordinator_keys
                ]
            )
        return response(node_id=node(request.key), host="127.0.0.1", port=node(request.key))


def _all_requests() -> dict[int, str]:
    names = [
        "Metadata", "FindCoordinator", "CreateTopics", "DeleteTopics", "CreatePartitions", "DescribeConfigs",
        "IncrementalAlterConfigs", "ListOffsets", "DeleteRecords", "ListGroups", "DescribeGroups",
        "ConsumerGroupDescribe", "OffsetFetch", "OffsetCommit", "OffsetDelete", "DeleteGroups", "DescribeCluster",
        "DescribeLogDirs", "DescribeProducers", "ShareGroupDescribe", "StreamsGroupDescribe", "DescribeShareGroupOffsets",
        "ListTransactions", "DescribeTransactions", "InitProducerId", "WriteTxnMarkers", "DescribeTopicPartitions",
        "Produce", "Fetch", "AlterPartitionReassignments", "ListPartitionReassignments", "ElectLeaders",
        "UnregisterBroker",
        "AddRaftVoter",
        "RemoveRaftVoter",
        "ApiVersions", "ListConfigResources",
    ]  # fmt: skip
    return {getattr(messages, f"{name}Request").API_KEY: f"{name}Request" for name in names}
