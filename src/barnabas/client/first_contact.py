"""The first connection of a client: the addresses are somebody's words, and nothing has answered at them yet.

    look       ask each address in turn, for a moment only: one that hangs must not hide the next
    identify   where no answer came, ask in other protocols (`other_protocols`): an answer to those is final
    wait       an address that takes connections and says nothing may be a broker that starts: give it the whole time

An address that closes the connection is not asked again: before the first answer it is more likely the wrong one than a broker that
stops. Retries are for a cluster that has answered.

Where the listener and the client's security settings do not fit, the error says which setting the listener wants.

A listener with SASL answers ApiVersions and closes the connection at the next request. SaslHandshake tells it from a broker that
stops: a listener without SASL answers ILLEGAL_SASL_STATE (Kafka), or does not serve the request (barnabas).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.client.bootstrap import format_address
from barnabas.client.errors import (
    BrokerNotAvailable,
    ClientError,
    ConnectionLost,
    OtherProtocol,
    OtherSecurity,
    RequestTimedOut,
)
from barnabas.client.other_protocols import HTTP, KAFKA, TLS, protocol_at
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.security.client_security import ClientSecurity
from barnabas.words.printable import printable

__all__ = ["check_is_not_sasl", "meet"]

LOOK_MS = 1_000
"""Shorter than the time after which a command says that it waits (`cli.patience`)."""

_OTHER = {
    HTTP: "is an HTTP server, not a Kafka listener",
    None: "answers, but not in Kafka's protocol",
}

Address = tuple[str, int]

Dial = Callable[[str, int, int], BlockingConnection]
"""Connects to a host and port; the last argument is the time for the first response, in milliseconds."""


def meet(
    addresses: Iterable[Address],
    dial: Dial,
    timeout_ms: int,
    identify: Callable[[str, int], str | None] = protocol_at,
    security: ClientSecurity | None = None,
) -> BlockingConnection:
    """Return a connection to the first address that answers.

    Raises:
        OtherProtocol: something answers at each address, and not as a Kafka listener that we can use.
        ClientError: nothing answers; the message names every address.
    """
    look_ms = min(LOOK_MS, timeout_ms // 2)
    failures: dict[Address, KafkaError] = {}
    for host, port in addresses:
        try:
            return dial(host, port, look_ms)
        except (ClientError, MalformedMessage) as error:
            failures[host, port] = error
    for address, failure in failures.items():
        if isinstance(failure, BrokerNotAvailable):
            continue
        protocol = identify(*address)
        if (other := _other(format_address(*address), protocol, failure, security)) is not None:
            failures[address] = other
        elif isinstance(failure, ConnectionLost):
            failures[address] = ConnectionLost(_closes(format_address(*address), security))
        else:
            try:
                return dial(*address, timeout_ms - look_ms)
            except RequestTimedOut:
                silent = f"{format_address(*address)} takes connections, but answers nothing"
                failures[address] = RequestTimedOut(silent)
            except ClientError as error:
                failures[address] = error
    raise _joined(list(failures.values()))


def _other(
    address: str, protocol: str | None, failure: KafkaError, security: ClientSecurity | None
) -> OtherProtocol | None:
    """Return the error for a listener that speaks another protocol; None if it may be a Kafka listener with the client's security."""
    is_with_tls = security is not None and security.context is not None
    if protocol == TLS:
        if is_with_tls:
            return None
        wanted = "SASL_SSL" if security is not None else "SSL or SASL_SSL"
        return OtherSecurity(f"{address} is a listener with TLS: set security.protocol to {wanted}")
    if protocol == KAFKA:
        if not is_with_tls:
            return None
        assert security is not None
        wanted = "SASL_PLAINTEXT" if security.mechanism is not None else "PLAINTEXT or SASL_PLAINTEXT"
        return OtherSecurity(f"{address} is a listener without TLS: set security.protocol to {wanted}")
    if protocol is not None or isinstance(failure, MalformedMessage):
        return OtherProtocol(f"{address} {_OTHER[protocol]}")
    return None


def _closes(address: str, security: ClientSecurity | None) -> str:
    if security is not None and security.context is not None and not security.has_key:
        return (
            f"{address} closes the connection without an answer: if it requires a client's certificate,"
            " set ssl.keystore.location"
        )
    return f"{address} closes the connection without an answer"


def _joined(failures: list[KafkaError]) -> KafkaError:
    """Return the failures of all addresses as one."""
    if len(failures) == 1 or all(isinstance(each, RequestTimedOut) for each in failures):
        return failures[0]
    words = "; ".join(each.message for each in failures)
    # Where one address is only not reached, a broker may start there yet.
    is_final = all(isinstance(each, OtherProtocol) for each in failures)
    return OtherProtocol(words) if is_final else BrokerNotAvailable(words)


def check_is_not_sasl(connection: BlockingConnection) -> None:
    """Find out whether a new connection expects SASL before any other request.

    Raises:
        OtherSecurity: it does.
        KafkaError: it does not answer.
    """
    response = None
    request = messages.SaslHandshakeRequest(mechanism="")
    if connection.supports(request.API_KEY):
        response = connection.request(request)
    if response is not None and response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_SASL_MECHANISM):
        wanted = "SASL_PLAINTEXT" if connection.security is None else "SASL_SSL"
        offered = ", ".join(printable(each) for each in response.mechanisms)
        raise OtherSecurity(
            f"{connection.address} is a listener with SASL: set security.protocol={wanted} and sasl.mechanism to one of {offered}"
        )
