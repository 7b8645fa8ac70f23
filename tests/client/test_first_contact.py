"""The first connection: which address is asked how long, and what is said of one that is no broker's."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.errors import BrokerNotAvailable, ClientError, ConnectionLost, OtherProtocol, RequestTimedOut
from barnabas.client.first_contact import meet
from barnabas.client.other_protocols import HTTP, TLS
from barnabas.client.patience import insist
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from tests.client.scripted_broker import (
    CLOSE,
    SILENCE,
    MemoryCluster,
    MemoryConnection,
    ScriptedBroker,
    Seen,
    answer,
    versions_response,
)

RANGES = {ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 12), ApiKey.SASL_HANDSHAKE: (0, 1)}
LOST = ConnectionLost("lost the connection to it")
TIMED_OUT = RequestTimedOut("it did not answer in time")
REFUSED = BrokerNotAvailable("cannot reach it: connection refused")
OTHER_BYTES = MalformedMessage("it announces a response of 1397966893 bytes")


class Addresses:
    """Addresses whose attempts end as scripted: a port is an index, an attempt is an error, or None for a connection.

    Attributes:
        asked: the port and the patience of each attempt.
        identified: the ports that were asked for another protocol.
    """

    def __init__(self, *attempts: Iterable[KafkaError | None], protocols: dict[int, str] | None = None) -> None:
        self._attempts = [iter(each) for each in attempts]
        self._protocols = protocols or {}
        self.asked: list[tuple[int, int]] = []
        self.identified: list[int] = []

    def meet(self) -> int:
        addresses = [("h", port) for port in range(len(self._attempts))]
        return meet(addresses, self._dial, 30_000, self._identify).port

    def _dial(self, host: str, port: int, first_answer_ms: int) -> BlockingConnection:
        self.asked.append((port, first_answer_ms))
        if error := next(self._attempts[port]):
            raise error
        return MemoryConnection(MemoryCluster(port), host, port)

    def _identify(self, host: str, port: int) -> str | None:
        self.identified.append(port)
        return self._protocols.get(port)


def test_an_address_that_hangs_does_not_hide_the_next() -> None:
    addresses = Addresses([TIMED_OUT], [LOST], [REFUSED], [None])
    assert addresses.meet() == 3
    assert addresses.asked == [(port, 1_000) for port in range(4)]
    assert addresses.identified == []


def test_a_broker_that_is_slow_to_answer_gets_the_whole_time() -> None:
    addresses = Addresses([TIMED_OUT, None])
    assert addresses.meet() == 0
    assert addresses.asked == [(0, 1_000), (0, 29_000)]


@pytest.mark.parametrize(
    ("attempts", "protocol", "kind", "words"),
    [
        ([LOST], TLS, OtherProtocol, "h:0 is a listener with TLS: set security.protocol to SSL or SASL_SSL"),
        ([TIMED_OUT], HTTP, OtherProtocol, "h:0 is an HTTP server, not a Kafka listener"),
        ([OTHER_BYTES], None, OtherProtocol, "h:0 answers, but not in Kafka's protocol"),
        ([OTHER_BYTES], TLS, OtherProtocol, "h:0 is a listener with TLS: set security.protocol to SSL or SASL_SSL"),
        ([LOST], None, ConnectionLost, "h:0 closes the connection without an answer"),
        ([TIMED_OUT, TIMED_OUT], None, RequestTimedOut, "h:0 takes connections, but answers nothing"),
        ([TIMED_OUT, LOST], None, ConnectionLost, LOST.message),
        ([REFUSED], TLS, BrokerNotAvailable, REFUSED.message),
    ],
)
def test_what_is_there(attempts: list[KafkaError], protocol: str | None, kind: type[KafkaError], words: str) -> None:
    with pytest.raises(kind) as raised:
        Addresses(attempts, protocols={} if protocol is None else {0: protocol}).meet()
    assert raised.value.message == words


def test_several_addresses_are_named_together() -> None:
    with pytest.raises(OtherProtocol, match=r"h:0 is a listener with TLS.*; h:1 is an HTTP server"):
        Addresses([LOST], [LOST], protocols={0: TLS, 1: HTTP}).meet()
    # A broker may start yet at the second.
    with pytest.raises(BrokerNotAvailable, match=r"h:0 is a listener with TLS.*; cannot reach it"):
        Addresses([LOST], [REFUSED], protocols={0: TLS}).meet()
    with pytest.raises(RequestTimedOut, match=r"h:0 takes connections"):
        Addresses([TIMED_OUT] * 2, [TIMED_OUT] * 2).meet()


@contextlib.contextmanager
def cluster_at(port: int, protocol: str | None = None) -> Iterator[tuple[Cluster, list[float]]]:
    slept: list[float] = []
    with Cluster(f"127.0.0.1:{port}", timeout_ms=5000, sleep=slept.append, identify=lambda *_: protocol) as made:
        yield made, slept


@pytest.mark.parametrize(("protocol", "kind"), [(TLS, OtherProtocol), (None, ConnectionLost)])
def test_before_the_first_answer_nothing_is_tried_again(protocol: str | None, kind: type[KafkaError]) -> None:
    with ScriptedBroker(*[CLOSE] * 10) as broker, cluster_at(broker.port, protocol) as (cluster, slept):
        with pytest.raises(kind):
            cluster.retry(cluster.metadata)
        assert slept == []


def test_a_job_is_patient_with_an_address_that_closes_but_not_with_another_protocol() -> None:
    with ScriptedBroker(*[CLOSE] * 40) as broker:
        with cluster_at(broker.port) as (cluster, slept):
            times = iter(range(100))
            cluster._clock = lambda: float(next(times))
            with pytest.raises(ConnectionLost):
                insist(cluster, cluster.metadata, 5_000)
            assert slept
        with cluster_at(broker.port, TLS) as (cluster, slept):
            with pytest.raises(OtherProtocol):
                insist(cluster, cluster.metadata, 5_000)
            assert slept == []


def test_after_the_first_answer_a_lost_connection_is_tried_again() -> None:
    versions = answer(versions_response(RANGES))

    def known(seen: Seen) -> Any:
        node = messages.MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port)
        return answer(messages.MetadataResponse(cluster_id="c", brokers=[node]))(seen)

    with (
        ScriptedBroker(versions, known, CLOSE, CLOSE, CLOSE, versions, known) as broker,
        cluster_at(broker.port, TLS) as (
            cluster,
            slept,
        ),
    ):
        cluster.metadata()
        assert cluster.retry(cluster.metadata).cluster_id == "c"
        assert len(slept) == 2


def handshake(error: ErrorCode) -> messages.SaslHandshakeResponse:
    return messages.SaslHandshakeResponse(error_code=error, mechanisms=["SCRAM-SHA-512"])


def test_a_listener_with_sasl_is_named() -> None:
    """It answers ApiVersions, and closes the connection at the first request before SaslHandshake."""
    versions = answer(versions_response(RANGES))
    unsupported = answer(handshake(ErrorCode.UNSUPPORTED_SASL_MECHANISM))
    with (
        ScriptedBroker(versions, CLOSE, versions, unsupported) as broker,
        cluster_at(broker.port) as (cluster, _),
        pytest.raises(OtherProtocol, match="is a listener with SASL"),
    ):
        cluster.retry(lambda: cluster.any_connection().request(messages.MetadataRequest(topics=[])))
    with (
        ScriptedBroker(versions, CLOSE, versions, unsupported) as broker,
        cluster_at(broker.port) as (cluster, slept),
        pytest.raises(
            OtherProtocol,
            match=rf"127\.0\.0\.1:{broker.port} is a listener with SASL: set security\.protocol=SASL_PLAINTEXT"
            " and sasl.mechanism to one of SCRAM-SHA-512",
        ),
    ):
        cluster.metadata()
    assert slept == []


def test_a_broker_that_stops_at_the_first_request_is_asked_again() -> None:
    versions = answer(versions_response(RANGES))
    refused = answer(handshake(ErrorCode.ILLEGAL_SASL_STATE))
    known = answer(messages.MetadataResponse(cluster_id="c"))
    with (
        ScriptedBroker(versions, CLOSE, versions, refused, known) as broker,
        cluster_at(broker.port) as (cluster, slept),
    ):
        assert cluster.retry(cluster.metadata).cluster_id == "c"
        assert len(slept) == 1


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of somebody who accepts connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_connection_waits_for_its_first_answer_as_long_as_it_may(silent: int) -> None:
    with pytest.raises(RequestTimedOut):
        BlockingConnection("127.0.0.1", silent, timeout_ms=60_000, first_answer_ms=1)
    with ScriptedBroker(answer(versions_response(RANGES)), SILENCE) as broker:
        connection = BlockingConnection("127.0.0.1", broker.port, timeout_ms=50, first_answer_ms=60_000)
        with pytest.raises(RequestTimedOut), connection:
            connection.request(messages.MetadataRequest(topics=[]))


def test_an_error_of_the_connection_says_its_kind() -> None:
    errors: list[KafkaError] = [OtherProtocol("x"), LOST]
    assert [isinstance(each, ClientError) for each in errors] == [False, True]
    assert [each.code for each in errors] == [ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION]
