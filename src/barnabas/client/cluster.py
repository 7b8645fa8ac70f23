"""Many connections seen as one cluster: metadata, leaders, coordinators, and retries within a deadline.

Any bootstrap address answers the first Metadata request; the brokers it names are then dialled by node id, each once, on first
use. A question about many things (partitions, groups) becomes one request to each broker that can answer a part of it. Items with a
retriable error are asked again, after a pause and with fresh metadata, until the deadline of the call (`Cluster.ask_each`).

Invariants:

- Every public call ends within `timeout_ms`, give or take one connection attempt.
- Metadata requests never create topics (except at brokers before 0.11, which have no field for it).
- A connection that failed is dropped; the next use dials again.

Limits: one thread at a time. Cheap to build, so a Spark task builds its own instead of pickling one.
Sources: org.apache.kafka.clients.NetworkClient and admin.internals.PartitionLeaderStrategy; KIP-516 (topic ids).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from barnabas.client.bootstrap import parse_bootstrap
from barnabas.client.closeable import Closeable
from barnabas.client.cluster_metadata import (
    ClusterMetadata,
    Node,
    TopicPartition,
    read_metadata,
)
from barnabas.client.errors import BrokerNotAvailable, ClientError, ConnectionLost, RequestTimedOut
from barnabas.client.first_contact import check_is_not_sasl, meet
from barnabas.client.other_protocols import protocol_at
from barnabas.client.wire import DEFAULT_CLIENT_ID, BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.security.client_security import ClientSecurity

ItemT = TypeVar("ItemT", bound=Hashable)
ResultT = TypeVar("ResultT")

GROUP_COORDINATOR = 0
TRANSACTION_COORDINATOR = 1


class Cluster(Closeable):
    """A cluster, dialled on demand.

    Args:
        bootstrap: `host:port,host:port` or a sequence of such addresses.
        client_id: shown in the brokers' logs and metrics.
        timeout_ms: each call returns or raises within it.
        security: TLS and logins of every connection; None for plain ones.
        retry_backoff_ms: first pause before asking again; doubles up to a second.
        clock, sleep, connect, identify: seams for tests.

    Raises:
        ValueError: a malformed address. Nothing is dialled yet.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        client_id: str = DEFAULT_CLIENT_ID,
        timeout_ms: int = 30_000,
        *,
        security: ClientSecurity | None = None,
        retry_backoff_ms: int = 100,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        connect: Callable[..., BlockingConnection] = BlockingConnection,
        identify: Callable[[str, int], str | None] = protocol_at,
    ) -> None:
        self.bootstrap = parse_bootstrap(bootstrap)
        self.client_id = client_id
        self.timeout_ms = timeout_ms
        self.security = security
        self.retry_backoff_ms = retry_backoff_ms
        self._clock = clock
        self._sleep = sleep
        self._connect = connect
        self._identify = identify
        self._has_answered = False
        self._may_be_sasl = security is None or security.mechanism is None
        self._nodes: dict[int, Node] = {}
        self._connections: dict[int, BlockingConnection] = {}
        self._bootstrap_connection: BlockingConnection | None = None
        self._controller_id = -1
        self._leaders: dict[TopicPartition, int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    def __repr__(self) -> str:
        return f"<Cluster {','.join(f'{host}:{port}' for host, port in self.bootstrap)} {len(self._nodes)} brokers>"

    def close(self) -> None:
        """Close every connection; the next call dials again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        if self._bootstrap_connection is not None:
            self._bootstrap_connection.close()
            self._bootstrap_connection = None

    # Deadlines
    @property
    def broker_timeout_ms(self) -> int:
        """How long a broker may wait for the controller: a tenth less than this side waits, so that its answer names the cause."""
        return max(1, self.timeout_ms - min(1_000, self.timeout_ms // 10))

    def deadline(self, timeout_ms: int | None = None) -> float:
        """Return when a call that begins now must end, on this cluster's clock; None for the cluster's timeout."""
        return self._clock() + (self.timeout_ms if timeout_ms is None else timeout_ms) / 1000

    def remaining_ms(self, deadline: float) -> int:
        """Return the milliseconds left, at least 1."""
        return max(1, int((deadline - self._clock()) * 1000))

    def pause(self, attempt: int, deadline: float) -> bool:
        """Sleep before the next attempt; return False without sleeping if the deadline would pass meanwhile."""
        seconds: float = min(1.0, self.retry_backoff_ms * 2.0 ** min(attempt, 10) / 1000)
        if self._clock() + seconds >= deadline:
            return False
        self._sleep(seconds)
        return True

    def retry(self, ask: Callable[[], ResultT]) -> ResultT:
        """Call `ask` until it raises no retriable error, or the deadline has passed.

        Raises:
            KafkaError: the last error.
        """
        deadline = self.deadline()
        attempt = 0
        while True:
            try:
                return ask()
            except KafkaError as error:
                if not self._is_worth_another(error, attempt):
                    raise
                if not self.pause(attempt, deadline):
                    raise
            attempt += 1
            self.forget()

    def _is_worth_another(self, error: KafkaError, attempt: int) -> bool:
        """Return whether `retry` should ask again.

        Raises:
            OtherProtocol: the listener expects SASL.
        """
        # No retry for an address where nothing listens, or nothing has ever answered: a person waits for the answer.
        if isinstance(error, BrokerNotAvailable) or (isinstance(error, ClientError) and not self._has_answered):
            return False
        if isinstance(error, ConnectionLost):
            self._check_is_not_sasl()
        return _may_pass(error, attempt)

    def _check_is_not_sasl(self) -> None:
        if self._may_be_sasl:
            with suppress(ClientError):
                check_is_not_sasl(self.any_connection())
                self._may_be_sasl = False

    def forget(self) -> None:
        """Forget the leaders, the coordinators and the controller."""
        self._leaders.clear()
        self._coordinators.clear()
        self._controller_id = -1

    # Connections
    def any_connection(self) -> BlockingConnection:
        """Return a connection to some broker: an open one, a bootstrap address, or any known broker.

        Raises:
            BrokerNotAvailable: no broker can be reached; the message names every address tried.
            OtherProtocol: the address is not a Kafka listener that we can use.
        """
        for connection in (self._bootstrap_connection, *self._connections.values()):
            if connection is not None and not connection.closed:
                return connection
        if not self._has_answered:
            self._bootstrap_connection = meet(
                dict.fromkeys(self.bootstrap), self._dial, self.timeout_ms, self._identify, self.security
            )
            self._has_answered = True
            return self._bootstrap_connection
        known = [(node.host, node.port) for node in self._nodes.values()]
        failures: list[ClientError] = []
        for host, port in dict.fromkeys([*self.bootstrap, *known]):
            try:
                self._bootstrap_connection = self._dial(host, port)
                return self._bootstrap_connection
            except ClientError as error:
                failures.append(error)
        if len(failures) == 1 or all(isinstance(failure, RequestTimedOut) for failure in failures):
            raise failures[0]
        raise BrokerNotAvailable("; ".join(failure.message for failure in failures))

    def connection(self, node_id: int) -> BlockingConnection:
        """Return the connection to a broker.

        Raises:
            BrokerNotAvailable: the metadata has no broker with this id, or it cannot be reached.
        """
        connection = self._connections.get(node_id)
        if connection is not None and not connection.closed:
            return connection
        if node_id not in self._nodes:
            self.metadata(topics=[])
        node = self._nodes.get(node_id)
        if node is None:
            raise BrokerNotAvailable(f"broker {node_id} is not part of the cluster now")
        connection = self._connections[node_id] = self._dial(node.host, node.port)
        return connection

    def _dial(self, host: str, port: int, first_answer_ms: int | None = None) -> BlockingConnection:
        return self._connect(
            host,
            port,
            client_id=self.client_id,
            timeout_ms=self.timeout_ms,
            first_answer_ms=first_answer_ms,
            security=self.security,
        )

    # Metadata
    def metadata(self, topics: Iterable[str] | None = None, *, topic_ids: Iterable[bytes] = ()) -> ClusterMetadata:
        """Ask a broker for the cluster's metadata.

        Args:
            topics: names; None for every topic, an empty sequence for none.
            topic_ids: further topics by their ids (Metadata v12).

        Returns:
            Brokers and topics; `errors` has the topics that the broker cannot describe.

        Raises:
            ClientError: no broker answers.
            KafkaError: the broker rejects the whole request.
        """
        request_class = messages.MetadataRequest
        wanted: list[messages.MetadataRequest.MetadataRequestTopic] | None = None
        if topics is not None:
            wanted = [request_class.MetadataRequestTopic(name=name) for name in topics]
        ids = [request_class.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
        if ids:
            wanted = [*(wanted or ()), *ids]
        request = request_class(topics=wanted, allow_auto_topic_creation=False)
        connection = self.any_connection()
        version = connection.version_for(request)
        if version < 4:
            request.allow_auto_topic_creation = True  # the field does not exist in these versions
        if version == 0:  # an empty list means all topics, so ask for a name that no topic has
            request.topics = [request_class.MetadataRequestTopic(name="")] if wanted == [] else wanted or []
        try:
            response = connection.request(request, version=version)
        except ConnectionLost:
            self._check_is_not_sasl()
            raise
        if getattr(response, "error_code", 0):
            raise error_for(response.error_code)
        return self._learn(response)

    def _learn(self, response: messages.MetadataResponse) -> ClusterMetadata:
        self._may_be_sasl = False
        metadata = read_metadata(response)
        for node_id, node in metadata.brokers.items():
            if self._nodes.get(node_id, node)[1:3] != node[1:3] and node_id in self._connections:
                self._connections.pop(node_id).close()
        self._nodes = metadata.brokers
        self._controller_id = metadata.controller_id
        for topic in metadata.topics.values():
            for partition in topic.partitions:
                self._leaders[TopicPartition(topic.name, partition.partition)] = partition.leader
        return metadata

    def await_change(self, is_visible: Callable[[], bool]) -> bool:
        """Wait until brokers show a change.

        A controller answers when the change is committed; brokers learn of it a moment later.

        Returns:
            Whether it was visible within the cluster's `timeout_ms`, at most five seconds.
        """
        deadline = min(self.deadline(), self._clock() + 5)
        attempt = -3
        while not is_visible():
            if not self.pause(attempt, deadline):
                return False
            attempt += 1
        return True

    def await_topics(self, topics: Iterable[str], visible: Callable[[ClusterMetadata], bool]) -> bool:
        """Wait until the metadata of topics shows a change; as `await_change`."""
        wanted = list(topics)
        return self.await_change(lambda: visible(self.metadata(wanted)))

    def nodes(self) -> dict[int, Node]:
        """Return the brokers by id; ask for them once."""
        if not self._nodes:
            self.metadata(topics=[])
        return self._nodes

    def controller(self) -> int:
        """Return the id of the broker that takes administrative changes (with KRaft any broker, which forwards them).

        Raises:
            KafkaError: NOT_CONTROLLER while the quorum elects one, and while most of the controllers are down; `retry` waits for it.
        """
        if self._controller_id < 0:
            self.metadata(topics=[])
        if self._controller_id < 0:
            raise error_for(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return self._controller_id

    def to_any(self, items: list[ItemT]) -> dict[ItemT, int | KafkaError]:
        """Route items that any broker can answer to one broker."""
        nodes = self.nodes()
        # A broker that answers may be fenced, as all others.
        nobody = error_for(ErrorCode.NOT_CONTROLLER, "no broker of the cluster is in service now")
        return dict.fromkeys(items, next(iter(nodes), nobody))

    def to_controller(self, items: list[ItemT]) -> dict[ItemT, int | KafkaError]:
        """Route items to the controller; without one each has that error, and `ask_each` asks again."""
        target: int | KafkaError
        try:
            target = self.controller()
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
            target = error
        return dict.fromkeys(items, target)

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
        """Return the id of each partition's leader."""
        wanted = list(partitions)
        unknown = dict.fromkeys(each.topic for each in wanted if self._leaders.get(each, -1) < 0)
        errors = self.metadata(unknown).errors if unknown else {}
        found: dict[TopicPartition, int | KafkaError] = {}
        for each in wanted:
            leader = self._leaders.get(each)
            if each.topic in errors:
                error = errors[each.topic]
                if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    error = error_for(error.code, f"topic {each.topic} does not exist")
                found[each] = error
            elif leader is None:
                found[each] = error_for(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {each.topic} has no partition {each.partition}"
                )
            elif leader < 0:
                found[each] = error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {each} has no leader")
            else:
                found[each] = leader
        return found

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of a partition's leader.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or LEADER_NOT_AVAILABLE until the deadline.
        """

        def ask() -> int:
            (found,) = self.leaders([TopicPartition(topic, partition)]).values()
            if isinstance(found, KafkaError):
                raise found
            return found

        return self.retry(ask)

    def coordinators(self, keys: Iterable[str], key_type: int = GROUP_COORDINATOR) -> dict[str, int | KafkaError]:
        """Return the id of the broker that coordinates each group or transactional id."""
        wanted = list(keys)
        missing = [key for key in wanted if (key_type, key) not in self._coordinators]
        errors: dict[str, KafkaError] = {}
        if missing:
            connection = self.any_connection()
            if connection.version_for(messages.FindCoordinatorRequest) >= 4:
                request = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=missing)
                answers = [(each.key, each) for each in connection.request(request).coordinators]
            else:
                answers = [
                    (key, connection.request(messages.FindCoordinatorRequest(key=key, key_type=key_type)))
                    for key in missing
                ]
            for key, answer in answers:
                if answer.error_code:
                    errors[key] = error_for(answer.error_code, answer.error_message or None)
                else:
                    self._coordinators[key_type, key] = answer.node_id
                    self._nodes.setdefault(answer.node_id, Node(answer.node_id, answer.host, answer.port))
        found: dict[str, int | KafkaError] = {}
        for key in wanted:
            if key in errors:
                found[key] = errors[key]
            else:
                found[key] = self._coordinators.get((key_type, key), -1)
                if found[key] == -1:
                    found[key] = error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return found

    def coordinator(self, key: str, key_type: int = GROUP_COORDINATOR) -> int:
        """Return the id of the broker that coordinates a group or transactional id.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE until the deadline, or another error of FindCoordinator.
        """

        def ask() -> int:
            found = self.coordinators([key], key_type)[key]
            if isinstance(found, KafkaError):
                raise found
            return found

        return self.retry(ask)

    # Asking
    def ask_each(
        self,
        items: Iterable[ItemT],
        route: Callable[[list[ItemT]], Mapping[ItemT, int | KafkaError]],
        ask: Callable[[BlockingConnection, list[ItemT]], Mapping[ItemT, ResultT | KafkaError]],
        *,
        repeatable: bool = True,
    ) -> dict[ItemT, ResultT | KafkaError]:
        """Ask each item's broker about it; ask again about retriable errors, until the deadline.

        Args:
            items: the subjects of the request.
            route: returns the broker to ask about each item, or the item's error.
            ask: sends one request about some items to one broker.
            repeatable: False if a request without an answer must not be sent again, because the broker may have carried it
                out: creating and deleting.

        Returns:
            A result or an error for every item, in the items' order.
        """
        wanted = list(dict.fromkeys(items))
        results: dict[ItemT, ResultT | KafkaError] = {}
        pending = wanted
        deadline = self.deadline()
        attempt = 0
        while pending:
            failed: list[ItemT] = []
            for item, answer in self._ask_once(pending, route, ask).items():
                results[item] = answer
                if not isinstance(answer, KafkaError) or not _may_pass(answer, attempt):
                    continue
                if repeatable or _was_refused(answer):
                    failed.append(item)
            pending = failed
            if not pending or not self.pause(attempt, deadline):
                break
            attempt += 1
            self.forget()
        return {item: results[item] for item in wanted}

    def ask_nodes(
        self, ask: Callable[[BlockingConnection, int], ResultT | KafkaError], node_ids: Iterable[int] | None = None
    ) -> dict[int, ResultT | KafkaError]:
        """Ask some brokers, or every broker, the same; `ask` gets a connection and the broker's id.

        It reads the list of brokers again, because a broker of an older list may have died since.
        """
        wanted = self.retry(lambda: self.metadata(topics=[]).brokers) if node_ids is None else node_ids
        return self.ask_each(
            wanted,
            lambda nodes: {node: node for node in nodes},
            lambda connection, batch: {node: ask(connection, node) for node in batch},
        )

    def _ask_once(
        self,
        items: list[ItemT],
        route: Callable[[list[ItemT]], Mapping[ItemT, int | KafkaError]],
        ask: Callable[[BlockingConnection, list[ItemT]], Mapping[ItemT, ResultT | KafkaError]],
    ) -> dict[ItemT, ResultT | KafkaError]:
        results: dict[ItemT, ResultT | KafkaError] = {}
        by_node: dict[int, list[ItemT]] = {}
        for item, target in route(items).items():
            if isinstance(target, KafkaError):
                results[item] = target
            else:
                by_node.setdefault(target, []).append(item)
        for node_id, batch in by_node.items():
            answers: Mapping[ItemT, ResultT | KafkaError]
            try:
                answers = ask(self.connection(node_id), batch)
            except KafkaError as error:
                answers = dict.fromkeys(batch, error)
            missing = error_for(ErrorCode.UNKNOWN_SERVER_ERROR, f"broker {node_id} left this out of its answer")
            results.update((item, answers.get(item, missing)) for item in batch)
        return results


def _was_refused(error: KafkaError) -> bool:
    """Return whether the controller certainly did not carry out the change, and may yet."""
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
    # Also where a broker has waited for the controller in vain.
    lost = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
    return error.code not in (*unknown, *lost)


def _may_pass(error: KafkaError, attempt: int) -> bool:
    """Return whether another attempt may succeed.

    Kafka calls an unknown topic retriable, because this broker may not know a new topic yet. Two more attempts are enough for
    that; a person who mistyped a name should not wait for the deadline.
    """
    if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
        return attempt < 2
    final = (
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    )
    return error.code.retriable and error.code not in final
