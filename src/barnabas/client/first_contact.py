"""The first connection of a client: the addresses are somebody's words, and nothing has answered at them yet.

    look       ask each address in turn, for a moment only: one that hangs must not hide the next
    identify   where no answer came, ask in other protocols (`other_protocols`): an answer to those is final
    wait       an address that takes connections and says nothing may be a broker that starts: give it the whole time

An address that closes the connection is not asked again: before the first answer it is more likely the wrong one than a broker that
stops. Retries are for a cluster that has answered.

A listener with SASL answers ApiVersions and closes the connection at the next request. SaslHandshake tells it from a broker that
stops: a listener without SASL answers ILLEGAL_SASL_STATE (Kafka), or does not serve the request (barnabas).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.client.bootstrap import format_address
from barnabas.client.errors import BrokerNotAvailable, ClientError, ConnectionLost, OtherProtocol, RequestTimedOut
from barnabas.client.other_protocols import HTTP, TLS, protocol_at
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage

__all__ = ["check_is_not_sasl", "meet"]

LOOK_MS = 1_000
"""Shorter than the time after which a command says that it waits (`cli.patience`)."""

_UNSPOKEN = "which this client does not speak yet"
_FOUND = {
    TLS: f"is a listener with TLS, {_UNSPOKEN}",
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
        if protocol is not None or isinstance(failure, MalformedMessage):
            failures[address] = OtherProtocol(f"{format_address(*address)} {_FOUND[protocol]}")
        elif isinstance(failure, ConnectionLost):
            failures[address] = ConnectionLost(f"{format_address(*address)} closes the connection without an answer")
        else:
            try:
                return dial(*address, timeout_ms - look_ms)
            except RequestTimedOut:
                silent = f"{format_address(*address)} takes connections, but answers nothing"
                failures[address] = RequestTimedOut(silent)
            except ClientError as error:
                failures[address] = error
    raise _joined(list(failures.values()))


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
        OtherProtocol: it does.
        KafkaError: it does not answer.
    """
    request = messages.SaslHandshakeRequest(mechanism="")
    if connection.supports(request.API_KEY) and connection.request(request).error_code in (
        ErrorCode.NONE,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    ):
        raise OtherProtocol(f"{connection.address} is a listener with SASL, {_UNSPOKEN}")
